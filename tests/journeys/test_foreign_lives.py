"""Lives of mirrors whose Source writes its lists as foreign software does: nobody lies."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.baseline import Baseline
from resourcesync.destination.dumps.dump_transfer import DumpTransfer
from resourcesync.destination.incremental import Incremental
from resourcesync.destination.lists.selection import ResourceSelection
from resourcesync.destination.transfers.commit import TransferTally
from tests.support.simulated.foreign_lives import live_foreign
from tests.support.simulated.software_lives import live_software

LIVES = 20
MOST = 60

Live = Callable[[Path, int], None]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def live_all(folder: Path, live: Live) -> None:
    for seed in range(MOST):
        live(folder / f"{seed}", seed)


@pytest.mark.parametrize("seed", range(LIVES))
@pytest.mark.parametrize("live", [live_foreign, live_software])
def test_a_mirror_of_foreign_software_never_says_that_it_is_in_sync_and_is_not(
    tmp_path: Path, live: Live, seed: int
) -> None:
    live(tmp_path / "life", seed)


@pytest.mark.parametrize(
    ("live", "whose", "what", "instead", "match"),
    [
        (live_foreign, Incremental, "_check_for_newer_list", False, "in sync"),
        (live_software, Incremental, "_check_for_newer_list", False, "in sync"),
        (live_foreign, ResourceSelection, "add_source_addresses", None, "waits in the end"),
        (live_software, ResourceSelection, "add_source_addresses", None, "waits in the end"),
        (live_software, DumpTransfer, "fetch_from_dumps", TransferTally(), "waits in the end"),
    ],
    ids=[
        "that does not look at new Resource Lists",
        "that does not look at new Resource Lists of known software",
        "that does not follow its Source behind TLS",
        "that does not follow known software behind TLS",
        "that does not look into packages",
    ],
)
def test_the_lives_find_a_mirror(  # noqa: PLR0917 - a row of the table
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    live: Live,
    whose: type,
    what: str,
    instead: Any,
    match: str,
) -> None:
    monkeypatch.setattr(whose, what, lambda *_, **__: instead)

    with pytest.raises(AssertionError, match=match):
        live_all(tmp_path, live)


def test_the_lives_find_a_mirror_that_takes_what_it_does_not_understand_for_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ResourceSelection, "add_source_addresses", lambda *_: None)
    monkeypatch.setattr(Baseline, "_check_understood", lambda _: True)

    with pytest.raises(AssertionError, match="lost, though the Source has it"):
        live_all(tmp_path, live_software)
