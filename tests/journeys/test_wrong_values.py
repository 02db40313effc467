"""Values of lists that nobody can read cost themselves: their resources are mirrored."""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.source.stored_plan import PublicationStep
from tests.support.worlds.dump_source import DumpSource, Packed, Told, zipped
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

LISTS = BASE + "resourcesync/"
RESOURCE_LIST = LISTS + "resourcelist.xml"
CHANGE_LIST = LISTS + "changelist.xml"
LARGEST = 2**63 - 1


def rewritten(
    world: World[PublishedSource], uri: str, pattern: str, value: str, *, count: int = 0
) -> Answer:
    body = world.source.honest(uri).body.decode()
    changed, found = re.subn(pattern, value, body, count=count)
    assert found
    return Answer(body=changed.encode())


def dropped(world: World[PublishedSource]) -> list[str]:
    return [
        str(fields["message"])
        for fields in world.told("warning")
        if fields["code"] == "values-dropped"
    ]


def of_list(world: World[PublishedSource], length: int) -> RunReport:
    world.source.publish()
    world.network.answers[RESOURCE_LIST] = rewritten(
        world, RESOURCE_LIST, 'length="1"', f'length="{length}"'
    )
    return world.pull()


def of_changes(world: World[PublishedSource], length: int) -> RunReport:
    world.source.publish()
    world.pull()
    world.source.publish_file("a.txt", "b")
    world.network.answers[CHANGE_LIST] = rewritten(
        world, CHANGE_LIST, 'length="1"', f'length="{length}"'
    )
    return world.pull()


@pytest.mark.parametrize("run", [of_list, of_changes])
@settings(max_examples=12, deadline=None)
@example(LARGEST)
@example(LARGEST + 1)
@example(2**64)
@given(length=st.integers(0, 10**25))
def test_no_number_ends_a_pull(
    run: Callable[[World[PublishedSource], int], RunReport], length: int
) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder) / "mirror")
        world.source.put("a.txt", "a")
        report = run(world, length)
        in_sync = length == 1 or length > LARGEST

        assert report.state is (MirrorState.IN_SYNC if in_sync else MirrorState.BEHIND)
        assert (report.listed.refused, report.failed) == (0, 0 if in_sync else 1)
        assert world.in_sync() is in_sync or run is of_changes
        assert len(dropped(world)) == (length > LARGEST)


def test_no_number_in_a_manifest_ends_a_pull(tmp_path: Path) -> None:
    for length in (LARGEST, LARGEST + 1):
        world = World(tmp_path / f"mirror-{length}", DumpSource())
        good = Told(name="a.txt", data=b"a")
        wrong = good.wrong(length=length)
        world.source.put_all([good])
        world.source.list_resources([wrong])
        world.source.dump(Packed(name="d.zip", body=zipped([wrong])))

        assert world.pull(dumps="always").failed == (length == LARGEST)


@pytest.mark.parametrize("time", ["soon", "2020-03-18 01:20:10", ""])
def test_a_change_whose_time_is_written_otherwise_is_followed(tmp_path: Path, time: str) -> None:
    world = World(tmp_path / "mirror")
    for name in "abc":
        world.source.put(f"{name}.txt", name)
    world.source.publish()
    world.pull()
    wrong = lambda _: rewritten(world, CHANGE_LIST, 'datetime="[^"]*"', f'datetime="{time}"')  # noqa: E731
    world.network.answers[CHANGE_LIST] = wrong
    for body in ("1", "22", "333"):
        world.source.put("a.txt", body)
        world.source.put(f"new{body}.txt", body)
        world.source.remove("b.txt")
        world.source.publish()
        report = world.pull()

        assert (report.state, report.listed.refused) == (MirrorState.IN_SYNC, 0)
        assert world.in_sync()

    again = world.pull()

    assert (again.updated, again.created, dropped(world)) == (0, 0, [])
    world.source.publish(PublicationStep.REBASE)
    world.source.publish_file("a.txt", "4444")
    if time.startswith("2020"):  # dated before the Resource List, which has another content
        assert world.pull().state is MirrorState.BEHIND
        assert world.texts()["a.txt"] == "333"
        world.source.publish(PublicationStep.REBASE)
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
