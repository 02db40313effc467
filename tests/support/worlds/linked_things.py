"""A Source that links two of its entries to things that it does not list, and their mirror."""

from pathlib import Path
from typing import Any

from resourcesync.destination.reports import RunReport
from resourcesync.destination.scope_and_filters import Filters
from tests.support.documents.written import facts
from tests.support.worlds.loose_source import LooseSource, link
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

RELATIONS = ("describedby",)
ABOUT = BASE + "about/a.xml"
LICENCE = BASE + "licence"


ALL = {"a.txt", "b.txt", "c.txt", "about/a.xml", "licence"}


def linked_world(folder: Path) -> World[LooseSource]:
    world = World(folder, LooseSource())
    for name in ("a.txt", "b.txt", "c.txt"):
        world.source.put(name, name.encode() * 10)
    aside(world, "about/a.xml", b"<about>a</about>")
    aside(world, "licence", b"free")
    world.source.links.put("a.txt", described(ABOUT, b"<about>a</about>"), described(LICENCE))
    world.source.links.put("b.txt", described(LICENCE))
    return world


def put_patch(
    world: World[LooseSource], name: str, media_type: str, body: bytes, more: str | None = None
) -> str:
    """Let the next change of a resource have a patch; return where it is."""
    uri = f"{BASE}patches/{name}"
    world.network.answers[uri] = Answer(body=body)
    told = facts(body) if more is None else more
    world.source.links.patch(name, uri, f' type="{media_type}"{told}')
    return uri


def aside(world: World[LooseSource], name: str, body: bytes) -> None:
    world.network.answers[BASE + name] = Answer(body=body)


def described(href: str, body: bytes | None = None) -> str:
    return link("describedby", href, "" if body is None else facts(body))


def pull(world: World[LooseSource], *relations: str, **more: Any) -> RunReport:
    filters = Filters(links=relations or RELATIONS, **more.pop("filters", {}))
    return check(world.pull(filters=filters, **more))


def check(report: RunReport) -> RunReport:
    assert (
        report.listed.total
        == report.listed.unchanged
        + report.listed.applied
        + report.listed.pending
        + report.listed.refused
    )
    return report


def names(world: World[LooseSource]) -> set[str]:
    return {uri.removeprefix(BASE) for uri in world.files()}
