"""Rows of the fault model about this machine, that no other test holds."""

import os
import random
import resource
import shutil
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ResourceSyncError, StateError
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.ports import CopyInstallation, CopyRemoval, FetchRequest
from tests.support.commands.run import environment, files_of, resourcesync, script
from tests.support.commands.started import Started
from tests.support.servers.tiny_source import TinySource
from tests.support.worlds.network import Answer
from tests.support.worlds.world import OwnWorld

OPEN_FILES = (24, 32, 64)


def test_a_mirror_that_is_moved_away_in_mid_run_leads_no_write_elsewhere(
    world: OwnWorld, tmp_path: Path
) -> None:
    world.pull()
    for number in range(20):
        world.source.put(f"objects/{number:04}.html", "newer")
    world.source.publish_deletion("index.html")
    elsewhere, honest = tmp_path / "elsewhere", world.network.serve

    def serve(request: FetchRequest) -> Answer | Exception:
        if request.uri.endswith("0005.html") and not elsewhere.exists():
            world.folder.rename(elsewhere)
            world.folder.mkdir()
        return honest(request)

    world.fetcher.serve = serve
    with suppress(ResourceSyncError):
        world.pull()
    assert elsewhere.exists()
    assert [path.name for path in world.folder.rglob("*") if path.is_file()] == []
    world.folder.rmdir()
    elsewhere.rename(world.folder)
    world.fetcher.serve = honest

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_an_empty_folder_in_the_place_of_a_mirror_is_not_taken_for_it(world: OwnWorld) -> None:
    """Its memory is there, on another disk perhaps, and its files are not: an unmounted disk."""
    world.pull()
    own, kept = world.folder / ".resourcesync", world.folder.parent / "own"
    own.rename(kept)
    for path in list(world.folder.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    kept.rename(own)
    (own / "marker").unlink()

    with pytest.raises(ResourceSyncError) as caught:
        world.pull()

    assert "is not the folder" in caught.value.message


@pytest.mark.parametrize("key", ["cursor", "identity", "found", "filters"])
def test_a_note_that_cannot_be_understood_is_a_damaged_memory(world: OwnWorld, key: str) -> None:
    world.pull()
    with world.state() as state:
        state.commit(StateTransaction(notes={key: "1e"}))

    with pytest.raises(StateError) as caught:
        world.pull()

    assert f"cannot read {key}" in caught.value.message
    assert len(world.home.files_on_disk()) == 41


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_copy_has_the_mode_of_a_copy_whatever_the_umask(world: OwnWorld, mask: int) -> None:
    before = os.umask(mask)
    try:
        world.pull()
    finally:
        os.umask(before)

    modes = {path.stat().st_mode & 0o7777 for path in world.folder.rglob("*.html")}
    assert modes == {0o644}
    own = world.folder / ".resourcesync"
    assert own.stat().st_mode & 0o077 == 0, "the memory may tell of what is protected elsewhere"


def test_a_copy_may_lie_deeper_than_folders_are_held_at_once(tmp_path: Path) -> None:
    path = "/".join(["d"] * 200) + "/x.txt"
    with MirrorFolder(tmp_path / "mirror", SystemClock()) as folder:
        copies = folder.copies
        assert copies is not None
        staged = copies.stage(["sha-256"])
        staged.write(b"deep")
        staged.seal()
        (signature,) = copies.install([CopyInstallation(staged=staged, path=path)])
        assert isinstance(signature, str)
        assert list(copies.paths()) == [path]
        assert copies.signature(path) == signature
        (place,) = copies.remove([CopyRemoval(path=path, signature=signature)], "test")
        assert isinstance(place, str)
        assert list(copies.paths()) == []


@pytest.mark.parametrize("files", OPEN_FILES)
def test_a_process_that_may_hold_few_files_open_ends_in_good_order(
    tmp_path: Path, files: int
) -> None:
    bodies = {f"/d{n % 40}/e{n % 3}/{n}.txt": b"body %d" % n for n in range(120)}
    with TinySource() as source:
        source.offer(bodies)
        done = subprocess.run(
            [str(script("resourcesync")), "pull", source.url, "mirror", "-o", "timeout=5s"],
            check=False,
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        )
        healed = resourcesync("pull", source.url, "mirror", cwd=tmp_path)

    assert done.returncode in (0, 3, 4, 8), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert healed.code == 0, healed.said
    assert files_of(tmp_path / "mirror") == {k.removeprefix("/"): v for k, v in bodies.items()}


@pytest.mark.parametrize("seed", [5, 10])
def test_a_memory_damaged_anywhere_never_costs_a_copy(world: OwnWorld, seed: int) -> None:
    world.pull()
    state = world.folder / ".resourcesync/state.db"
    good, before, luck = state.read_bytes(), world.home.files_on_disk(), random.Random(seed)
    told = 0
    for _ in range(90):
        at = luck.randrange(len(good))
        state.write_bytes(
            good[:at] + bytes([good[at] ^ (1 + luck.randrange(255))]) + good[at + 1 :]
        )
        try:
            world.pull(mode="baseline")
        except ResourceSyncError:  # any other error would be a fault of ours
            told += 1
        assert world.home.files_on_disk() == before
        for name in ("state.db-wal", "state.db-shm"):
            (state.parent / name).unlink(missing_ok=True)
    assert told > 1, "hardly any damage was met: nothing is proven"


def test_another_zone_locale_or_home_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TinySource() as source:
        source.offer({"/a.txt": b"a", "/b.txt": b"b"})
        assert resourcesync("pull", source.url, "mirror", cwd=tmp_path).code == 0
        for zone, locale in (("Pacific/Kiritimati", "C"), ("America/New_York", "POSIX"), ("", "")):
            monkeypatch.setenv("TZ", zone)
            monkeypatch.setenv("LC_ALL", locale)
            ran = resourcesync("pull", "mirror", "--mode", "baseline", "--json", cwd=tmp_path)
            assert ran.code == 0
            assert (ran.end["listed"]["unchanged"], ran.end["listed"]["applied"]) == (2, 0)
            assert resourcesync("audit", "mirror", cwd=tmp_path).code == 0


def test_of_many_runs_at_once_one_works_and_the_others_say_who_does(tmp_path: Path) -> None:
    with TinySource() as source:
        source.offer({f"/{number}.txt": b"x" * 1_000 for number in range(50)})
        with ExitStack() as held:
            runs = [
                held.enter_context(Started("pull", source.url, "mirror", "--json", cwd=tmp_path))
                for _ in range(5)
            ]
            ended = [(run.communicate(timeout=60)[0], run.returncode) for run in runs]

    assert {code for _, code in ended} <= {0, 9}
    assert any(code == 0 for _, code in ended)
    assert len(files_of(tmp_path / "mirror")) == 50


@pytest.mark.founding("0.9 §3", "A list has up to 50,000 entries", "`pull`")
def test_a_list_of_many_entries_is_pulled_in_little_memory(tmp_path: Path) -> None:
    """The process may have so much address space; what it lists would not fit, bodies and all."""
    many = 60_000
    with TinySource() as source:
        source.offer_entries(
            [source.entry(f"/{'n' * 100}{number}.txt", b"x") for number in range(many)]
        )
        done = subprocess.run(
            [str(script("resourcesync")), "pull", source.url, "mirror", "-n", "--json", "-q"],
            check=False,
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=110,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (2**27, 2**27)),
        )

    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert f'"pending":{many}' in done.stdout
