"""One resource that is listed several times is one resource, and every command says so."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.model.timestamps import format_w3c
from tests.support.documents.written import listed
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.site_maps import index, urlset
from tests.support.worlds.world import World

LIST: Final = BASE + "list.xml"
ONE: Final = "one.html"
OLD, NEW = "2024-01-01", "2024-01-02"
SERVED: Final = b"what the server has"


def hash_of(content: bytes, algorithm: str = "sha-256") -> str:
    name = algorithm.replace("-", "")
    return f"{algorithm}:{hashlib.new(name, content, usedforsecurity=False).hexdigest()}"


def entry(name: str = ONE, *, lastmod: str = "", hash: str = "", length: int | None = None) -> str:  # noqa: A002 - as in a list
    date = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    facts = (f' hash="{hash}"' if hash else "") + (f' length="{length}"' if length else "")
    return f"<url><loc>{BASE}{name}</loc>{date}{f'<rs:md{facts}/>' if facts else ''}</url>"


def offer(world: World[PublishedSource], *entries: str) -> None:
    world.clock.advance(seconds=3_600)
    others = [
        entry(f"{number}.html") for number in range(30) if BASE + f"{number}.html" in served(world)
    ]
    body = listed("resourcelist", format_w3c(world.clock.now()), [*others, *entries])
    world.network.answers[LIST] = Answer(body=body)


def served(world: World[PublishedSource]) -> dict[str, bytes]:
    return world.source.contents()


@pytest.fixture
def world(tmp_path: Path) -> World[PublishedSource]:
    """A Source of a few resources, one of which is listed in a way that a test says."""
    made = World(tmp_path / "mirror")
    for number in range(30):
        made.source.put(f"{number}.html", f"{number}")
    made.source.put(ONE, SERVED)
    return made


def pull_all(world: World[PublishedSource]) -> None:
    report = world.pull(LIST)
    assert (report.created, report.listed.refused, report.state) == (31, 0, MirrorState.IN_SYNC)
    assert world.in_sync()


def agree(world: World[PublishedSource], state: MirrorState = MirrorState.IN_SYNC) -> None:
    """Check that audits, a repair, why and the next pulls say the same as the last pull."""
    in_sync = state is MirrorState.IN_SYNC
    methods = ("lists", "stat", "hash", "remote")
    assert [world.audit(method=name).in_sync for name in methods] == [in_sync] * 4
    assert world.audit(offline=True).in_sync is in_sync
    assert (world.repair(source=LIST).state is MirrorState.IN_SYNC) is in_sync
    found = world.why(ONE, LIST)
    assert found.verdict.is_well is in_sync
    assert found.refused is None
    for mode in ("auto", "baseline"):
        assert world.pull(LIST, mode=mode).state is state


STRONG, WEAK = hash_of(SERVED), hash_of(SERVED, "md5")
STALE = hash_of(b"what it was")
UNITED: Final = {
    "two dates": (entry(lastmod=OLD), entry(lastmod=NEW)),
    "with a date and without": (entry(lastmod=OLD), entry()),
    "a date and an hour": (entry(lastmod=NEW), entry(lastmod=f"{NEW}T05:00:00Z")),
    "with a fragment": (entry(lastmod=OLD), entry(f"{ONE}#x", lastmod=NEW)),
    "the same sha-256": (entry(hash=STRONG), entry(hash=f"{STRONG} {STRONG}", length=len(SERVED))),
    "md5 beside sha-256": (entry(hash=WEAK), entry(hash=STRONG)),
    "hash and length": (entry(hash=STRONG), entry(length=len(SERVED))),
    "an older digest": (entry(lastmod=OLD, hash=STALE), entry(lastmod=NEW, hash=STRONG)),
    "an older length": (entry(lastmod=OLD, length=3), entry(lastmod=NEW)),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("entries", UNITED.values(), ids=UNITED)
def test_a_resource_that_is_listed_twice_is_mirrored_and_known_as_in_sync(
    world: World[PublishedSource], entries: tuple[str, ...], *, turned: bool
) -> None:
    offer(world, *(entries[::-1] if turned else entries))
    world.network.answers[f"{BASE}{ONE}#x"] = Answer(body=SERVED)

    pull_all(world)
    agree(world)


def test_two_spellings_of_one_address_are_one_resource(world: World[PublishedSource]) -> None:
    world.source.put("caf%C3%A9", "served")
    offer(world, entry(), entry("caf%c3%a9", lastmod=OLD), entry("caf%C3%A9", lastmod=NEW))
    world.network.answers[BASE + "caf%c3%a9"] = Answer(body=b"served")

    report = world.pull(LIST)

    assert (report.created, report.listed.refused, report.state) == (32, 0, MirrorState.IN_SYNC)
    agree(world)


def rss(*pages: tuple[str, str]) -> Answer:
    items = (
        f"<item><link>{BASE}{name}</link><pubDate>{date}</pubDate></item>" for name, date in pages
    )
    body = f'<rss version="2.0"><channel>{"".join(items)}</channel></rss>'
    return Answer(body=body.encode())


PARTS: Final[dict[str, Callable[[], Answer]]] = {
    "a sitemap": lambda: Answer(body=urlset((BASE + ONE, OLD), (BASE + "2.html", ""))),
    "a newer sitemap": lambda: Answer(body=urlset((BASE + ONE, "2024-02-02"))),
    "a feed": lambda: rss((ONE, "Mon, 01 Jan 2024 10:00:00 GMT"), ("2.html", "")),
    "a feed of later times": lambda: rss((ONE, "Mon, 01 Jul 2024 10:00:00 GMT")),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_page_of_two_sitemaps_or_of_a_sitemap_and_a_feed_is_one_page(
    world: World[PublishedSource], part: Callable[[], Answer]
) -> None:
    world.network.answers[LIST] = Answer(body=index(BASE + "pages.xml", BASE + "news.xml"))
    names = list(served(world))
    pages = urlset(*((uri, NEW) for uri in names))
    world.network.answers |= {BASE + "pages.xml": Answer(body=pages), BASE + "news.xml": part()}

    pull_all(world)
    agree(world)
    world.source.put(ONE, "edited")
    dated = urlset(*((uri, "2024-09-09" if uri == BASE + ONE else NEW) for uri in names))
    world.network.answers[BASE + "pages.xml"] = Answer(body=dated)
    assert world.pull(LIST).updated == 1
    assert world.in_sync()


DISPUTED: Final = {
    "two digests": (entry(hash=STRONG), entry(hash=STALE)),
    "of one date": (entry(hash=STRONG, lastmod=OLD), entry(hash=STALE, lastmod=OLD)),
    "one digest and two lengths": (
        entry(hash=STRONG, length=len(SERVED)),
        entry(hash=STRONG, length=3),
        entry(hash=STALE),
    ),
    "two lengths": (entry(length=len(SERVED)), entry(length=len(b"what it was"))),
}


@pytest.mark.parametrize("content", [SERVED, b"what it was"])
@pytest.mark.parametrize("entries", DISPUTED.values(), ids=DISPUTED)
def test_what_two_entries_dispute_is_asked_of_the_source(
    world: World[PublishedSource], entries: tuple[str, ...], content: bytes
) -> None:
    offer(world, *entries)
    world.source.put(ONE, content)

    pull_all(world)
    agree(world)
    world.source.remove("7.html")
    offer(world, *entries)
    assert world.pull(LIST).deleted == 1, "it blocks no deletion"


@pytest.mark.parametrize("entries", DISPUTED.values(), ids=DISPUTED)
def test_what_neither_of_two_entries_lists_replaces_nothing(
    world: World[PublishedSource], entries: tuple[str, ...]
) -> None:
    offer(world, *entries)
    world.pull(LIST)
    before = world.files()
    world.source.put(ONE, "a third thing that nobody lists")

    report = world.pull(LIST, mode="baseline")

    assert (report.failed, report.deleted, report.state) == (1, 0, MirrorState.BEHIND)
    assert world.files() == before


def test_an_entry_that_cannot_be_used_takes_nothing_from_another_of_its_resource(
    world: World[PublishedSource],
) -> None:
    broken = entry(lastmod=NEW).replace("</loc>", f"</loc><loc>{BASE}x</loc>")
    offer(world, broken, entry(hash=STRONG), broken)

    report = world.pull(LIST)

    assert (report.created, report.listed.refused) == (31, 1)
    assert world.in_sync()


def test_many_entries_of_one_resource_that_all_differ_are_asked_for_as_one(
    world: World[PublishedSource],
) -> None:
    offer(world, *(entry(hash=hash_of(b"%d" % number)) for number in range(300)))

    pull_all(world)
