"""Large resources that break off are continued by the next run (F12-F14); raw sockets."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.adapters.http import FetchSettings
from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.mirror.staging import MAX_PARTS, MIN_SAVED_BYTES
from resourcesync.adapters.system import SystemClock
from resourcesync.app import fetchers
from resourcesync.app.fetchers import fetch_settings
from resourcesync.destination.reports import MirrorState
from resourcesync.settings.mirror import Network
from tests.support.servers.hostile_server import CLOSE, Asked, Step
from tests.support.sources.scripted_source import ScriptedSource, cut_at, serve

BODY = random.Random(5).randbytes(3 * MIN_SAVED_BYTES)
OTHER = random.Random(6).randbytes(3 * MIN_SAVED_BYTES)
HALF = len(BODY) // 2
TAG = '"v1"'


def break_off(source: ScriptedSource, at: int = HALF, target: str = "/big.bin") -> None:
    source.server.on(target, cut_at(at, BODY, TAG, CLOSE))
    assert source.pull().state is MirrorState.BEHIND


def test_a_part_is_kept_and_the_next_run_asks_for_the_rest_only(source: ScriptedSource) -> None:
    source.put("/big.bin", BODY)
    break_off(source)
    assert len(source.temporary()) == 2

    source.server.on("/big.bin", serve(BODY, TAG))
    report = source.pull()

    assert source.ranges("/big.bin") == [f"bytes={HALF}-"]
    assert (report.state, report.fetched.verified) == (MirrorState.IN_SYNC, 1)
    assert source.file("/big.bin") == BODY
    assert source.temporary() == []


def test_a_resource_that_had_its_time_is_continued_by_the_next_run(
    source: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurried(network: Network, source: str) -> FetchSettings:
        return replace(fetch_settings(network, source), deadline=0.3, deadline_rate=64 << 20)

    def trickle(asked: Asked) -> Iterator[Step]:
        yield from cut_at(HALF, BODY, TAG, CLOSE)[:1]
        for at in range(HALF, len(BODY), 100):  # faster than the least rate
            yield BODY[at : at + 100]
            yield 0.02

    source.put("/big.bin", BODY)
    source.put("/small.txt", b"small")
    source.server.on("/big.bin", trickle)
    with monkeypatch.context() as patched:
        patched.setattr(fetchers, "fetch_settings", hurried)
        report = source.pull(Network(retries=3))
    assert (report.state, report.created) == (MirrorState.BEHIND, 1)
    assert [failure.code for failure in report.failures] == ["too-slow"]
    assert len(source.ranges("/big.bin")) == 1

    source.server.on("/big.bin", serve(BODY, TAG))
    assert source.pull().state is MirrorState.IN_SYNC
    (asked,) = source.ranges("/big.bin")
    assert asked is not None
    assert source.file("/big.bin") == BODY


def test_a_resource_that_changed_between_two_runs_is_fetched_whole(source: ScriptedSource) -> None:
    source.put("/big.bin", BODY)
    break_off(source)
    source.put("/big.bin", OTHER)
    source.publish("2026-01-02T00:00:00Z")

    assert source.pull().state is MirrorState.IN_SYNC
    assert source.ranges("/big.bin") == [None]  # the list tells of other bytes: the part is no use
    assert source.file("/big.bin") == OTHER


def test_a_part_that_only_lacked_its_end_of_run_needs_no_request(source: ScriptedSource) -> None:
    source.put("/big.bin", BODY)
    break_off(source)
    tmp = source.folder / ".resourcesync/tmp"
    part = next(path for path in tmp.iterdir() if not path.name.endswith(".part"))
    part.write_bytes(BODY)

    assert source.pull().state is MirrorState.IN_SYNC
    assert source.ranges("/big.bin") == []
    assert source.file("/big.bin") == BODY


@pytest.mark.parametrize("digest", ["", "md5:d41d8cd98f00b204e9800998ecf8427e"])
def test_without_a_strong_digest_no_part_outlives_its_run(
    source: ScriptedSource, digest: str
) -> None:
    source.put("/big.bin", BODY, digest=digest)
    break_off(source)

    assert source.temporary() == []


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 20_000,
        b'{"of": 1, "validator": "x"}',
        b'{"of": "x"}',
        json.dumps({"of": "x", "validator": 'a"\r\nX: y'}).encode(),
        json.dumps({"of": "x", "validator": ""}).encode(),
        json.dumps({"of": "x" * 40_000, "validator": '"v"'}).encode(),
    ],
)
def test_a_note_that_cannot_be_understood_goes_with_its_part(
    source: ScriptedSource, note: bytes
) -> None:
    source.put("/small.txt", b"small")
    source.pull()
    tmp = source.folder / ".resourcesync/tmp"
    (tmp / "a-1").write_bytes(BODY)
    (tmp / "a-1.part").write_bytes(note)
    (tmp / "b-1.part").write_text('{"of": "y", "validator": "v"}')

    assert source.pull().state is MirrorState.IN_SYNC
    assert source.temporary() == []


def test_links_planted_as_parts_lead_nowhere(source: ScriptedSource, tmp_path: Path) -> None:
    uri = source.put("/big.bin", BODY)
    break_off(source)
    tmp = source.folder / ".resourcesync/tmp"
    part = next(path for path in tmp.iterdir() if not path.name.endswith(".part"))
    canary = tmp_path / "canary"
    canary.write_bytes(OTHER)
    part.unlink()
    part.symlink_to(canary)
    source.server.on("/big.bin", serve(BODY, TAG))

    assert source.pull().state is MirrorState.IN_SYNC
    assert uri
    assert canary.read_bytes() == OTHER
    assert source.file("/big.bin") == BODY


def plant(folder: Path, names: int, *, age: float = 0.0) -> None:
    for number in range(names):
        path = folder / f"a-{number}"
        path.write_bytes(b"")
        os.truncate(path, MIN_SAVED_BYTES)
        moment = path.stat().st_mtime - age - number
        os.utime(path, (moment, moment))
        (folder / f"a-{number}.part").write_text(json.dumps({"of": f"{number}", "validator": "v"}))


def test_parts_are_bounded_in_number_and_age(tmp_path: Path) -> None:
    root = tmp_path / "mirror"
    with MirrorFolder(root, SystemClock()):
        pass
    tmp = root / ".resourcesync/tmp"
    plant(tmp, MAX_PARTS + 10)
    with MirrorFolder(root, SystemClock()):
        names = {path.name for path in tmp.iterdir()}
        assert names == {f"a-{n}{end}" for n in range(MAX_PARTS) for end in ("", ".part")}
    plant(tmp, MAX_PARTS + 10, age=8 * 86_400)
    with MirrorFolder(root, SystemClock()):
        assert list(tmp.iterdir()) == []


def test_parts_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "mirror"
    with MirrorFolder(root, SystemClock()):
        pass
    tmp = root / ".resourcesync/tmp"
    plant(tmp, 5)
    limit = "resourcesync.adapters.mirror.staging.MAX_PART_BYTES"
    monkeypatch.setattr(limit, 3 * MIN_SAVED_BYTES)
    with MirrorFolder(root, SystemClock()):
        found = {path.name for path in tmp.iterdir() if path.suffix != ".part"}
        assert found == {"a-0", "a-1", "a-2"}


def test_a_run_that_is_killed_leaves_its_part_for_the_next(source: ScriptedSource) -> None:
    source.put("/big.bin", BODY)
    (first, *_) = cut_at(2 * MIN_SAVED_BYTES, BODY, TAG, CLOSE)
    source.server.on("/big.bin", [first, 30.0])
    command = [sys.executable, "-m", "resourcesync", "pull", source.uri, str(source.folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        tmp = source.folder / ".resourcesync/tmp"
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not (
            tmp.exists() and any(path.suffix == ".part" for path in tmp.iterdir())
        ):
            time.sleep(0.02)
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    source.server.on("/big.bin", serve(BODY, TAG))

    assert source.pull().state is MirrorState.IN_SYNC
    (asked,) = source.ranges("/big.bin")
    assert asked is not None
    assert MIN_SAVED_BYTES <= int(asked[6:-1]) <= 2 * MIN_SAVED_BYTES
    assert source.file("/big.bin") == BODY
