"""CORE FastSync on loopback: a dump of everything, and a Change List whose entries are packages.

In the form that was captured in 2020: tar in xz, times without a zone, names with colons, packages
in no order, and those of a week beside those of its days. An article cannot be asked for at its
address: that is a page.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.support.documents.packages import tarball
from tests.support.servers.tiny_source import Answer, Asked, TinySource

FIRST: Final = datetime(2026, 4, 1, tzinfo=UTC)
_OPEN: Final = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
)


@dataclass(frozen=True, kw_only=True)
class ArticleEvent:
    """A change of an article; without a title it is deleted."""

    time: datetime
    number: int
    change: str
    title: str = ""


@dataclass
class FastSyncSite:
    """The service. ``titles`` are the articles that exist."""

    now: datetime = FIRST
    titles: dict[int, str] = field(default_factory=dict)
    _events: list[ArticleEvent] = field(default_factory=list)
    _packages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = TinySource(self.respond)

    @property
    def url(self) -> str:
        return self.source.url

    def put(self, number: int, title: str) -> None:
        """Create or change an article, an hour after the last change."""
        change = "updated" if number in self.titles else "created"
        self.titles[number] = title
        self._tell(number, change, title)

    def delete(self, number: int) -> None:
        """Delete an article."""
        del self.titles[number]
        self._tell(number, "deleted", "")

    def _tell(self, number: int, change: str, title: str) -> None:
        self.now += timedelta(hours=1)
        event = ArticleEvent(time=self.now, number=number, change=change, title=title)
        self._events.append(event)

    def write_dump(self, manifest: bytes = b"") -> None:
        """Write the dump of everything, perhaps with another manifest, and the lists."""
        at = _time(self.now)
        members = [(f"{number}.json", self.article(number)) for number in self.titles]
        rows = [
            f'<url><loc>{self.address(number)}</loc><rs:md path="/{number}.json" '
            f'length="{len(self.article(number))}"/></url>'
            for number in self.titles
        ]
        manifest = manifest or _document(f'capability="resourcedump-manifest" at="{at}"', rows)
        package = tarball(("manifest.xml", manifest), *members, mode="w:xz")
        self._serve("/resync_dump.tar.xz", package)
        dump = (
            f'<url><loc>{self.url}/resync_dump.tar.xz</loc><rs:md type="application/x-xz"/></url>'
        )
        self._serve("/resourcedump.xml", _document(f'capability="resourcedump" at="{at}"', [dump]))
        pointers = [
            f'<url><loc>{self.url}/{name}.xml</loc><rs:md capability="{name}"/></url>'
            for name in ("resourcedump", "changelist")
        ]
        self._serve("/capabilitylist.xml", _document('capability="capabilitylist"', pointers))
        self._write_change_list()

    def write_changes(self, begin: datetime, end: datetime) -> None:
        """Write a package of the changes in an interval, and list it before the others."""
        since, until = _time(begin), _time(end)
        events = [event for event in self._events if begin <= event.time < end]
        rows, members = [], []
        for place, event in enumerate(events):
            about = f'change="{event.change}" datetime="{_time(event.time)}"'
            if event.title:
                body = _body(event.number, event.title)
                members.append((f"{place}.json", body))
                about += f' path="/{place}.json" length="{len(body)}"'
            rows.append(f"<url><loc>{self.address(event.number)}</loc><rs:md {about}/></url>")
        manifest = _document(
            f'capability="changedump-manifest" from="{since}" until="{until}"', rows
        )
        package = tarball(("manifest.xml", manifest), *members, mode="w:xz")
        path = f"/exports/changedumps/{since}-to-{until}.tar.xz"
        self._serve(path, package)
        self._packages.insert(
            0,
            f"<url>\n<loc>{self.url}{path}</loc>\n"
            f'<rs:md type="application/x-xz" length="{len(package)}" at="{_time(self.now)}" '
            f'completed="{_time(self.now)}.441694" from="{since}" until="{until}"/>\n</url>',
        )
        self._write_change_list()

    def _write_change_list(self) -> None:
        interval = f'from="{_time(FIRST)}" until="{_time(self.now)}"'
        body = _document(f'capability="changelist" {interval}', self._packages)
        self._serve("/changelist.xml", body)

    def address(self, number: int) -> str:
        return f"{self.url}/display/{number}"

    def article(self, number: int) -> bytes:
        return _body(number, self.titles[number])

    def _serve(self, path: str, body: bytes) -> None:
        media_type = "application/xml" if path.endswith(".xml") else "application/x-xz"
        self.source.put(path, body, media_type)

    def respond(self, asked: Asked) -> Answer | None:
        """Answer what is no document: the page of an article."""
        if asked.target.startswith("/display/"):
            page = {"Content-Type": "text/html"}
            return Answer(body=b"<html><body>Sign in</body></html>", headers=page, status=403)
        return None


def _body(number: int, title: str) -> bytes:
    return json.dumps({"coreId": str(number), "title": title}).encode()


def _document(about: str, rows: list[str]) -> bytes:
    return f"{_OPEN}<rs:md {about}/>\n{''.join(row + chr(10) for row in rows)}</urlset>\n".encode()


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}"
