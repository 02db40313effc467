"""Patches: the newest version made of the very version before, or else fetched whole (§14.4)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import StorageError
from resourcesync.ports.patches import PatchFormat
from tests.support.worlds.linked_things import put_patch
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

NAME = "a.json"
URI, PATCH = BASE + NAME, f"{BASE}patches/{NAME}"
JSON = "application/json-patch+json"
PADDING = "x" * 400


def version(number: int) -> bytes:
    return json.dumps({"number": number, "padding": PADDING}).encode()


def to(number: int) -> bytes:
    return json.dumps([{"op": "replace", "path": "/number", "value": number}]).encode()


@pytest.fixture
def world(tmp_path: Path) -> World[LooseSource]:
    world = World(tmp_path / "mirror", LooseSource())
    world.source.put(NAME, version(1))
    world.source.put("other.txt", b"other")
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    return world


def update(world: World[LooseSource], number: int, patch: bytes | None = None) -> None:
    world.source.put(NAME, version(number))
    if patch is not None:
        put_patch(world, NAME, JSON, patch)
    world.source.publish()


def check_whole(world: World[LooseSource], report: RunReport, number: int) -> None:
    assert report.state is MirrorState.IN_SYNC
    assert (report.updated, report.fetched.patched) == (1, 0)
    assert world.files()[URI] == version(number)
    assert URI in world.fetcher.asked


def test_a_version_that_failed_before_is_not_taken_for_the_version_before(
    world: World[LooseSource],
) -> None:
    world.network.answers[URI] = Answer(status=500)
    update(world, 2)
    assert world.pull().failed == 1
    del world.network.answers[URI]
    update(world, 3, to(3))
    check_whole(world, world.pull(), 3)
    assert PATCH not in world.fetcher.asked


def test_a_copy_whose_bytes_were_altered_behind_its_back_is_not_patched(
    world: World[LooseSource],
) -> None:
    path = world.folder / NAME
    known: dict[str, str] = {}

    def blinded(port: Any) -> Any:
        if hasattr(port, "signature"):
            honest = port.signature
            known.setdefault(NAME, honest(NAME))
            port.signature = lambda path: known.get(path) or honest(path)
        return port

    world.home.before = blinded
    world.pull()
    path.write_bytes(version(1).replace(b"x", b"y"))
    update(world, 2, to(2))
    report = world.pull()
    assert (report.fetched.patched, report.fetched.unpatched) == (0, 1)
    assert "changed locally" in str(world.told("patch")[0]["reason"])
    assert path.read_bytes() == version(2)


@pytest.mark.parametrize(
    ("patch", "more", "why"),
    [
        (to(3), None, "not as listed"),
        (b'[{"op": "test", "path": "/number", "value": 7}]', None, "is not equal to tested value"),
        (b"no patch", None, "not usable JSON"),
        (b'[{"op": "replace"}]', None, "must have a"),
        (
            to(2),
            f' hash="sha-256:{"0" * 64}" length="{len(to(2))}"',
            "does not match the hash of its link",
        ),
        (to(2), f' length="{len(to(2)) + 1}"', "B, not"),
        (to(2), ' length="10"', "more bytes than allowed"),
    ],
)
def test_a_patch_of_no_use_costs_a_request_and_the_resource_is_fetched_whole(
    world: World[LooseSource], patch: bytes, more: str | None, why: str
) -> None:
    world.source.put(NAME, version(2))
    put_patch(world, NAME, JSON, patch, more)
    world.source.publish()
    report = world.pull()
    check_whole(world, report, 2)
    assert report.fetched.unpatched == 1
    (told,) = world.told("patch")
    assert (told["uri"], told["path"]) == (URI, NAME)
    assert why in str(told["reason"])


def test_a_patch_without_a_length_is_stopped_when_it_is_as_large_as_the_resource(
    world: World[LooseSource],
) -> None:
    world.source.put(NAME, version(2))
    put_patch(world, NAME, JSON, to(2) + b" " * len(version(2)), "")
    world.source.publish()
    report = world.pull()
    check_whole(world, report, 2)
    assert report.fetched.unpatched == 1
    update(world, 3)
    world.pull()
    world.source.put(NAME, version(4))
    put_patch(world, NAME, JSON, to(4), "")
    world.source.publish()
    assert world.pull().fetched.patched == 1


@pytest.mark.founding("0.9 §8.3", "An unknown type of patch is ignored", "`pull`")
@pytest.mark.parametrize(
    ("media_type", "patch", "here", "mode"),
    [
        ("application/x-unknown", to(2), b"", "auto"),
        ("", to(2), b"", "auto"),
        ("application/json-patch+jsonx", to(2), b"", "auto"),
        (JSON, to(2) + b" " * (len(version(2)) - len(to(2))), b"", "auto"),
        (JSON, to(2), version(1).replace(b"x", b"y"), "auto"),
        (JSON, to(2), b"", "baseline"),
    ],
    ids=[
        "an unknown format", "no format", "nearly a format", "as large as the resource",
        "for a copy that was altered here", "in a baseline",
    ],
)  # fmt: skip
def test_a_patch_that_cannot_be_used_is_not_asked_for(
    world: World[LooseSource], media_type: str, patch: bytes, here: bytes, mode: str
) -> None:
    if here:
        (world.folder / NAME).write_bytes(here)
    world.source.put(NAME, version(2))
    put_patch(world, NAME, media_type, patch)
    world.source.publish()
    check_whole(world, world.pull(mode=mode), 2)
    assert PATCH not in world.fetcher.asked


@pytest.mark.parametrize("style", [{"hashes": False}, {"times": False, "lastmods": False}], ids=str)
def test_without_a_strong_hash_or_times_nothing_is_patched(
    tmp_path: Path, style: dict[str, bool]
) -> None:
    world = World(tmp_path / "mirror", LooseSource(**style))
    world.source.publish_file(NAME, version(1))
    world.pull()
    update(world, 2, to(2))
    assert (world.pull().fetched.patched, PATCH in world.fetcher.asked) == (0, False)
    assert world.files()[URI] == version(2)


def test_a_patch_waits_with_its_resource_and_is_used_in_a_later_run(
    world: World[LooseSource],
) -> None:
    update(world, 2, to(2))
    world.network.answers[PATCH] = StorageError("no more")
    with pytest.raises(StorageError):
        world.pull()
    world.network.answers[PATCH] = Answer(body=to(2))
    assert URI not in world.fetcher.asked
    report = world.pull()
    assert (report.fetched.patched, report.updated, world.files()[URI]) == (1, 1, version(2))


Apply = Callable[[BinaryIO, BinaryIO, BinaryIO, int], None]


def replaced(previous: BinaryIO, patch: BinaryIO, result: BinaryIO, limit: int) -> None:
    old, new = patch.read().split(b">")
    data = previous.read().replace(old, new)
    assert len(data) <= limit
    result.writelines(bytes([byte]) for byte in data)


def failing(_previous: BinaryIO, _patch: BinaryIO, result: BinaryIO, _limit: int) -> None:
    result.write(b"half")
    raise ZeroDivisionError("a plug-in may raise anything")


def endless(_previous: BinaryIO, _patch: BinaryIO, result: BinaryIO, _limit: int) -> None:
    while True:
        result.write(b"more" * 100)


@pytest.mark.parametrize(
    ("apply", "patched", "why"),
    [
        (replaced, 1, ""),
        (failing, 0, "ZeroDivisionError: a plug-in may raise anything"),
        (endless, 0, "longer than listed"),
    ],
)
def test_a_plug_in_makes_the_result_and_a_bad_one_harms_nothing(
    world: World[LooseSource], apply: Apply, patched: int, why: str
) -> None:
    world.home.patches = lambda: {"application/x-own": PatchFormat(load=lambda: apply)}
    world.source.put(NAME, version(2))
    put_patch(world, NAME, "application/x-own", b'"number": 1>"number": 2')
    world.source.publish()
    report = world.pull()
    assert (report.fetched.patched, report.fetched.unpatched) == (patched, 1 - patched)
    assert (report.state, world.files()[URI]) == (MirrorState.IN_SYNC, version(2))
    assert [why in str(told["reason"]) for told in world.told("patch")] == [True] * (1 - patched)
    assert not list((world.folder / ".resourcesync/tmp").iterdir())


@pytest.mark.founding("D-Lib §3", "XML is updated by XML Patch", "`pull`")
def test_xml_is_patched_too(world: World[LooseSource]) -> None:
    chunk = b'<r><n a="1">one</n>' + b" " * 300 + b"</r>"
    world.source.publish_file("b.xml", chunk)
    world.pull()
    world.source.put("b.xml", chunk.replace(b"one", b"two"))
    patch = b"<p><replace sel='r/n/text()'>two</replace></p>"
    put_patch(world, "b.xml", "application/xml-patch+xml", patch)
    world.source.publish()
    assert world.pull().fetched.patched == 1
    assert world.files()[BASE + "b.xml"] == chunk.replace(b"one", b"two")


def test_after_many_patches_of_no_use_no_more_are_tried_in_a_run(world: World[LooseSource]) -> None:
    for number in range(40):
        world.source.put(f"{number:02}.json", version(1))
    world.source.publish()
    world.pull()
    for number in range(40):
        world.source.put(f"{number:02}.json", version(2))
        put_patch(world, f"{number:02}.json", JSON, to(3))
    world.source.publish()
    report = world.pull()
    assert (report.updated, report.fetched.unpatched, report.state) == (40, 16, MirrorState.IN_SYNC)
    assert sum("/patches/" in uri for uri in world.fetcher.asked) == 16
