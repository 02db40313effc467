"""Hyrax on loopback: pages of works, its dynamic sitemap, and its own lists of ResourceSync.

The sitemap is that of blacklight_dynamic_sitemap: an index of 16 parts, one for each first digit of
an identifier, made when asked for. The ResourceSync lists are made when asked for and then stay in
a cache for a week, each by itself; the Change List has the newest change first and no deletions.
A page has a token of its own in each answer.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final
from uuid import NAMESPACE_URL, uuid5
from xml.sax.saxutils import escape

from tests.support.servers.tiny_source import Answer, Asked, TinySource
from tests.support.software.hyrax import Hyrax
from tests.support.software.software_source import Event, Known
from tests.support.worlds.network import BASE

DIGITS: Final = "0123456789abcdef"
WEEK: Final = timedelta(days=7)
_SITEMAP: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_LISTS: Final = (
    "/.well-known/resourcesync", "/capabilitylist", "/resourcelist", "/changelist",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Work:
    """A work; ``number`` determines its identifier."""

    number: int
    title: str
    created: datetime
    modified: datetime

    @property
    def id(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self.number}"))


@dataclass
class HyraxSite:
    """A repository of Hyrax.

    Attributes:
        now: Its clock.
    """

    now: datetime = datetime(2026, 1, 5, 9, 30, 0, 123000, tzinfo=UTC)
    works: dict[int, Work] = field(default_factory=dict)
    _cached: dict[str, tuple[datetime, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = TinySource(self.respond)
        self._answers = count(1)

    @property
    def url(self) -> str:
        return self.source.url

    def put(self, number: int, title: str) -> None:
        """Deposit a work, or change one."""
        self.now += timedelta(minutes=1)
        known = self.works.get(number)
        created = known.created if known else self.now
        self.works[number] = Work(number=number, title=title, created=created, modified=self.now)

    def destroy(self, number: int) -> None:
        """Delete a work: it is listed no more."""
        self.now += timedelta(minutes=1)
        del self.works[number]

    def respond(self, asked: Asked) -> Answer | None:
        """Answer a request."""
        path = asked.target.partition("?")[0]
        if path == "/robots.txt":
            return Answer(body=b"User-agent: *\nDisallow: /catalog?\n")
        if path in _LISTS:
            return _xml(self._from_cache(path))
        if path == "/sitemap":
            rows = "".join(f"<sitemap><loc>{self.url}/sitemap/{d}</loc></sitemap>" for d in DIGITS)
            return _xml(_root("sitemapindex", rows))
        if path.startswith("/sitemap/"):
            return _xml(_root("urlset", self._part(path.rpartition("/")[2])))
        return self._page(path.rpartition("/")[2])

    def _part(self, prefix: str) -> str:
        works = sorted(self.works.values(), key=lambda work: work.id)
        chosen = [work for work in works if len(prefix) == 1 and work.id.startswith(prefix)]
        return "".join(
            f"<url><loc>{self._loc(work)}?locale=en</loc>"
            f"<lastmod>{work.modified:%Y-%m-%dT%H:%M:%S.%f}"[:-3]
            + "Z</lastmod></url>"
            for work in chosen
        )

    def _loc(self, work: Work) -> str:
        return f"{self.url}/concern/generic_works/{work.id}"

    def _page(self, name: str) -> Answer | None:
        work = next((work for work in self.works.values() if work.id == name), None)
        if work is None:
            return None
        token = f'<meta name="csrf-token" content="{next(self._answers)}"/>'
        page = (
            f"<!DOCTYPE html><html><head>{token}<title>{escape(work.title)}</title></head></html>"
        )
        fields = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "max-age=0, private"}
        return Answer(body=page.encode(), headers=fields)

    def _from_cache(self, path: str) -> bytes:
        made, body = self._cached.get(path, (self.now - WEEK, b""))
        if self.now - made >= WEEK:
            body = self._list(path)
            self._cached[path] = (self.now, body)
        return body

    def _list(self, path: str) -> bytes:
        known = Known(now=self.now, contents={}, events=[])
        for work in sorted(self.works.values(), key=lambda work: work.modified):
            uri, change = self._loc(work), "created" if work.created == work.modified else "updated"
            known.contents[uri] = b""
            known.events.append(Event(time=work.modified, uri=uri, change=change))
        body = Hyrax().documents(known)[path.removeprefix("/")]
        return body.replace(BASE.encode(), f"{self.url}/".encode())


def _root(name: str, inner: str) -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{_SITEMAP}" '
        f'xmlns:rs="http://www.openarchives.org/rs/terms/">{inner}</{name}>\n'
    ).encode()


def _xml(body: bytes) -> Answer:
    return Answer(body=body, headers={"Content-Type": "application/xml; charset=utf-8"})
