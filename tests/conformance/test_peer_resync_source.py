"""Our command mirrors, updates and audits a tree that `resync-build` published."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import Severity
from tests.support.commands.peers import needs_resync
from tests.support.commands.run import files_of, free_port, resourcesync, run, script
from tests.support.servers.listening import static

pytestmark = needs_resync

_FILES = {
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
    """A tree described once, for a server on one port."""
    tree, home = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("home")
    for name, content in _FILES.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_767_225_600, 1_767_225_600))
    made = Built(tree=tree, url=f"http://127.0.0.1:{free_port()}", home=home)
    made.list_resources()
    made.describe("resourcelist")
    return made


@pytest.fixture
def built(described: Built, tmp_path: Path) -> Iterator[Built]:
    """A copy of that tree, served."""
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
def test_pull_mirrors_a_tree_that_resync_published(built: Built) -> None:
    ran = resourcesync("pull", built.url, built.mirror, cwd=built.home)

    assert ran.code == 0, ran.said
    assert files_of(built.mirror) == built.originals == _FILES


def test_pull_needs_no_description_when_it_is_given_the_list(built: Built) -> None:
    ran = resourcesync("pull", f"{built.url}/resourcelist.xml", built.mirror, cwd=built.home)

    assert ran.code == 0, ran.said
    assert files_of(built.mirror) == _FILES


def test_pull_updates_from_a_new_resource_list_of_resync(built: Built) -> None:
    assert resourcesync("pull", built.url, built.mirror, cwd=built.home).code == 0
    _change(built)
    built.list_resources()

    ran = resourcesync("pull", built.mirror, cwd=built.home)

    assert ran.code == 0, ran.said
    assert "1 created" in ran.said
    assert "1 updated" in ran.said
    assert "1 deleted" in ran.said
    assert files_of(built.mirror) == built.originals


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


def test_audit_proves_a_mirror_of_a_tree_that_resync_published(built: Built) -> None:
    assert resourcesync("pull", built.url, built.mirror, cwd=built.home).code == 0

    proven = resourcesync("audit", built.mirror, cwd=built.home)
    (built.mirror / "shelf-0/object-00.txt").write_bytes(b"rot")
    spoiled = resourcesync("audit", built.mirror, cwd=built.home)

    assert proven.code == 0, proven.said
    assert spoiled.code == 1, spoiled.said
    assert "* /shelf-0/object-00.txt" in spoiled.said


def test_validate_raises_no_false_alarm_at_a_resource_list_of_resync(described: Built) -> None:
    text = (described.tree / "resourcelist.xml").read_bytes()

    found = list(Examination([text], uri=f"{described.url}/resourcelist.xml"))

    assert len(text) > 1_000
    assert [str(finding) for finding in found if finding.severity is not Severity.ADVICE] == []
