"""Lives of mirrors whose Source writes as foreign software does, or is set back: nobody lies."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from campaigns.ablation import without
from resourcesync.destination import incremental
from resourcesync.destination.cursor import Following
from resourcesync.discovery.known_addresses import KnownAddresses
from tests.support.simulated.foreign_lives import live_foreign
from tests.support.simulated.regretting import live_regretting
from tests.support.simulated.software_lives import live_software

pytestmark = pytest.mark.usefixtures("without_fsync")

LIVES = 10
MOST = 60
REGRETTED = 24

Live = Callable[[Path, int], None]


def live_all(folder: Path, live: Live, seeds: Iterable[int]) -> None:
    for seed in seeds:
        live(folder / f"{seed}", seed)


@pytest.mark.parametrize("seed", range(LIVES))
@pytest.mark.parametrize("live", [live_foreign, live_software])
def test_a_mirror_of_foreign_software_never_says_that_it_is_in_sync_and_is_not(
    tmp_path: Path, live: Live, seed: int
) -> None:
    live(tmp_path / "life", seed)


@pytest.mark.parametrize(
    "seed",
    [
        5_019,  # DSpace, while a copy waits that no list names: a newer Change List was hidden
        2_757,  # DSpace, whose archive reaches back and proves nothing: an error without end
        4_163,  # CORE, where something was made in the second of the dump: nobody can decide it
    ],
)
def test_what_only_one_of_thousands_of_lives_found_is_mended(tmp_path: Path, seed: int) -> None:
    live_software(tmp_path / "life", seed)


@contextmanager
def without_addresses() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KnownAddresses, "add_source_addresses", lambda *_: None)
        yield


NEWER_LISTS = partial(without, "a newer Resource List is read")


@pytest.mark.parametrize(
    ("worse", "match", "first"),
    [(NEWER_LISTS, "in sync", 14), (without_addresses, "waits in the end", 2)],
    ids=["that does not look at new Resource Lists", "that does not follow its Source behind TLS"],
)
def test_the_lives_find_a_mirror(
    tmp_path: Path, worse: Callable[[], AbstractContextManager[None]], match: str, first: int
) -> None:
    with worse(), pytest.raises(AssertionError, match=match):
        live_all(tmp_path, live_software, range(first, MOST))


# An index that tells no times; a late change of a list that was not read before, and as the newest
# one; an old copy of a list, closed where its index calls it open, twice; a cached Resource List;
# two lists that dispute a resource that a pull then requests, also an earlier one.
@pytest.mark.parametrize(
    "seed", [*range(REGRETTED), 666, 185, 1692, 20375, 50267, 70118, 9185, 51113]
)
def test_a_mirror_never_says_that_it_is_in_sync_with_what_was_taken_back(
    tmp_path: Path, seed: int
) -> None:
    live_regretting(tmp_path / "life", seed)


def test_the_lives_find_a_mirror_that_believes_what_was_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental, "judge", lambda *_: Following())

    with pytest.raises(AssertionError, match="called in sync"):
        live_all(tmp_path, live_regretting, range(REGRETTED))
