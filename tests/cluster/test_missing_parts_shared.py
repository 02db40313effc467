"""A part of a list that workers cannot read: the others are followed, nothing is taken for gone."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ResourceMissingError, SourceUnavailableError
from resourcesync.ports import FetchRequest
from resourcesync.source.plan import PublicationStep
from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.table_workers import Steady, TableWorkers
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World[PublishedSource]]:
    """A Source whose Resource List has two parts."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with TableWorkers(Steady()) as workers:
        world = World(FolderHome(tmp_path / "mirror", workers), PublishedSource(max_entries=3))
        for number in range(6):
            world.source.put(f"{number}.txt", f"{number}")
        world.source.publish()
        yield world


def parts_of(world: World[PublishedSource]) -> list[str]:
    body = world.source.honest(BASE + "resourcesync/resourcelist.xml").body.decode()
    return [name.partition("</loc>")[0] for name in body.split("<sitemap><loc>")[1:]]


@pytest.mark.parametrize("answer", [Answer(status=404), Answer(body=b"<html>log in</html>")])
def test_the_other_parts_are_brought_and_the_mirror_is_behind(
    world: World[PublishedSource], answer: Answer
) -> None:
    missing = parts_of(world)[0]
    world.network.answers[missing] = answer

    for created in (3, 0):
        report = world.pull()

        assert (report.created, report.unread, report.refused) == (created, 1, 1)
        assert report.state is MirrorState.BEHIND
    del world.network.answers[missing]

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_what_is_listed_is_updated_and_nothing_is_deleted(world: World[PublishedSource]) -> None:
    world.pull()
    world.source.put("1.txt", "changed")
    world.source.remove("4.txt")
    world.source.publish(PublicationStep.REBASE)
    missing = parts_of(world)[-1]
    world.network.answers[missing] = Answer(status=404)

    report = world.pull(mode="baseline", delete="absent")

    assert (report.state, report.updated, report.deleted) == (MirrorState.BEHIND, 1, 0)
    assert len(world.files()) == 6
    del world.network.answers[missing]
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_by_a_part_that_is_older_than_its_index_says_the_mirror_is_behind(
    world: World[PublishedSource],
) -> None:
    world.pull()
    old = world.source.honest(parts_of(world)[0])
    world.source.put("0a.txt", "created, and the old part does not list it")
    world.source.publish(PublicationStep.REBASE)
    world.network.answers[parts_of(world)[0]] = old

    for _ in range(2):
        assert world.pull(mode="baseline").state is MirrorState.BEHIND
    world.network.answers.clear()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_list_of_which_nothing_can_be_read_ends_the_run(world: World[PublishedSource]) -> None:
    for part in parts_of(world):
        world.network.answers[part] = Answer(status=404)

    with pytest.raises(ResourceMissingError):
        world.pull()


def test_a_part_that_may_come_when_it_is_asked_for_again_ends_the_run(
    world: World[PublishedSource],
) -> None:
    part = parts_of(world)[0]
    world.network.answers[part] = SourceUnavailableError("busy", uri=part)

    with pytest.raises(SourceUnavailableError):
        world.pull()


def test_workers_choose_by_the_filters_of_now_where_a_source_moved(
    world: World[PublishedSource],
) -> None:
    world.pull()
    home = "http://elsewhere.example/"
    honest = world.fetcher.serve

    def moved(request: FetchRequest) -> Answer | Exception:
        answer = honest(structs.replace(request, uri=request.uri.replace(home, BASE)))
        assert isinstance(answer, Answer)
        return replace(answer, body=answer.body.replace(BASE.encode(), home.encode()))

    world.fetcher.serve = moved
    for number in range(6, 9):
        world.source.put(f"{number}.txt", f"{number}")
    world.source.publish(PublicationStep.REBASE)  # so that workers read it in a list

    report = world.pull(None, moved=home, changes={"exclude": ("7.txt",)}, dry_run=True)
    [plan] = world.told("plan")
    assert (report.listed, plan["create"]) == (8, 2)
    report = world.pull(None, moved=home, changes={"exclude": ("7.txt",)})
    assert (report.state, report.created, len(world.files())) == (MirrorState.IN_SYNC, 2, 8)
