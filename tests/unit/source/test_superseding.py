"""What a Resource List takes the place of, and what a run leaves that cannot write one."""

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from resourcesync.errors import StorageError
from resourcesync.source.plan import (
    PublicationPlan,
    PublicationStep,
    Span,
    SupersededList,
    supersede,
)
from resourcesync.source.publisher import ListPublisher
from resourcesync.source.scan import scan
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

PLAN = PublicationPlan(
    base_uri=BASE,
    documents_uri=BASE,
    at=20,
    monitored_since=20,
    number=1,
    closed=(),
    open=Span(after=0, last=0, start=0, reached=0),
    superseded=(SupersededList(at=5, since=10), SupersededList(at=10, since=20, name="kept.xml")),
)
FORMER = SupersededList(at=20, since=90, name="own.xml")


def test_a_list_that_was_public_is_superseded_by_the_next() -> None:
    plan = supersede(PLAN, 30, FORMER, None)

    assert (plan.at, plan.superseded) == (30, (*PLAN.superseded, FORMER))


@pytest.mark.parametrize("at", [20, 30])
def test_the_list_that_still_stands_is_held_once_and_keeps_its_name(at: int) -> None:
    plan = supersede(PLAN, at, FORMER, 10)

    held = SupersededList(at=10, since=90, name="kept.xml")
    assert (plan.at, plan.superseded) == (at, (PLAN.superseded[0], held))
    assert supersede(plan, at, FORMER, 10).superseded == plan.superseded


def test_a_list_that_was_forgotten_and_still_stands_is_held_again() -> None:
    assert supersede(PLAN, 20, FORMER, 7).superseded[-1] == SupersededList(at=7, since=90)


@contextmanager
def failing(world: World[PublishedSource], name: str = "", after: int = 0) -> Iterator[None]:
    """Let documents of a name, behind so many, find no room."""
    write, written = world.source.documents.write, 0

    def full(document: str, *content: Any) -> int:
        nonlocal written
        written += name in document
        if name in document and written > after:
            raise StorageError("no space is left")
        return write(document, *content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.source.documents, "write", full)
        yield


def time_of(world: World[PublishedSource], name: str, which: str) -> str:
    body = world.source.honest(f"{BASE}resourcesync/{name}").body.decode()
    found = re.search(rf' {which}="([^"]*)"', body)
    assert found is not None
    return found[1]


def test_a_source_that_cannot_begin_anew_goes_on_from_the_list_that_stands(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("index.txt", "at first")
    world.source.publish()
    before = time_of(world, "resourcelist.xml", "at")
    steps = [PublicationStep.INITIALISE, PublicationStep.DUE, PublicationStep.DUE]
    for number, step in enumerate(steps):
        world.clock.advance(hours=1)
        world.source.put("index.txt", f"{number}")
        with failing(world, "resourcelist"), pytest.raises(StorageError):
            world.source.publish(step)
        assert time_of(world, "resourcelist.xml", "at") == before
        assert time_of(world, "changelist.xml", "from") <= before, "a mirror could not go on"

    world.source.publish()

    assert time_of(world, "resourcelist.xml", "at") > before


@pytest.mark.parametrize("documents", [0, 1, 3, 8])
def test_documents_that_moved_lead_to_no_old_place_also_after_a_kill(
    tmp_path: Path, documents: int
) -> None:
    world = World(tmp_path / "mirror", PublishedSource(max_entries=3))
    for number in range(8):
        world.source.put(f"{number}.txt", "x")
        world.source.publish()
    scan(world.source.originals, world.source.catalogue, world.clock.now())
    moved = ListPublisher(
        world.source.catalogue,
        world.source.documents,
        base_uri=BASE,
        documents_uri=f"{BASE}elsewhere/",
        clock=world.clock,
        limits=world.source.limits,
    )
    kept = copy.deepcopy(set(world.source.documents.names()))
    with failing(world, after=documents), pytest.raises(StorageError):
        moved.publish()

    moved.publish()

    for name in kept & set(world.source.documents.names()):
        opened = world.source.documents.open(name)
        assert opened is not None
        assert b"example/resourcesync/" not in opened.read(), name
