"""A disk that is full, and a folder that may not be written: real ones."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.started import command

SIZES = {60: 40_000, 180: 20_000}
"""Bytes of each file, by their number: few stay in memory until their group is written."""


@pytest.fixture(params=SIZES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(request.param):
        (tree / f"{number:03}.bin").write_bytes(bytes([number]) * SIZES[request.param])
    application = LateApplication()
    with ServerThread(application) as server:
        assert command("publish", str(tree), "--url", server.uri, home=tmp_path).returncode == 0
        application.application = find_tree(tree).application(SystemClock())
        yield tree, server.uri


def pull_two_files(home: Path, mirror: Path) -> None:
    """Publish a tree with two files, and mirror it; one of them is in the trash of the mirror."""
    tree, application = home / "tree", LateApplication()
    tree.mkdir()
    for name in ("a.txt", "b.txt"):
        (tree / name).write_bytes(b"a" * 10_000)
    with ServerThread(application) as server:
        for _ in range(2):
            assert command("publish", str(tree), "--url", server.uri, home=home).returncode == 0
            application.application = find_tree(tree).application(SystemClock())
            assert command("pull", server.uri, str(mirror), home=home).returncode == 0
            (tree / "b.txt").unlink(missing_ok=True)


def whole(folder: Path, tree: Path) -> list[str]:
    names = []
    for path in folder.glob("*.bin"):
        assert path.read_bytes() == (tree / path.name).read_bytes()
        names.append(path.name)
    return names


def test_a_pull_onto_a_full_disk_keeps_what_is_whole_and_goes_on_when_there_is_room(
    small_disk: Path, source: tuple[Path, str], tmp_path: Path
) -> None:
    tree, uri = source
    mirror = small_disk / "mirror"

    full = command("pull", uri, str(mirror), home=tmp_path)
    kept = whole(mirror, tree)
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    again = command("pull", uri, str(mirror), home=tmp_path)

    assert full.returncode == 8
    assert "error[disk]" in full.stderr
    assert "Traceback" not in full.stderr
    files = len(list(tree.glob("*.bin")))
    assert len(kept) < files
    assert again.returncode == 0
    assert len(whole(mirror, tree)) == files
    assert list((mirror / ".resourcesync" / "tmp").iterdir()) == []


def test_a_disk_without_a_free_byte_is_named_as_the_cause_and_the_trash_can_be_emptied(
    small_disk: Path, tmp_path: Path
) -> None:
    mirror = small_disk / "mirror"
    pull_two_files(tmp_path, mirror)
    with suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(b"x" * 4_096):
            pass

    pull = command("pull", str(mirror), home=tmp_path)
    listed = command("trash", "list", str(mirror), home=tmp_path)
    status = command("status", str(mirror), "--check", home=tmp_path)
    trash = command("trash", "empty", str(mirror), "--all", home=tmp_path)
    doctor = command("doctor", str(mirror), home=tmp_path)

    assert listed.stdout.endswith("Trash     1 file, 10.0 kB\n")
    assert (status.returncode, pull.returncode, trash.returncode) == (1, 8, 0)
    assert "no space left on its disk (0 B free)" in status.stdout
    assert (
        "next   free disk space, such as in its trash: resourcesync trash empty " in status.stdout
    )
    assert "error[disk]: no space " in pull.stderr
    assert trash.stdout.startswith("Emptied   1 file, ")
    assert "cannot be written: no space left" in doctor.stdout, "some bytes are no room for a pull"


def test_a_copy_that_could_not_be_replaced_is_still_known_by_its_hash(
    small_disk: Path, tmp_path: Path
) -> None:
    tree, application, mirror = tmp_path / "tree", LateApplication(), small_disk / "mirror"
    (tree / "o").mkdir(parents=True)
    (tree / "o/a.txt").write_text("before")
    with ServerThread(application) as server:
        publish = ("publish", str(tree), "--url", server.uri)
        assert command(*publish, home=tmp_path).returncode == 0
        application.application = find_tree(tree).application(SystemClock())
        assert command("pull", server.uri, str(mirror), home=tmp_path).returncode == 0
        (tree / "o/a.txt").write_text("changed")
        assert command(*publish, home=tmp_path).returncode == 0
        folder = str(mirror / "o")
        subprocess.run(["mount", "--bind", "-o", "ro", folder, folder], check=True)
        try:
            assert command("pull", str(mirror), home=tmp_path).returncode == 8
        finally:
            subprocess.run(["umount", folder], check=True)
        why = command("why", str(mirror), "o/a.txt", home=tmp_path)

    assert "the verified copy is kept" in why.stdout
    assert "1 by date" not in command("status", str(mirror), home=tmp_path).stdout


def test_publishing_on_a_full_disk_leaves_the_old_documents_and_heals(
    small_disk: Path, tmp_path: Path
) -> None:
    tree = small_disk / "tree"
    tree.mkdir()
    for number in range(50):
        (tree / f"{number:03}.txt").write_text(f"{number}")
    url = "http://source.example/"
    assert command("publish", str(tree), "--url", url, home=tmp_path).returncode == 0
    before = (tree / "resourcesync/changelist.xml").read_bytes()
    (tree / "new.txt").write_text("new")
    free = shutil.disk_usage(small_disk).free
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * max(0, free - 4_096))

    full = command("publish", str(tree), home=tmp_path)
    after = (tree / "resourcesync/changelist.xml").read_bytes()
    ballast.unlink()
    healed = command("publish", str(tree), home=tmp_path)

    assert full.returncode == 8
    assert "Traceback" not in full.stderr
    assert after == before
    assert healed.returncode == 0
    assert b"new.txt" in (tree / "resourcesync/changelist.xml").read_bytes()


def test_a_mirror_that_may_not_be_written_is_told_as_such(
    source: tuple[Path, str], tmp_path: Path
) -> None:
    _, uri = source
    (tmp_path / "file").write_text("not a folder")

    ran = command("pull", uri, str(tmp_path / "file" / "mirror"), home=tmp_path)

    assert ran.returncode == 8
    assert "Traceback" not in ran.stderr
    assert (tmp_path / "file").read_text() == "not a folder"


def test_a_mirror_on_a_disk_that_is_read_only_is_read_and_not_called_damaged(
    small_disk: Path, tmp_path: Path
) -> None:
    mirror = small_disk / "mirror"
    pull_two_files(tmp_path, mirror)
    (small_disk / "source").mkdir()
    (small_disk / "source/a").write_text("a")
    command("publish", str(small_disk / "source"), "--url", "http://a.example/", home=tmp_path)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    diagnosis = command("doctor", str(mirror), home=tmp_path)
    status = command("status", str(mirror), "--check", home=tmp_path)
    trash = command("trash", "list", str(mirror), home=tmp_path)
    changes = command("changes", str(mirror), home=tmp_path)

    assert "cannot be written: Read-only file system" in diagnosis.stdout
    assert "mount its disk for writing" in diagnosis.stdout
    assert "state.db" not in diagnosis.stdout + diagnosis.stderr
    assert (status.returncode, trash.returncode, changes.returncode) == (1, 0, 0)
    assert "each pull fails: failed while writing " in status.stdout  # none could record it
    source = command("status", str(small_disk / "source"), "--check", home=tmp_path)
    assert (source.returncode, "each run fails: failed while " in source.stdout) == (1, True)
