"""A Source whose lists a test writes by hand, change by change."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, TypeVar

from resourcesync.destination.reports import RunReport
from resourcesync.ports import FetchRequest
from tests.support.documents.written import facts, written
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import BASE, Answer, Network, Serve
from tests.support.worlds.world import World

_FOLDER = BASE + "resourcesync/"
_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class WrittenList:
    """A Change List; times are seconds, ``None`` if the list does not tell."""

    name: str
    from_: float | None = None
    until: float | None = None
    changes: list[tuple[str, str, str, float | None]] = field(default_factory=list)


@dataclass
class Written:
    contents: dict[str, str] = field(default_factory=dict)
    listed: dict[str, str] = field(default_factory=dict)
    at: float = 0
    lists: list[WrittenList] = field(default_factory=list)
    head: str = "changelist.xml"
    is_index: bool = True


class WrittenSource:
    entry = f"{_FOLDER}capabilitylist.xml"

    def __init__(self) -> None:
        self.clock = ManualClock()
        # what it has and lists
        self.written = Written(contents={f"{number}.html": f"{number}" for number in range(30)})
        self.snapshot(0)

    def snapshot(self, at: float) -> None:
        self.written.at, self.written.listed = at, dict(self.written.contents)

    def change(self, told: WrittenList, name: str, text: str, at: float | None) -> None:
        self.written.contents[name] = text
        if not text:
            del self.written.contents[name]
        told.changes.append(("updated" if text else "deleted", name, text, at))

    def saved(self) -> Written:
        return copy.deepcopy(self.written)

    def contents(self) -> dict[str, bytes]:
        return {BASE + name: text.encode() for name, text in self.written.contents.items()}

    def serve(self, request: FetchRequest) -> Answer | Exception:
        uri = request.uri
        if not uri.startswith(_FOLDER):
            text = self.written.contents.get(uri.removeprefix(BASE))
        else:
            text = self._document(uri.removeprefix(_FOLDER))
        return Answer(status=404) if text is None else Answer(body=text.encode())

    def wait_until(self, seconds: float) -> None:
        wait = _BEGIN + timedelta(seconds=seconds) - self.clock.now()
        self.clock.advance(seconds=wait.total_seconds())

    def _document(self, name: str) -> str | None:
        source = self.written
        if name == "capabilitylist.xml":
            heads = (("resourcelist.xml", "resourcelist"), (source.head, "changelist"))
            return written(
                '<rs:md capability="capabilitylist"/>',
                (
                    f'<url><loc>{_FOLDER}{uri}</loc><rs:md capability="{kind}"/></url>'
                    for uri, kind in heads
                ),
            )
        if name == "resourcelist.xml":
            entries = (listed(*each) for each in sorted(source.listed.items()))
            return written(f'<rs:md capability="resourcelist" at="{_w3c(source.at)}"/>', entries)
        if name == source.head and source.is_index:
            parts = (
                f"<sitemap><loc>{_FOLDER}{each.name}</loc>{_interval(each)}</sitemap>"
                for each in source.lists
            )
            return written('<rs:md capability="changelist"/>', parts, "sitemapindex")
        for told in source.lists:
            if told.name == name:
                return written(_interval(told), map(_change, told.changes))
        return None


WrittenSourceT = TypeVar("WrittenSourceT", bound=WrittenSource)


def pull_at(world: World[WrittenSourceT], seconds: float, **options: Any) -> RunReport:
    world.source.wait_until(seconds)
    return world.pull(**options)


def repair_at(world: World[WrittenSource], seconds: float) -> RunReport:
    world.source.wait_until(seconds)
    return world.repair(source=world.source.entry)


def _w3c(seconds: float) -> str:
    return (_BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _interval(told: WrittenList) -> str:
    ends = (("from", told.from_), ("until", told.until))
    told_ends = "".join(f' {key}="{_w3c(end)}"' for key, end in ends if end is not None)
    return f'<rs:md capability="changelist"{told_ends}/>'


def _change(change: tuple[str, str, str, float | None]) -> str:
    kind, name, text, at = change
    time = "" if at is None else f' datetime="{_w3c(at)}"'
    return listed(name, text, f' change="{kind}"{time}')


def listed(name: str, text: str, values: str = "") -> str:
    content = facts(text) if text else ""
    return f"<url><loc>{BASE}{name}</loc><rs:md{values}{content}/></url>"


Part = tuple[str, str, list[str]]
"""The name of a part of a list, its moment, and the names that it lists."""


def serve_parts(
    world: World[WrittenSource], at: str, parts: Sequence[Part], *, announces: bool = True
) -> None:
    """Serve a Resource List in parts, whose index gives their moments or not."""
    texts, lines = world.source.written.contents, ""
    for name, moment, names in parts:
        md = f'<rs:md at="{moment}"/>' if announces else ""
        lines += f"<sitemap><loc>{_FOLDER}{name}</loc>{md}</sitemap>"
        head = f'<rs:md capability="resourcelist" at="{moment}"/>'
        body = written(head, "".join(listed(each, texts[each]) for each in names if each in texts))
        world.network.answers[_FOLDER + name] = Answer(body=body.encode())
    moment = f' at="{at}"' if at else ""
    index = written(f'<rs:md capability="resourcelist"{moment}/>', lines, "sitemapindex")
    world.network.answers[f"{_FOLDER}resourcelist.xml"] = Answer(body=index.encode())


def dated_world(folder: Path) -> World[WrittenSource]:
    """Return a mirror of a Source whose server gives each answer a ``Date``."""
    source = WrittenSource()
    return World(folder, source, network=dated_network(source.clock))


def dated_network(clock: ManualClock) -> Network:
    def route(request: FetchRequest, serve: Serve) -> Answer | Exception:
        answer = serve(request)
        if isinstance(answer, Answer):
            answer.headers["date"] = format_datetime(clock.now(), usegmt=True)
        return answer

    return Network(route)
