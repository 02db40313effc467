"""The `resync` client follows what we publish, under each policy; we follow what it builds."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import Severity
from tests.support.commands.run import Ran, files_of, free_port, resourcesync, run, running, script
from tests.support.servers.listening import static

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12) or find_spec("resync") is None,
    reason="resync 2.0.1 is not installed, or not for this Python: 3.11 at most",
)

_FILES = {
    f"shelf-{shelf}/object {number:02d} & co.txt": b"object %d of shelf %d\n" % (number, shelf) * 20
    for shelf in range(3)
    for number in range(12)
}
CHANGES = "URL/resourcesync/changelist.xml"


def _fill(tree: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_767_225_600, 1_767_225_600))


def _sync_into(home: Path, url: str, folder: str, *words: str) -> Ran:
    ran = run(script("resync-sync"), *words, f"{url}/", folder, cwd=home)
    assert "FatalError" not in ran.said, ran.said
    assert "Traceback" not in ran.said, ran.said
    return ran


@dataclass(frozen=True)
class Served:
    """A tree that we publish and serve, and the folder of a resync client."""

    tree: Path
    url: str
    home: Path

    def publish(self, *options: str) -> None:
        ran = resourcesync("publish", self.tree, "--url", self.url, *options, cwd=self.home)
        assert ran.code == 0, ran.said

    def sync(self, *words: str) -> Ran:
        return _sync_into(self.home, self.url, "mirror", *words)

    @property
    def mirror(self) -> Path:
        return self.home / "mirror"


@contextmanager
def serving_tree(folder: Path, files: dict[str, bytes], *options: str) -> Iterator[Served]:
    tree, home, port = folder / "tree", folder / "home", free_port()
    home.mkdir()
    _fill(tree, files)
    found = Served(tree=tree, url=f"http://127.0.0.1:{port}", home=home)
    found.publish(*options)
    serve = (script("resourcesync"), "serve", tree, "--bind", f"127.0.0.1:{port}")
    with running(*serve, port=port, cwd=home):
        yield found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving_tree(tmp_path, _FILES) as found:
        yield found


def _copies(served: Served) -> dict[str, bytes]:
    # resync keeps the names of URIs as they are written.
    return {name.replace("%20", " ").replace("%26", "&"): body
            for name, body in files_of(served.mirror).items()}  # fmt: skip


@pytest.mark.founding("WWW §1", "The authors' own client mirrors what we publish", "`publish`")
def test_resync_copies_what_we_publish_and_finds_it_in_sync(served: Served) -> None:
    synced = served.sync("--baseline")
    audited = served.sync("--audit")

    assert "SYNCED" in synced.said
    assert _copies(served) == _FILES
    assert "IN SYNC" in audited.said
    assert "NOT IN SYNC" not in audited.said


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        (("--incremental", "--changelist-uri", CHANGES), "created=1, updated=1, deleted=1"),
        (("--baseline",), ""),
    ],
    ids=["our change list", "the resource list alone"],
)
def test_resync_follows_what_we_publish(
    served: Served, words: tuple[str, ...], counts: str
) -> None:
    served.sync("--baseline")
    (served.tree / "shelf-0/object 00 & co.txt").write_bytes(b"changed\n")
    (served.tree / "shelf-1/object 01 & co.txt").unlink()
    (served.tree / "shelf-2/new.txt").write_bytes(b"new\n")
    served.publish()

    ran = served.sync("--delete", *(word.replace("URL", served.url) for word in words))

    expected = {**_FILES, "shelf-0/object 00 & co.txt": b"changed\n", "shelf-2/new.txt": b"new\n"}
    del expected["shelf-1/object 01 & co.txt"]
    assert counts in ran.said
    assert _copies(served) == expected


@pytest.mark.parametrize(
    ("head", "options", "version"),
    [
        ("changelist.xml", ["-o", "dialect=1.0"], "1.0"),
        ("changelist.xml", ["-o", "max_entries=2"], "1.1"),
        ("changelist.xml", ["--change-lists", "per-run"], "1.1"),
        ("changelistarchive.xml", ["--change-lists", "archive"], "1.1"),
    ],
)
def test_resync_follows_the_lists_and_starts_from_the_newest_resource_list(
    tmp_path: Path, head: str, options: list[str], version: str
) -> None:
    with serving_tree(tmp_path, {"a.txt": b"a", "b.txt": b"b"}, *options) as served:
        tree, home, url = served.tree, served.home, served.url
        _sync_into(home, url, "old", "--baseline")
        read: set[str] = set()
        for number, step in enumerate(("--update", "--rebase")):
            (tree / f"new {number}.txt").write_text(f"{number}")
            (tree / "a.txt").write_text(f"a {number}")
            assert resourcesync("publish", tree, step, cwd=home).code == 0
            text = (tree / "resourcesync" / head).read_text()
            names = re.findall(r"<loc>[^<]*/(changelist[-_][^<]*)</loc>", text) or [head]
            lists = [f"{url}/resourcesync/{name}" for name in names]
            for uri in (uri for uri in lists if uri not in read):
                words = ("--incremental", "--delete", "--spec-version", version)
                _sync_into(home, url, "old", *words, "--changelist-uri", uri)
            read |= set(lists[:-1])
        expected = {
            name.replace(" ", "%20"): content
            for name, content in files_of(tree).items()
            if "resourcesync" not in name
        }
        assert files_of(home / "old") == expected
        resourcesync("publish", tree, "--rebase", cwd=home)
        _sync_into(home, url, "late", "--baseline")
        assert files_of(home / "late") == expected


_PLAIN = {
    f"shelf-{shelf}/object-{number:02d}.txt": b"object %d of shelf %d\n" % (number, shelf) * 20
    for shelf in range(3)
    for number in range(12)
}
_OWN = (r".*list\.xml", r"reference\.xml", r"\.well-known")


@dataclass(frozen=True)
class Built:
    """A tree that `resync-build` describes and a plain server serves."""

    tree: Path
    url: str
    home: Path

    def build(self, what: str, outfile: str, *words: str) -> None:
        excluded = [word for name in _OWN for word in ("--exclude", name)]
        ran = run(
            script("resync-build"), what, *words, *excluded, "--outfile", self.tree / outfile,
            f"{self.url}={self.tree}", cwd=self.home,
        )  # fmt: skip
        assert ran.code == 0, ran.said
        assert "FatalError" not in ran.said, ran.said
        assert (self.tree / outfile).is_file()

    def list_resources(self) -> None:
        up = f"--capabilitylist-link={self.url}/capabilitylist.xml"
        self.build("--write-resourcelist", "resourcelist.xml", "--hash", "sha-256", up)

    def describe(self, *capabilities: str) -> None:
        named = ",".join(f"{name}={self.url}/{name}.xml" for name in capabilities)
        self.build(f"--write-capabilitylist={named}", "capabilitylist.xml")
        (self.tree / ".well-known").mkdir(exist_ok=True)
        listed = f"--write-sourcedescription={self.url}/capabilitylist.xml"
        self.build(listed, ".well-known/resourcesync")

    @property
    def mirror(self) -> Path:
        return self.home / "mirror"

    @property
    def originals(self) -> dict[str, bytes]:
        return {k: v for k, v in files_of(self.tree).items() if k.startswith("shelf-")}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Built:
    tree, home = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("home")
    _fill(tree, _PLAIN)
    made = Built(tree=tree, url=f"http://127.0.0.1:{free_port()}", home=home)
    made.list_resources()
    made.describe("resourcelist")
    return made


@pytest.fixture
def built(described: Built, tmp_path: Path) -> Iterator[Built]:
    tree, home = tmp_path / "tree", tmp_path / "home"
    shutil.copytree(described.tree, tree)
    home.mkdir()
    port = int(described.url.rpartition(":")[2])
    with static(tree, port):
        yield Built(tree=tree, url=described.url, home=home)


def _change(built: Built) -> None:
    (built.tree / "shelf-0/object-00.txt").write_bytes(b"changed\n")
    (built.tree / "shelf-1/object-01.txt").unlink()
    (built.tree / "shelf-2/new.txt").write_bytes(b"new\n")


@pytest.mark.founding("0.9 §2.2.2", "Baseline from a Resource List", "`pull`")
@pytest.mark.founding("WWW §1", "What the authors' own Source publishes is mirrored", "`pull`")
def test_a_tree_that_resync_published_is_mirrored_audited_and_followed(built: Built) -> None:
    pulled = resourcesync("pull", built.url, built.mirror, cwd=built.home)
    assert pulled.code == 0, pulled.said
    assert files_of(built.mirror) == built.originals == _PLAIN
    proven = resourcesync("audit", built.mirror, cwd=built.home)
    assert proven.code == 0, proven.said

    _change(built)
    built.list_resources()
    again = resourcesync("pull", built.mirror, cwd=built.home)
    assert again.code == 0, again.said
    assert [f"1 {kind}" in again.said for kind in ("created", "updated", "deleted")] == [True] * 3
    assert files_of(built.mirror) == built.originals

    (built.mirror / "shelf-0/object-00.txt").write_bytes(b"rot")
    spoiled = resourcesync("audit", built.mirror, cwd=built.home)
    assert spoiled.code == 1, spoiled.said
    assert "* /shelf-0/object-00.txt" in spoiled.said


def test_pull_follows_a_source_whose_change_list_has_no_times(built: Built) -> None:
    (built.tree / "reference.xml").write_bytes((built.tree / "resourcelist.xml").read_bytes())
    assert resourcesync("pull", built.url, built.mirror, cwd=built.home).code == 0
    _change(built)
    built.list_resources()
    reference = ("--reference", str(built.tree / "reference.xml"), "--hash", "sha-256")
    built.build("--write-changelist", "changelist.xml", *reference)
    built.describe("resourcelist", "changelist")

    ran = resourcesync("pull", built.mirror, cwd=built.home)

    assert ran.code == 0, ran.said
    assert files_of(built.mirror) == built.originals


def test_validate_raises_no_false_alarm_at_a_resource_list_of_resync(described: Built) -> None:
    text = (described.tree / "resourcelist.xml").read_bytes()

    found = list(Examination([text], uri=f"{described.url}/resourcelist.xml"))

    assert len(text) > 1_000
    assert [str(finding) for finding in found if finding.severity is not Severity.ADVICE] == []
