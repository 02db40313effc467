"""A mirror that an earlier version wrote goes on where it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.cursor import Cursor, Phase
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.sync_state import CURSOR_NOTE, SyncState
from resourcesync.ports.mirror import ProcessedDocument, StateTransaction
from resourcesync.source.plan import ChangeLists, Policy
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import changed, killed
from tests.support.worlds.world import World

_NOVEMBER = Path(__file__).parents[1] / "data" / "mirrors" / "2026-11.json"
"""Notes and records of documents as the version before the cursor wrote them."""


def followed(world: World[PublishedSource]) -> None:
    for number in range(5):
        world.source.put(f"{number}.html", f"{number}")
    world.source.publish()
    world.pull()
    changed(world, "1.html", "new.html", text="1")
    world.source.remove("2.html")
    world.source.publish()
    world.pull()


def closed(world: World[PublishedSource]) -> None:
    world.source.policy = Policy(change_lists=ChangeLists.PER_RUN)
    followed(world)


def killed_while_storing(world: World[PublishedSource]) -> None:
    followed(world)
    changed(world, "3.html", text="3, again")
    assert killed(world, 3)


def repaired(world: World[PublishedSource]) -> None:
    followed(world)
    changed(world, "3.html", text="3, again")
    with world.destination() as destination:
        destination.repair(None, PullOptions())


def _make_earlier(world: World[PublishedSource], written: dict[str, Any]) -> Cursor:
    """Put the notes of the earlier version in the place of the cursor; return what they say."""
    documents = [ProcessedDocument(*row) for row in written["documents"]]
    with world.state() as state:
        notes = written["notes"] | {CURSOR_NOTE: ""}
        state.commit(StateTransaction(documents=documents, only_documents=True, notes=notes))
        return SyncState(state).cursor


@pytest.mark.parametrize(
    ("history", "phase", "mode"),
    [
        (followed, Phase.FOLLOWING, Mode.INCREMENTAL),
        (closed, Phase.FOLLOWING, Mode.INCREMENTAL),
        (killed_while_storing, Phase.BASELINE_DUE, Mode.BASELINE),
        (repaired, Phase.REPAIRED, Mode.BASELINE),
    ],
)
def test_a_mirror_of_the_version_before_the_cursor_goes_on(
    tmp_path: Path, history: Callable[[World[PublishedSource]], None], phase: Phase, mode: Mode
) -> None:
    world = World(tmp_path / "mirror")
    history(world)
    cursor = _make_earlier(world, json.loads(_NOVEMBER.read_text())[history.__name__])
    assert cursor.phase is phase
    changed(world, "after.html", text="after")

    report = world.pull()

    assert (report.state, report.mode) == (MirrorState.IN_SYNC, mode)
    assert report.created + report.updated <= 2, "what is here is not fetched again"
    assert world.in_sync()
    changed(world, "later.html", text="later")
    assert world.pull().mode is Mode.INCREMENTAL


def test_an_unchanged_mirror_of_the_version_before_the_cursor_fetches_nothing(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror")
    followed(world)
    _make_earlier(world, json.loads(_NOVEMBER.read_text())["followed"])

    report = world.pull()

    assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.UNCHANGED)
    assert world.asked_resources() == []


@pytest.mark.parametrize(
    ("note", "phase"),
    [
        ({"hole": "1"}, Phase.GAP),
        ({"hole": "1", "cut-list": "1"}, Phase.CUT_LIST),
        ({"passed-over": "1"}, Phase.BASELINE_DUE),
        ({"cut-list": "1", "baseline-due": "1"}, Phase.BASELINE_DUE),
        ({"baseline-due": "1", "taken-back": "1"}, Phase.ROLLED_BACK),
        ({"cut-off-changes": "[]", "changes-beyond": "[]"}, Phase.FOLLOWING),
    ],
)
def test_each_flag_of_the_version_before_the_cursor_is_a_phase(
    tmp_path: Path, note: dict[str, str], phase: Phase
) -> None:
    world = World(tmp_path / "mirror")
    followed(world)
    written = json.loads(_NOVEMBER.read_text())["followed"]
    written["notes"] |= note

    assert _make_earlier(world, written).phase is phase
