"""Hard lives on a disk that forgets: what an audit saw is never called in sync again as it is."""

import os
from pathlib import Path

import pytest

from resourcesync.destination.audits.fixity import SuspectMarker
from tests.support.simulated.lives import ROTTING, born, live

LIVES = 20


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _live(folder: Path, *seeds: int) -> None:
    for seed in seeds:
        style, max_entries, moves = born(seed, 40, ROTTING)
        live(folder / str(seed), style, max_entries, moves)


@pytest.mark.parametrize("seed", range(LIVES))
def test_damage_that_an_audit_found_is_mended_whatever_else_happens(
    tmp_path: Path, seed: int
) -> None:
    _live(tmp_path, seed)


def test_the_campaign_finds_an_audit_that_keeps_its_doubts_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SuspectMarker, "flush", lambda _: None)

    with pytest.raises(AssertionError, match="called in sync"):
        _live(tmp_path, *range(LIVES))
