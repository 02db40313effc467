"""A Source that is not ours: its Change Lists are cut, reset, archived and dated as others do."""

import copy
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Final, Self
from xml.sax.saxutils import quoteattr

from resourcesync.model.timestamps import format_w3c, from_microseconds, to_microseconds
from tests.support.documents.written import facts, written
from tests.support.worlds.network import BASE
from tests.support.worlds.served_files import PublishingSource

FOLDER: Final = f"{BASE}resourcesync/"

CLOCKS: Final = (-7_200, -5, 5, 7_200)
"""Seconds by which clocks are ahead of each other."""

OFF: Final = frozenset({"bytes", "copied", "duplicates", "empties", "still"})
"""Shapes that no life has yet: what they show is being mended. One that is mended goes."""

PATCH: Final = "http://www.openarchives.org/rs/terms/patch"
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    hashes: bool = True  # whether entries have a `hash` and a `length`
    times: bool = True  # whether changes have a `datetime`
    lastmods: bool = True  # whether entries have a `lastmod`
    index: bool = False  # closed lists and an open one behind an index; else one list that is reset
    announces: bool = True  # whether the index tells which interval each list covers
    mixed: bool = False  # whether it tells so of every second list only, if it tells it at all
    newest_first: bool = False  # whether the index has the newest list first
    fixed: bool = False  # whether the open list of an index always has the same URI
    whole_seconds: bool = False  # whether times are cut to seconds
    keep: int = 2  # how many closed lists stay offered
    begins: bool = True  # whether a Change List gives its interval
    # whether each Change List replaces the one before, as cron does day by day
    replaced: bool = False
    empties: bool = False  # whether it is also replaced when nothing changed, by an empty one
    archive: bool = False  # whether the replaced ones stay, in a Change List Archive
    window: int = 0  # most changes of a list, the last ones; 0: any number
    latest_first: bool = False  # whether a list has the newest change first
    ahead: float = 0  # seconds by which the clock of the lists is ahead

    @property
    def is_without_interval(self) -> bool:
        """True if it is a style of the founding documents: only a change moves its lists on."""
        return self.replaced or self.window > 0


def without_interval(style: Style, luck: random.Random) -> Style:
    """Return a style whose Change Lists give no interval, as in the founding documents."""
    alone = replace(style, index=False, begins=False)
    kind = luck.choice(("replaced", "archive", "window", "latest"))
    if kind in ("replaced", "archive"):
        empties = luck.random() < 0.5 and "empties" not in OFF
        return replace(alone, replaced=True, archive=kind == "archive", empties=empties)
    is_latest = kind == "latest"
    return replace(
        alone,
        window=luck.choice((3, 8)),
        latest_first=is_latest,
        times=style.times or is_latest,  # without times nobody knows which way they go
    )


@dataclass(slots=True, kw_only=True)
class ListedChanges:
    number: int
    start: int
    until: int | None = None
    entries: list[str] = field(default_factory=list)


class Links:
    def __init__(self) -> None:
        self.links: dict[str, str] = {}  # by URI, into all entries of a resource
        self.patches: dict[str, str] = {}  # by URI, into the next change of a resource

    def put(self, name: str, *links: str) -> None:
        self.links[BASE + name] = "".join(links)

    def patch(self, name: str, href: str, facts: str) -> None:
        self.patches[BASE + name] = link(PATCH, href, facts)

    def of(self, uri: str, change: str) -> str:
        links = self.links.get(uri, "") if change != "deleted" else ""
        return links + (self.patches.pop(uri, "") if change == "updated" else "")


def link(rel: str, href: str, more: str = "") -> str:
    return f'<rs:ln rel="{rel}" href="{escape(href)}"{more}/>'


class LooseLists:
    def __init__(self, style: Style, links: Links | None = None, folder: str = FOLDER) -> None:
        self._folder = folder
        self._style = style
        self._links = links or Links()
        self.known: dict[str, tuple[bytes, int]] = {}
        self.lists: list[ListedChanges] = []
        self._archived: list[ListedChanges] = []
        self._at: int | None = None
        self._resource_list = ""

    def publish(self, now: int, contents: dict[str, bytes], *, late: int = 0) -> None:
        """List what changed, at ``now`` in microseconds; ``late``: before so many listed ones."""
        if not self.lists:
            self.known = {uri: (data, now) for uri, data in contents.items()}
            self.lists.append(ListedChanges(number=1, start=now))
            self.snapshot(now)
            return
        before, entries, after = self.known, list[str](), dict[str, tuple[bytes, int]]()
        for uri, data in contents.items():
            old = before.get(uri)
            after[uri] = old if old is not None and old[0] == data else (data, now)
            if old is None or old[0] != data:
                kind = "created" if old is None else "updated"
                entries.append(self.entry(uri, data, now, change=kind, moment=now))
        entries.extend(
            self.entry(uri, None, None, change="deleted", moment=now)
            for uri in before
            if uri not in contents
        )
        self.known = after
        if self._style.empties or (self._style.replaced and entries):
            self.rotate(now)
        listed = self.lists[-1].entries
        places = [entry[: entry.index("</loc>")] for entry in entries]
        late = 0 if self._style.latest_first else late
        while late and any(entry.startswith(tuple(places)) for entry in listed[-late:]):
            late -= 1
        place = max(0, len(listed) - late)
        listed[place:place] = entries
        if self._style.window:
            del listed[: -self._style.window]

    @property
    def open_list(self) -> ListedChanges:
        return self.lists[-1]

    def snapshot(self, now: int) -> None:
        self._at = now
        entries = (self.entry(uri, *known) for uri, known in sorted(self.known.items()))
        self._resource_list = self._document(
            f'<rs:md capability="resourcelist" at="{self._moment(now)}"/>', entries
        )

    def rotate(self, now: int) -> None:
        if not self.lists:
            return
        newest = self.lists[-1]
        newest.until = now
        self.lists.append(ListedChanges(number=newest.number + 1, start=now))
        if self._style.archive:
            self._archived.append(newest)
        del self.lists[: -1 - (self._style.keep if self._style.index else 0)]

    def documents(self) -> dict[str, str]:
        pointer = '<url><loc>{0}{1}.xml</loc><rs:md capability="{1}"/></url>'
        kinds = ["resourcelist", "changelist", *["changelist-archive"] * self._style.archive]
        names = {
            "capabilitylist.xml": self._document(
                '<rs:md capability="capabilitylist"/>',
                (pointer.format(self._folder, kind) for kind in kinds),
            ),
            "resourcelist.xml": self._resource_list,
        }
        if self._style.archive:
            names |= self._archive()
        if not self._style.index:
            return names | {"changelist.xml": self._change_list(self.lists[-1])}
        names |= {self._name(each): self._change_list(each) for each in self.lists}
        names["changelist.xml"] = self._document(
            f'<rs:md capability="changelist"{self._from(self.lists[0].start)}/>',
            map(self._part, reversed(self.lists) if self._style.newest_first else self.lists),
            tag="sitemapindex",
        )
        return names

    def _archive(self) -> dict[str, str]:
        names = {f"archived-{each.number}.xml": each for each in self._archived}
        parts = (f"<url><loc>{self._folder}{name}</loc></url>" for name in names)
        archive = self._document('<rs:md capability="changelist-archive"/>', parts)
        lists = {name: self._change_list(each) for name, each in names.items()}
        return {"changelist-archive.xml": archive} | lists

    def _name(self, each: ListedChanges) -> str:
        is_fixed = self._style.fixed and each.until is None
        return "changes-open.xml" if is_fixed else f"changes-{each.number}.xml"

    def _part(self, each: ListedChanges) -> str:
        span = ""
        if self._style.announces and not (self._style.mixed and each.number % 2 == 0):
            until = "" if each.until is None else f' until="{self._moment(each.until)}"'
            span = f'<rs:md capability="changelist"{self._from(each.start)}{until}/>'
        return f"<sitemap><loc>{self._folder}{self._name(each)}</loc>{span}</sitemap>"

    def _change_list(self, each: ListedChanges) -> str:
        until = "" if each.until is None else f' until="{self._moment(each.until)}"'
        interval = f"{self._from(each.start)}{until}" if self._style.begins else ""
        head = f'<rs:md capability="changelist"{interval}/>'
        return self._document(head, each.entries[:: -1 if self._style.latest_first else 1])

    def _from(self, moment: int) -> str:
        return f' from="{self._moment(moment)}"'

    def entry(
        self,
        uri: str,
        data: bytes | None,
        lastmod: int | None,
        *,
        change: str = "",
        moment: int = 0,
    ) -> str:
        """Return an entry; ``lastmod`` and ``moment`` are microseconds."""
        style, md = self._style, ""
        if change:
            md += f' change="{change}"'
            md += f' datetime="{self._moment(moment)}"' if style.times else ""
        if style.hashes and data is not None:
            md += facts(data)
        modified = ""
        if style.lastmods and lastmod is not None:
            modified = f"<lastmod>{self._moment(lastmod)}</lastmod>"
        md = f"<rs:md{md}/>" if md else ""
        links = self._links.of(uri, change)
        return f"<url><loc>{quoteattr(uri)[1:-1]}</loc>{modified}{md}{links}</url>"

    def _moment(self, now: int) -> str:
        whole = now - now % _SECOND if self._style.whole_seconds else now
        return format_w3c(from_microseconds(whole))

    @staticmethod
    def _document(head: str, entries: Iterable[str], *, tag: str = "urlset") -> str:
        lines = "\n".join(entries)
        return written(f"\n{head}\n{lines}\n", root=tag)


class LooseSource(PublishingSource):
    """Files in memory, listed as others do."""

    entry = f"{FOLDER}capabilitylist.xml"

    def __init__(
        self, edit: Callable[[str, str], str] = lambda _, text: text, /, **style: Any
    ) -> None:
        super().__init__()
        self.links = Links()
        known = Style(**style)
        self.lists = LooseLists(known, self.links)
        self._ahead = round(known.ahead * _SECOND)
        self._edit = edit

    def publish(self, *, after: float = 60, late: int = 0) -> None:
        """List what changed, some seconds later; ``late``: before so many that are listed."""
        self.lists.publish(self._later(after), self.contents(), late=late)
        self.show()

    def snapshot(self, *, after: float = 60) -> None:
        self.lists.snapshot(self._later(after))
        self.show()

    def rotate(self, *, after: float = 60) -> None:
        self.lists.rotate(self._later(after))
        self.show()

    def moment(self) -> int:
        return self._later(60)

    def show(self) -> None:
        if not self.lists.lists:
            return
        for name, text in self.lists.documents().items():
            self.documents.write(f"resourcesync/{name}", [self._edit(name, text).encode()])

    def saved(self) -> Self:
        return copy.deepcopy(self, {id(self.clock): self.clock})

    def _later(self, after: float) -> int:
        self.clock.advance(seconds=after)
        return to_microseconds(self.clock.now()) + self._ahead
