"""A Source that is other software: what it writes is rendered here from what changed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from resourcesync.ports import FetchRequest
from tests.support.documents.written import written
from tests.support.simulated.movements import DatedAnswers
from tests.support.worlds.network import BASE, Answer, Network
from tests.support.worlds.served_files import FileSource
from tests.support.worlds.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    time: datetime
    uri: str
    change: str
    data: bytes = b""  # its bytes since; empty when it was deleted


@dataclass(slots=True, kw_only=True)
class Known:
    now: datetime
    contents: dict[str, bytes]  # its resources and their bytes
    events: list[Event]  # what happened since it began, oldest first

    def between(self, start: datetime, end: datetime) -> list[Event]:
        return [event for event in self.events if start <= event.time < end]

    def modified(self, uri: str) -> datetime | None:
        return max((event.time for event in self.events if event.uri == uri), default=None)


class Software(Protocol):
    def documents(self, known: Known) -> dict[str, bytes]: ...


class SoftwareSource(FileSource):
    def __init__(
        self, software: Software, *, is_open: bool = True, entry: str = "", dates: bool = False
    ) -> None:
        super().__init__()
        self.software = software
        self.is_open = is_open
        self.entry = f"{BASE}{entry}"
        self._dates = DatedAnswers(self.clock) if dates else None
        self._before: dict[str, bytes] = {}
        self._events: list[Event] = []

    def change(self, **files: str | None) -> None:
        """Write resources by their name without suffix, or remove them; a minute passes each."""
        for name, text in files.items():
            self.clock.advance(seconds=60)
            self.change_now(name, text)

    def change_now(self, name: str, text: str | None) -> None:
        if text is None:
            self.remove(f"{name}.html")
        else:
            self.put(f"{name}.html", text)
        self._take_down()

    def begin(self, **files: str) -> None:
        for name, text in files.items():
            self.put(f"{name}.html", text)
        self._before = self.contents()

    def _take_down(self) -> None:
        before, after, now = self._before, self.contents(), self.clock.now()
        for uri, data in after.items():
            if before.get(uri) != data:
                kind = "updated" if uri in before else "created"
                self._events.append(Event(time=now, uri=uri, change=kind, data=data))
        for uri in before.keys() - after.keys():
            self._events.append(Event(time=now, uri=uri, change="deleted"))
        self._before = after

    @property
    def known(self) -> Known:
        return Known(now=self.clock.now(), contents=self.contents(), events=self._events)

    def write(self) -> None:
        for path, data in self.software.documents(self.known).items():
            self.documents.write(path, [data])

    def serve(self, request: FetchRequest) -> Answer | Exception:
        if not self.is_open and request.uri in self.contents():
            return Answer(status=401)
        answer = self.honest(request.uri)
        return answer if self._dates is None else self._dates.dated(request.uri, answer)


def software_world(
    folder: Path, software: Software, *, is_open: bool = True
) -> World[SoftwareSource]:
    source = SoftwareSource(software, is_open=is_open)

    def written() -> None:
        source.clock.advance(seconds=5)
        source.write()

    return World(folder, source, network=Network(), before_pull=written)


def document(
    metadata: str, entries: Iterable[str], *, links: str = "", is_index: bool = False
) -> bytes:
    root, child = ("sitemapindex", "sitemap") if is_index else ("urlset", "url")
    lines = (f"<{child}>{entry}</{child}>\n" for entry in entries)
    return written(f"{links}<rs:md {metadata}/>\n", lines, root).encode()


def offering(metadata: str, *, links: str = "", **offered: str) -> bytes:
    kinds = {name.replace("_", "-"): path for name, path in offered.items()}
    entries = [points_to(path, f'capability="{kind}"') for kind, path in kinds.items()]
    return document(metadata, entries, links=links)


def link(rel: str, path: str) -> str:
    return f'<rs:ln rel="{rel}" href="{BASE}{path}"/>\n'


def points_to(path: str, metadata: str = "", lastmod: datetime | None = None) -> str:
    return loc(BASE + path, metadata, lastmod)


def loc(uri: str, metadata: str = "", lastmod: datetime | None = None) -> str:
    modified = "" if lastmod is None else f"<lastmod>{zulu(lastmod)}</lastmod>"
    return f"<loc>{uri}</loc>{modified}" + (f"<rs:md {metadata}/>" if metadata else "")


def zulu(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def isoformat(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


DAY = timedelta(days=1)
