"""A Source that moves: behind TLS it is the same one; to another host, a person says so."""

from pathlib import Path

import pytest

from resourcesync.destination.explaining import Verdict, explain
from resourcesync.destination.reports import MirrorState
from resourcesync.ports import Request
from tests.support.memory_fetcher import Answer
from tests.support.world import BASE, World

SECURE = BASE.replace("http:", "https:")


class Moved:
    """Stands before a world's server: the Source is at another address now."""

    def __init__(self, world: World, home: str, *, redirects: bool) -> None:
        self.world = world
        self.home = home
        self.redirects = redirects
        world.fetcher.serve = self.serve

    def serve(self, request: Request) -> Answer | Exception:
        here = request.uri.startswith(self.home)
        if not here and not self.redirects:
            return Answer(status=404)
        path = request.uri.removeprefix(self.home if here else BASE)
        answer = self.world.honest(BASE + path)
        body = answer.body
        if "resourcesync" in path:
            body = body.replace(BASE.encode(), self.home.encode())
        return Answer(answer.status, body, answer.headers, self.home + path)

    def asked(self) -> list[str]:
        names = (uri.removeprefix(self.home).removeprefix(BASE) for uri in self.world.fetcher.asked)
        return [name for name in names if "resourcesync" not in name and "sitemap" not in name]


def world_of(folder: Path) -> World:
    world = World(folder)
    for number in range(30):
        world.put(f"a/{number}.html", f"content of {number}")
    world.put("strange name!.html".replace(" ", "%20"), "strange")
    world.publish()
    world.pull()
    return world


@pytest.mark.parametrize("mode", ["auto", "baseline"])
def test_a_source_that_moves_behind_tls_is_the_same_source(tmp_path: Path, mode: str) -> None:
    world = world_of(tmp_path / "mirror")
    before = world.files()
    moved = Moved(world, SECURE, redirects=True)

    first = world.pull(mode=mode)
    asked = moved.asked()
    world.put("a/1.html", "changed")
    world.put("b.html", "new")
    world.remove("a/2.html")
    world.publish()
    second = world.pull(mode=mode)

    assert (first.state, first.created, first.updated, first.deleted, first.refused) == (
        MirrorState.IN_SYNC,
        *(0, 0, 0, 0),
    )
    assert asked == []
    assert (second.state, second.created, second.updated, second.deleted) == (
        MirrorState.IN_SYNC,
        *(1, 1, 1),
    )
    assert world.in_sync()
    assert before.keys() - world.files().keys() == {f"{BASE}a/2.html"}
    assert world.audit().in_sync


def test_the_lists_are_looked_for_behind_tls_after_a_day(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror")
    moved = Moved(world, SECURE, redirects=True)
    for _ in range(3):
        world.clock.advance(hours=25)
        world.put("a/1.html", f"changed at {world.clock.now()}")
        world.publish()

        report = world.pull()

        assert (report.state, report.updated, report.deleted) == (MirrorState.IN_SYNC, 1, 0)
        assert moved.asked() == ["a/1.html"]
    assert world.in_sync()
    with world.destination() as destination:
        looking = destination.looking()
        known = explain(looking, [f"{SECURE}a/1.html"], list, offline=False)
    assert known.verdict is Verdict.AS_LISTED


def test_entries_of_both_kinds_in_one_list_are_of_one_source(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror")
    moved = Moved(world, SECURE, redirects=True)
    honest = moved.serve

    def half(request: Request) -> Answer | Exception:
        answer = honest(request)
        assert isinstance(answer, Answer)
        old = answer.body.replace(f"{SECURE}a/1".encode(), f"{BASE}a/1".encode())
        return Answer(answer.status, old, answer.headers, answer.uri)

    world.fetcher.serve = half

    report = world.pull(mode="baseline")

    assert (report.state, report.refused, moved.asked()) == (MirrorState.IN_SYNC, 0, [])


def test_entries_behind_tls_of_a_source_that_does_not_lead_there_are_foreign(
    tmp_path: Path,
) -> None:
    world = world_of(tmp_path / "mirror")
    moved = Moved(world, SECURE, redirects=True)
    honest = moved.serve

    def plain(request: Request) -> Answer | Exception:
        answer = honest(request)
        assert isinstance(answer, Answer)
        body = answer.body.replace(f"{SECURE}resourcesync".encode(), f"{BASE}resourcesync".encode())
        return Answer(answer.status, body, answer.headers, request.uri)

    world.fetcher.serve = plain

    report = world.pull(mode="baseline")

    assert (report.refused, report.deleted, report.held) == (31, 0, 0)
    assert len(world.files()) == 31
