"""The `resync` client mirrors, updates and audits a tree that we publish and serve."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.commands.peers import needs_resync
from tests.support.commands.run import (
    Ran,
    files_of,
    free_port,
    resourcesync,
    run,
    running,
    script,
)

pytestmark = needs_resync

_FILES = {
    f"shelf-{shelf}/object {number:02d} & co.txt": b"object %d of shelf %d\n" % (number, shelf) * 20
    for shelf in range(3)
    for number in range(12)
}
CHANGES = "URL/resourcesync/changelist.xml"


@dataclass(frozen=True)
class Served:
    """A tree that we publish and serve, and the folder of a resync client."""

    tree: Path
    url: str
    home: Path

    def publish(self) -> None:
        ran = resourcesync("publish", self.tree, "--url", self.url, cwd=self.home)
        assert ran.code == 0, ran.said

    def sync(self, *words: str) -> Ran:
        ran = run(script("resync-sync"), *words, f"{self.url}/", "mirror", cwd=self.home)
        assert "FatalError" not in ran.said, ran.said
        assert "Traceback" not in ran.said, ran.said
        return ran

    @property
    def mirror(self) -> Path:
        return self.home / "mirror"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    tree, home = tmp_path / "tree", tmp_path / "home"
    home.mkdir()
    for name, content in _FILES.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    port = free_port()
    found = Served(tree=tree, url=f"http://127.0.0.1:{port}", home=home)
    found.publish()
    serve = (script("resourcesync"), "serve", tree, "--bind", f"127.0.0.1:{port}")
    with running(*serve, port=port, cwd=home):
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
