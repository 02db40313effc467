"""Hard lives of mirrors whose Source is set back, also while a pull lies dead: nobody lies."""

from pathlib import Path

import pytest

from resourcesync.destination import incremental
from resourcesync.destination.cursor import Following
from tests.support.simulated.regretting import live_regretting

pytestmark = pytest.mark.usefixtures("without_fsync")

LIVES = 24


def _live_all(folder: Path) -> None:
    for seed in range(LIVES):
        live_regretting(folder / f"{seed}", seed)


# An index that tells no times; a late change of a list that was not read before, and as the newest
# one; an old copy of a list, closed where its index calls it open, twice; a cached Resource List;
# two lists that dispute a resource that a pull then requests.
@pytest.mark.parametrize("seed", [*range(LIVES), 666, 185, 1692, 20375, 50267, 70118, 9185])
def test_a_mirror_never_says_that_it_is_in_sync_with_what_was_taken_back(
    tmp_path: Path, seed: int
) -> None:
    live_regretting(tmp_path / "life", seed)


def test_the_lives_find_a_mirror_that_believes_what_was_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental, "judge", lambda *_: Following())

    with pytest.raises(AssertionError, match="called in sync"):
        _live_all(tmp_path)
