"""Hard lives: whatever happens to a mirror and its Source, it ends in step, and never says it is
when it is not (invariants I1, I2, I5, I6 and I10 of the design)."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from resourcesync.destination.audits.fixity import SuspectMarker
from tests.support.simulated.lives import ROTTING, WEIGHTS, born, live

pytestmark = pytest.mark.usefixtures("without_fsync")

STEPS = 30
USUAL, ROTTEN = range(10), range(30, 40)
"""Lives, and those in which the disk forgets bytes, and audits see it; the campaign has more."""


def _live_all(folder: Path, seeds: Iterable[int]) -> None:
    for seed in seeds:
        _live(folder, seed)


def _live(folder: Path, seed: int) -> None:
    style, max_entries, moves = born(seed, STEPS, ROTTING if seed in ROTTEN else WEIGHTS)
    try:
        live(folder / str(seed), style, max_entries, moves)
    except Exception as error:
        error.add_note(f"the life of seed {seed}: {style}, {max_entries} entries, {moves}")
        raise


@pytest.mark.parametrize("seeds", [USUAL, ROTTEN], ids=["usual", "rotten"])
def test_a_mirror_ends_in_step_whatever_happens_to_it_and_never_lies(
    tmp_path: Path, seeds: Iterable[int]
) -> None:
    _live_all(tmp_path, seeds)


def test_the_lives_find_an_audit_that_keeps_its_doubts_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SuspectMarker, "flush", lambda _: None)

    with pytest.raises(AssertionError, match="called in sync"):
        _live_all(tmp_path, ROTTEN)
