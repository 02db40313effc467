"""Links in a tree, and serving it: nothing outside is ever read."""

import os
from pathlib import Path

import pytest

from resourcesync.adapters.files import FileSelection
from resourcesync.errors import OriginalChangedError
from tests.support.sources.trees import BASE, originals, published, put, reasons

# --- links -------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_bytes(b"secret")
    return folder


def test_a_link_to_a_file_of_the_tree_is_published_with_that_files_bytes(tmp_path: Path) -> None:
    put(tmp_path, "store/object", content=b"bytes")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/link").symlink_to("../store/object")
    (tmp_path / "absolute").symlink_to(tmp_path.resolve() / "store/object")
    (tmp_path / "twice").symlink_to("a/link")
    found = originals(tmp_path)

    measured = {o.uri.removeprefix(BASE): found.measure(o)[0] for o in found.scan()}

    assert list(measured) == ["a/link", "absolute", "store/object", "twice"]
    assert {resource.length for resource in measured.values()} == {5}
    assert found.omissions() == ()


def test_a_link_that_leads_out_is_never_followed(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "absolute").symlink_to(outside / "secret")
    (tmp_path / "relative").symlink_to(f"../{outside.name}/secret")
    (tmp_path / "folder").symlink_to(outside)
    (tmp_path / "through").symlink_to("folder/secret")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("missing")
    (tmp_path / "real").mkdir()
    (tmp_path / "tofolder").symlink_to("real")
    (tmp_path / "back").symlink_to("folder/../real")
    found = originals(tmp_path)

    assert published(found) == []
    assert set(reasons(found)) == {
        "absolute", "relative", "folder", "through", "loop", "nowhere", "tofolder", "back",
    }  # fmt: skip


def test_a_link_to_a_file_that_is_not_published_is_omitted(tmp_path: Path) -> None:
    put(tmp_path, ".env", ".git/config", "drafts/a", "resourcesync/x")
    for number, target in enumerate((".env", ".git/config", "drafts/a", "resourcesync/x")):
        (tmp_path / f"link{number}").symlink_to(target)
    selection = FileSelection(exclude=("drafts/",), skip=frozenset({"resourcesync"}))

    assert published(originals(tmp_path, selection)) == []


def test_a_file_replaced_by_a_link_after_the_scan_is_not_read(
    tmp_path: Path, outside: Path
) -> None:
    put(tmp_path, "a", "d/b")
    found = originals(tmp_path)
    scanned = list(found.scan())
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to(outside / "secret")
    (tmp_path / "d/b").unlink()
    (tmp_path / "d").rmdir()
    (tmp_path / "d").symlink_to(outside)
    (outside / "b").write_bytes(b"secret")

    for original in scanned:
        with pytest.raises(OriginalChangedError):
            found.measure(original)
        assert found.open(original.uri) is None


def test_a_file_replaced_by_a_link_in_mid_scan_is_not_read(tmp_path: Path, outside: Path) -> None:
    put(tmp_path, "a")
    found = originals(tmp_path)
    for original in found.scan():
        (tmp_path / "a").unlink()
        (tmp_path / "a").symlink_to(outside / "secret")

        with pytest.raises(OriginalChangedError):
            found.measure(original)


def test_a_file_replaced_by_a_pipe_does_not_hang(tmp_path: Path) -> None:
    put(tmp_path, "a")
    found = originals(tmp_path)
    (original,) = found.scan()
    (tmp_path / "a").unlink()
    os.mkfifo(tmp_path / "a")

    with pytest.raises(OriginalChangedError):
        found.measure(original)


# --- serving -----------------------------------------------------------------------------------
