"""A Source that links two of its entries to things that it does not list, and their mirror."""

from pathlib import Path
from typing import Any

from resourcesync.destination.options import Filters
from resourcesync.destination.reports import RunReport
from tests.support.sources.scripted_source import sha256
from tests.support.worlds.linking_world import LinkingWorld, link
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE

RELATIONS = ("describedby",)
ABOUT = BASE + "about/a.xml"
LICENCE = BASE + "licence"


ALL = {"a.txt", "b.txt", "c.txt", "about/a.xml", "licence"}


def linked_world(folder: Path) -> LinkingWorld:
    world = LinkingWorld(folder)
    for name in ("a.txt", "b.txt", "c.txt"):
        world.put(name, name.encode() * 10)
    aside(world, "about/a.xml", b"<about>a</about>")
    aside(world, "licence", b"free")
    world.link("a.txt", described(ABOUT, b"<about>a</about>"), described(LICENCE))
    world.link("b.txt", described(LICENCE))
    return world


def aside(world: LinkingWorld, name: str, body: bytes) -> None:
    """Serve something that is not listed."""
    world.answers[BASE + name] = Answer(body=body)


def described(href: str, body: bytes | None = None) -> str:
    facts = "" if body is None else f' hash="{sha256(body)}" length="{len(body)}"'
    return link("describedby", href, facts)


def pull(world: LinkingWorld, *relations: str, **more: Any) -> RunReport:
    filters = Filters(links=relations or RELATIONS, **more.pop("filters", {}))
    return check(world.pull(filters=filters, **more))


def check(report: RunReport) -> RunReport:
    """Everything listed is accounted for."""
    assert report.listed == report.unchanged + report.applied + report.pending + report.refused
    return report


def names(world: LinkingWorld) -> set[str]:
    return {uri.removeprefix(BASE) for uri in world.files()}
