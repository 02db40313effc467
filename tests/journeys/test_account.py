"""Everything that is listed is accounted for: unchanged, applied, pending or refused (I10)."""

from resourcesync.destination.reports import MirrorState, Mode, RunReport
from resourcesync.destination.scope import Filters
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


def _account(report: RunReport) -> tuple[int, int, int, int, int]:
    return (
        report.listed.total,
        report.listed.unchanged,
        report.listed.applied,
        report.listed.pending,
        report.listed.refused,
    )


def test_a_first_pull_applies_everything(world: World[PublishedSource]) -> None:
    assert _account(world.pull()) == (41, 0, 41, 0, 0)


def test_a_pull_without_news_finds_everything_unchanged(world: World[PublishedSource]) -> None:
    world.pull()

    assert _account(world.pull()) == (41, 41, 0, 0, 0)
    assert _account(world.pull(mode="baseline")) == (41, 41, 0, 0, 0)


def test_what_cannot_be_had_is_pending_and_what_changed_is_applied(
    world: World[PublishedSource],
) -> None:
    world.pull()
    world.source.put("objects/0001.html", "another")
    world.source.put("objects/0002.html", "another one")
    world.source.put("objects/new.html", "new")
    world.source.put("objects/new2.html", "new too")
    world.source.remove("objects/0005.html")
    world.source.publish()
    world.network.answers[BASE + "objects/0001.html"] = Answer(status=404)
    world.network.answers[BASE + "objects/new2.html"] = Answer(status=404)

    report = world.pull()

    assert report.mode is Mode.INCREMENTAL
    assert _account(report) == (42, 38, 2, 2, 0)
    assert _account(world.pull(mode="baseline")) == (42, 40, 0, 2, 0)


def test_a_dry_run_counts_what_would_be_done_as_pending(world: World[PublishedSource]) -> None:
    assert _account(world.pull(dry_run=True)) == (41, 0, 0, 41, 0)
    world.pull()
    world.source.put("objects/0001.html", "another")
    world.source.put("objects/new.html", "new")
    world.source.publish()

    assert _account(world.pull(dry_run=True)) == (42, 40, 0, 2, 0)


def test_a_pull_that_ends_at_the_first_failure_accounts_for_the_rest(
    world: World[PublishedSource],
) -> None:
    world.network.answers[BASE + "objects/0003.html"] = Answer(status=404)

    report = world.pull(fail_fast=True)

    assert report.state is MirrorState.BEHIND
    assert report.listed.total == 41
    assert report.listed.applied + report.listed.pending == 41
    assert report.listed.pending >= 37


def test_copies_that_are_kept_though_no_longer_listed_are_not_counted_as_listed(
    world: World[PublishedSource],
) -> None:
    world.pull()
    world.source.remove("objects/0005.html")
    world.source.publish()

    assert _account(world.pull(delete="never")) == (40, 40, 0, 0, 0)
    assert _account(world.pull(delete="never")) == (40, 40, 0, 0, 0)
    assert _account(world.pull(delete="never", mode="baseline")) == (40, 40, 0, 0, 0)


def test_a_kept_copy_that_is_listed_again_counts_as_listed(world: World[PublishedSource]) -> None:
    world.pull()
    world.source.remove("objects/0005.html")
    world.source.publish()
    world.pull(delete="never")
    world.source.put("objects/0005.html", "it is back")
    world.source.publish()

    assert _account(world.pull(delete="never")) == (41, 40, 1, 0, 0)
    assert _account(world.pull(delete="never")) == (41, 41, 0, 0, 0)


def test_copies_that_the_filters_do_not_want_are_not_counted(world: World[PublishedSource]) -> None:
    world.pull()
    filters = Filters(exclude=("000*.html",))

    assert _account(world.pull(filters=filters)) == (31, 31, 0, 0, 0)
    world.source.put("objects/0005.html", "not wanted")
    world.source.publish()
    assert _account(world.pull()) == (31, 31, 0, 0, 0)
