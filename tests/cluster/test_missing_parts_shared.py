"""A part of a list that workers cannot read: the others are followed, nothing is taken for gone."""

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ResourceMissingError, SourceUnavailableError
from resourcesync.ports import FetchRequest
from resourcesync.source.plan import PublicationStep
from tests.support.simulated.shared_world import SharedCampaign
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE, World


class Unmoved(random.Random):
    """No worker dies, and what was done is folded into the table."""

    def random(self) -> float:
        return 0.5


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedCampaign]:
    """A Source whose Resource List has two parts."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    world = SharedCampaign(tmp_path / "mirror", style=None, max_entries=3)
    world.luck = Unmoved()
    for number in range(6):
        world.put(f"{number}.txt", f"{number}")
    world.publish()
    yield world
    world.close()


def parts_of(source: SharedCampaign) -> list[str]:
    body = source.honest(BASE + "resourcesync/resourcelist.xml").body.decode()
    return [name.partition("</loc>")[0] for name in body.split("<sitemap><loc>")[1:]]


@pytest.mark.parametrize("answer", [Answer(status=404), Answer(body=b"<html>log in</html>")])
def test_the_other_parts_are_brought_and_the_mirror_is_behind(
    source: SharedCampaign, answer: Answer
) -> None:
    missing = parts_of(source)[0]
    source.answers[missing] = answer

    for created in (3, 0):
        report = source.pull()

        assert (report.created, report.unread, report.refused) == (created, 1, 1)
        assert report.state is MirrorState.BEHIND
    del source.answers[missing]

    assert source.pull().state is MirrorState.IN_SYNC
    assert source.in_sync()


def test_what_is_listed_is_updated_and_nothing_is_deleted(source: SharedCampaign) -> None:
    source.pull()
    source.put("1.txt", "changed")
    source.remove("4.txt")
    World.publish(source, PublicationStep.REBASE)
    missing = parts_of(source)[-1]
    source.answers[missing] = Answer(status=404)

    report = source.pull(mode="baseline", delete="absent")

    assert (report.state, report.updated, report.deleted) == (MirrorState.BEHIND, 1, 0)
    assert len(source.files()) == 6
    del source.answers[missing]
    assert source.pull().state is MirrorState.IN_SYNC
    assert source.in_sync()


def test_by_a_part_that_is_older_than_its_index_says_the_mirror_is_behind(
    source: SharedCampaign,
) -> None:
    source.pull()
    old = source.honest(parts_of(source)[0])
    source.put("0a.txt", "created, and the old part does not list it")
    World.publish(source, PublicationStep.REBASE)
    source.answers[parts_of(source)[0]] = old

    for _ in range(2):
        assert source.pull(mode="baseline").state is MirrorState.BEHIND
    source.answers.clear()

    assert source.pull().state is MirrorState.IN_SYNC
    assert source.in_sync()


def test_a_list_of_which_nothing_can_be_read_ends_the_run(source: SharedCampaign) -> None:
    for part in parts_of(source):
        source.answers[part] = Answer(status=404)

    with pytest.raises(ResourceMissingError):
        source.pull()


def test_a_part_that_may_come_when_it_is_asked_for_again_ends_the_run(
    source: SharedCampaign,
) -> None:
    part = parts_of(source)[0]
    source.answers[part] = SourceUnavailableError("busy", uri=part)

    with pytest.raises(SourceUnavailableError):
        source.pull()


def test_workers_choose_by_the_filters_of_now_where_a_source_moved(source: SharedCampaign) -> None:
    source.pull()
    home = "http://elsewhere.example/"
    honest = source.fetcher.serve

    def moved(request: FetchRequest) -> Answer | Exception:
        answer = honest(structs.replace(request, uri=request.uri.replace(home, BASE)))
        assert isinstance(answer, Answer)
        return replace(answer, body=answer.body.replace(BASE.encode(), home.encode()))

    source.fetcher.serve = moved
    for number in range(6, 9):
        source.put(f"{number}.txt", f"{number}")
    World.publish(source, PublicationStep.REBASE)  # so that workers read it in a list

    report = source.pull(None, moved=home, changes={"exclude": ("7.txt",)}, dry_run=True)
    [plan] = source.told("plan")
    assert (report.listed, plan["create"]) == (8, 2)
    report = source.pull(None, moved=home, changes={"exclude": ("7.txt",)})
    assert (report.state, report.created, len(source.files())) == (MirrorState.IN_SYNC, 2, 8)
