"""Lives of mirrors whose Source writes its lists as foreign software does: nobody lies."""

import os
from pathlib import Path

import pytest

from resourcesync.destination.incremental import Incremental
from tests.support.foreign_lives import live_foreign

LIVES = 40


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _live_all(folder: Path) -> None:
    for seed in range(LIVES):
        live_foreign(folder / f"{seed}", seed)


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_mirror_of_foreign_software_never_says_that_it_is_in_sync_and_is_not(
    tmp_path: Path, seed: int
) -> None:
    live_foreign(tmp_path / "life", seed)


def test_the_lives_find_a_mirror_that_does_not_look_at_new_resource_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Incremental, "_is_list_newer", lambda *_: False)

    with pytest.raises(AssertionError, match="in sync"):
        _live_all(tmp_path)
