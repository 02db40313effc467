"""A mirror in a bucket of a real server: kept, lost with its machine, refused, interrupted."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from resourcesync.errors import StorageError
from resourcesync_s3 import store as objects
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.store import open_store
from tests.support.commands.command_line import LATER, MIRRORED, Said
from tests.support.commands.forking import Forked
from tests.support.commands.run import environment, script
from tests.support.servers.interposed import Answer, Interposed
from tests.support.servers.tiny_source import TinySource


@pytest.fixture(autouse=True)
def own_home(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "home"))


@pytest.fixture
def other(bucket: str) -> Bucket:
    """Open the bucket as another program does, with nobody between."""
    return Bucket(bucket, patience=5)


def contents(address: str) -> dict[str, bytes]:
    store = open_store(address)
    found = {key: store.open(key) for key in store.keys("") if not key.startswith(".resourcesync/")}
    return {key: stream.read() for key, stream in found.items() if stream is not None}


def own(address: str, prefix: str) -> list[str]:
    return list(open_store(address).keys(f".resourcesync/{prefix}"))


def test_a_mirror_is_kept_in_a_bucket(
    source: TinySource, bucket: str, said: Said, here: Path
) -> None:
    assert run(["pull", source.url, bucket]) == 0
    assert contents(bucket) == MIRRORED
    later = {f"/{path}": body for path, body in MIRRORED.items() if "0007" not in path}
    later["/objects/0001.txt"] = b"newer than that\n"
    for day in (2, 3):
        source.offer(later, at=f"2026-01-0{day}T00:00:00Z")
        assert run(["pull", bucket, "--delete", "absent", "--max-delete", "50%"]) == 0
    expected = {path.removeprefix("/"): body for path, body in later.items()}
    assert contents(bucket) == expected
    assert [key.endswith("-0007.txt") for key in own(bucket, "trash/")] == [True]

    said.readouterr()
    assert run(["trash", "list", bucket]) == 0
    assert said.readouterr().out.endswith("Trash     1 file, 9 B\n")
    assert run(["trash", "restore", bucket, "--all"]) == 0
    assert contents(bucket) == {**expected, "objects/0007.txt": MIRRORED["objects/0007.txt"]}
    assert run(["repair", bucket, "--delete"]) == 0
    assert run(["trash", "empty", bucket, "--all"]) == 0
    assert own(bucket, "trash/") == []
    assert contents(bucket) == expected


def test_a_mirror_whose_state_was_lost_takes_over_the_copies_in_its_bucket(
    source: TinySource, bucket: str, here: Path
) -> None:
    assert run(["pull", source.url, bucket]) == 0
    shutil.rmtree(here / "home")
    later = {f"/{path}": body for path, body in MIRRORED.items()}
    old = later["/objects/0001.txt"]
    later |= {"/objects/0001.txt": b"newer than that\n", "/objects/0099.txt": b"new\n"}
    source.offer(later, at=LATER)
    source.asked.clear()

    assert run(["pull", source.url, bucket, "-o", "state=other"]) == 0

    asked = [one.target for one in source.asked if one.target.startswith("/objects/")]
    assert sorted(asked) == ["/objects/0001.txt", "/objects/0099.txt"], "the rest is proven"
    assert contents(bucket) == {path.removeprefix("/"): body for path, body in later.items()}
    (place,) = own(bucket, "quarantine/")
    stream = open_store(bucket).open(place)
    assert stream is not None
    assert stream.read() == old, "nothing is lost, even if a new state does not know it"
    assert run(["audit", "other"]) == 0


def test_a_wrong_secret_and_a_missing_bucket_are_told_without_the_secret(
    source: TinySource, bucket: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["pull", source.url, "s3://no-such-bucket/x", "-o", "state=state"]) == 8
    assert "there is no bucket s3://no-such-bucket" in said.readouterr().err
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-and-wrong")
    assert run(["pull", source.url, bucket, "-o", "state=state"]) == 8
    told = said.readouterr().err
    assert "refuses the request" in told
    assert "s3cret" not in told
    assert run(["pull", source.url, "s3://Not_A_Bucket/x", "-o", "state=state"]) == 2
    assert not Path("state").exists()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_body_that_breaks_off_is_read_on_or_not_at_all(
    bucket: str, other: Bucket, between: Interposed, *, is_replaced: bool
) -> None:
    old, new = (bytes([number]) * 2_000_000 for number in (1, 2))
    other.put("a.bin", old)
    cuts: list[str] = []

    def cut(method: str, target: str, body: bytes) -> Answer | None:
        if method != "GET" or cuts:
            return None
        cuts.append(target)
        if is_replaced:
            other.put("a.bin", new)
        return Answer(200, body[:1_000_000], len(body))

    between.spoil_answer = cut
    stream = open_store(bucket).open("a.bin")
    assert stream is not None
    with stream:
        if is_replaced:
            with pytest.raises(StorageError, match="failed while reading"):
                stream.read()
        else:
            assert stream.read() == old
    assert cuts


def test_who_writes_meanwhile_is_not_overwritten(
    source: TinySource, bucket: str, other: Bucket, between: Interposed
) -> None:
    def competes(method: str, target: str) -> Answer | None:
        if method == "PUT" and target.endswith("/objects/0003.txt"):
            between.spoil = lambda method, target: None
            other.put("objects/0003.txt", b"somebody's own\n")
        return None

    between.spoil = competes
    assert run(["pull", source.url, bucket, "-o", "state=state"]) == 0
    assert contents(bucket) == MIRRORED
    (aside,) = own(bucket, "quarantine/")
    stream = other.open(aside)
    assert stream is not None
    assert stream.read() == b"somebody's own\n"


def test_a_hold_that_was_lost_ends_the_run_and_the_next_one_goes_on(
    source: TinySource,
    bucket: str,
    other: Bucket,
    between: Interposed,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def taken(method: str, target: str) -> Answer | None:
        if method == "PUT" and target.endswith("/objects/0003.txt"):
            between.spoil = lambda method, target: None
            other.put(".resourcesync/lease", b"{}")
            time.sleep(1)
        return None

    between.spoil = taken
    with monkeypatch.context() as short:
        short.setattr(objects, "LEASE_SECONDS", 2.0)
        short.setattr(objects.BucketStore, "max_in_flight", 1)  # some are put later
        assert run(["pull", source.url, bucket, "-o", "state=state"]) == 9
    assert "was lost" in said.readouterr().err
    other.put(".resourcesync/lease", b'{"who": "a", "holder": "", "seconds": 600}')
    assert run(["pull", "state"]) == 9
    assert "who    a" in said.readouterr().err
    other.remove(".resourcesync/lease")
    assert run(["pull", "state"]) == 0
    assert contents(bucket) == MIRRORED


def test_killed_in_the_middle_it_goes_on_at_once_and_another_machine_waits(
    source: TinySource, bucket: str, between: Interposed, said: Said, here: Path
) -> None:
    words = ("pull", source.url, bucket, "-o", "state=state")
    puts: list[str] = []

    def kills(method: str, target: str) -> Answer | None:
        if method == "PUT" and "/objects/" in target:
            puts.append(target)
            if len(puts) == 5:
                process.signal(signal.SIGKILL)
        return Answer(0, b"") if len(puts) >= 5 else None

    between.spoil = kills
    with open(os.devnull, "r+b") as nothing:
        streams = (nothing.fileno(),) * 3
        program, variables = script("resourcesync"), environment(here)
        with Forked(program, *words, cwd=here, env=variables, streams=streams) as process:
            assert process.wait(60) == -signal.SIGKILL
    between.spoil = lambda method, target: None
    there = contents(bucket)
    assert there.items() <= MIRRORED.items()
    assert len(there) < len(MIRRORED)
    assert run(["pull", source.url, bucket, "-o", f"state={bucket}"]) == 9
    assert "another run holds" in said.readouterr().err
    assert run(words) == 0
    assert contents(bucket) == MIRRORED
    assert own(bucket, "quarantine/") == []
