"""A Source that is not ours: its Change Lists are cut, reset, archived and dated as others do."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from resourcesync.model.timestamps import format_w3c, from_microseconds

_OPEN = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<{tag} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
)
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a Source writes its lists.

    Attributes:
        hashes: Whether entries have a ``hash`` and a ``length``.
        times: Whether changes have a ``datetime``.
        lastmods: Whether entries have a ``lastmod``.
        index: Closed lists and an open one behind an index; else one list that is reset.
        announces: Whether the index tells which interval each list covers.
        mixed: Whether it tells so of every second list only, if it tells it at all.
        newest_first: Whether the index has the newest list first.
        fixed: Whether the open list of an index always has the same URI.
        whole_seconds: Whether times are cut to seconds.
        keep: How many closed lists stay offered.
    """

    hashes: bool = True
    times: bool = True
    lastmods: bool = True
    index: bool = False
    announces: bool = True
    mixed: bool = False
    newest_first: bool = False
    fixed: bool = False
    whole_seconds: bool = False
    keep: int = 2


@dataclass(slots=True, kw_only=True)
class ListedChanges:
    """One Change List."""

    number: int
    start: int
    until: int | None = None
    entries: list[str] = field(default_factory=list)


class LooseSource:
    """Writes the documents of a Source in one of many styles.

    Args:
        base: The URI of the resources' root.
        style: How.
    """

    def __init__(self, base: str, style: Style) -> None:
        self._base = base
        self._style = style
        self.known: dict[str, tuple[bytes, int]] = {}
        self.lists: list[ListedChanges] = []
        self._at: int | None = None
        self._resource_list = ""

    def publish(self, now: int, contents: dict[str, bytes], *, late: int = 0) -> None:
        """List what changed, at ``now`` in microseconds; ``late``: before so many that are listed.

        A change is never put before another one of the same resource.
        """
        if not self.lists:
            self.known = {uri: (data, now) for uri, data in contents.items()}
            self.lists.append(ListedChanges(number=1, start=now))
            self.snapshot(now)
            return
        before, entries, listed = self.known, list[str](), self.lists[-1].entries
        after = {}
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
        places = [entry[: entry.index("</loc>")] for entry in entries]
        while late and any(entry.startswith(tuple(places)) for entry in listed[-late:]):
            late -= 1
        place = max(0, len(listed) - late)
        listed[place:place] = entries

    @property
    def open_list(self) -> ListedChanges:
        """The list that further changes are added to."""
        return self.lists[-1]

    def snapshot(self, now: int) -> None:
        """Write the Resource List anew."""
        self._at = now
        entries = (self.entry(uri, *known) for uri, known in sorted(self.known.items()))
        self._resource_list = self._document(
            f'<rs:md capability="resourcelist" at="{self._moment(now)}"/>', entries
        )

    def rotate(self, now: int) -> None:
        """Close the open list and begin a new one; forget the oldest."""
        if not self.lists:
            return
        newest = self.lists[-1]
        newest.until = now
        self.lists.append(ListedChanges(number=newest.number + 1, start=now))
        del self.lists[: -1 - (self._style.keep if self._style.index else 0)]

    def documents(self) -> dict[str, str]:
        """Return all documents by name."""
        pointer = '<url><loc>{0}{1}.xml</loc><rs:md capability="{1}"/></url>'
        names = {
            "capabilitylist.xml": self._document(
                '<rs:md capability="capabilitylist"/>',
                (pointer.format(self._base, kind) for kind in ("resourcelist", "changelist")),
            ),
            "resourcelist.xml": self._resource_list,
        }
        if not self._style.index:
            return names | {"changelist.xml": self._change_list(self.lists[-1])}
        names |= {self._name(each): self._change_list(each) for each in self.lists}
        names["changelist.xml"] = self._document(
            f'<rs:md capability="changelist"{self._from(self.lists[0].start)}/>',
            map(self._part, reversed(self.lists) if self._style.newest_first else self.lists),
            tag="sitemapindex",
        )
        return names

    def _name(self, each: ListedChanges) -> str:
        is_fixed = self._style.fixed and each.until is None
        return "changes-open.xml" if is_fixed else f"changes-{each.number}.xml"

    def _part(self, each: ListedChanges) -> str:
        span = ""
        if self._style.announces and not (self._style.mixed and each.number % 2 == 0):
            until = "" if each.until is None else f' until="{self._moment(each.until)}"'
            span = f'<rs:md capability="changelist"{self._from(each.start)}{until}/>'
        return f"<sitemap><loc>{self._base}{self._name(each)}</loc>{span}</sitemap>"

    def _change_list(self, each: ListedChanges) -> str:
        until = "" if each.until is None else f' until="{self._moment(each.until)}"'
        head = f'<rs:md capability="changelist"{self._from(each.start)}{until}/>'
        return self._document(head, each.entries)

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
        style, md = self._style, ""
        if change:
            md += f' change="{change}"'
            md += f' datetime="{self._moment(moment)}"' if style.times else ""
        if style.hashes and data is not None:
            md += f' hash="sha-256:{hashlib.sha256(data).hexdigest()}" length="{len(data)}"'
        modified = ""
        if style.lastmods and lastmod is not None:
            modified = f"<lastmod>{self._moment(lastmod)}</lastmod>"
        md = f"<rs:md{md}/>" if md else ""
        return f"<url><loc>{quoteattr(uri)[1:-1]}</loc>{modified}{md}</url>"

    def _moment(self, now: int) -> str:
        whole = now - now % _SECOND if self._style.whole_seconds else now
        return format_w3c(from_microseconds(whole))

    @staticmethod
    def _document(head: str, entries: Iterable[str], *, tag: str = "urlset") -> str:
        lines = "\n".join(entries)
        return f"{_OPEN.format(tag=tag)}{head}\n{lines}\n</{tag}>\n"
