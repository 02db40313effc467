"""Nothing delivered is not in sync: a sitemap of pages that the server does not have."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.worlds.network import BASE
from tests.support.worlds.plain_site import PlainSite
from tests.support.worlds.world import World


def site_of(folder: Path, *, listed: int, served: int) -> World[PlainSite]:
    """Return a site that lists pages below ``en/``, and serves the first of them."""
    site = PlainSite({f"en/{number:02}.html": f"page {number}" for number in range(listed)})
    for name in sorted(site.pages)[served:]:
        del site.pages[name]
    return World(folder / "mirror", site)


@pytest.mark.parametrize("accept", [None, True])
@pytest.mark.parametrize("listed", [1, 3, 12])
def test_a_site_of_which_no_page_is_there_is_in_sync_for_no_command(
    tmp_path: Path, listed: int, accept: bool | None
) -> None:
    world = site_of(tmp_path, listed=listed, served=0)

    for _ in range(2):
        report = world.pull(accept_missing=accept)

        assert (report.state, report.listed.absent) == (MirrorState.BEHIND, listed)
        assert report.faults.absent_below == f"{BASE}en/"
        assert world.status().state is MirrorState.BEHIND
        assert world.status().share is None
        for method in ("lists", "hash", "remote"):
            assert not world.audit(method=method).in_sync
        assert world.repair().state is MirrorState.BEHIND


@pytest.mark.parametrize(
    ("listed", "served", "state"),
    [
        (12, 5, MirrorState.BEHIND),
        (12, 6, MirrorState.IN_SYNC),
        (4, 1, MirrorState.BEHIND),
        (3, 1, MirrorState.IN_SYNC),
    ],
)
def test_a_first_pull_that_finds_most_pages_absent_is_not_in_sync(
    tmp_path: Path, listed: int, served: int, state: MirrorState
) -> None:
    world = site_of(tmp_path, listed=listed, served=served)

    for _ in range(2):  # it stays so until somebody accepts it
        report = world.pull()
        assert (report.state, report.listed.absent) == (state, listed - served)
        assert world.status().state is state
        assert world.audit().in_sync is (state is MirrorState.IN_SYNC)

    assert world.pull(accept_missing=True).state is MirrorState.IN_SYNC
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.audit().in_sync


def test_pages_that_go_later_are_accepted_until_none_is_left(tmp_path: Path) -> None:
    world = site_of(tmp_path, listed=12, served=12)
    world.pull()
    for name in sorted(world.source.pages)[2:]:
        del world.source.pages[name]
    world.source.dates = dict.fromkeys(world.source.dates, "2024-02-01")

    assert world.pull().state is MirrorState.IN_SYNC
    found = world.status()
    assert (found.resources, found.listed.right, found.wanted) == (12, 2, 12)
    assert found.share_text == "16.7 %"

    world.source.pages.clear()
    world.source.dates = dict.fromkeys(world.source.dates, "2024-03-01")
    assert world.pull().state is MirrorState.BEHIND
    assert world.status().share == 0.0
