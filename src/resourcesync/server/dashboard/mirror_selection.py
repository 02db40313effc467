"""The mirrors that the page of mirrors shows: those of a search, in an order, page by page.

All is decided from the summaries; nothing is read. A thousand mirrors take a few milliseconds.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.destination.reports import MirrorState
from resourcesync.model import formatting
from resourcesync.server.dashboard.views import MirrorSummary

PAGE_SIZE: Final = 100
"""Number of mirrors on a page."""
_SMALLEST_GROUP: Final = 3
_MOST_TEXT: Final = 200

UNREADABLE: Final = "unreadable"
PROBLEMS: Final = "problems"
PAUSED: Final = "paused"
_ORDER: Final = (
    MirrorState.STOPPED,
    MirrorState.FAILING,
    MirrorState.BEHIND,
    MirrorState.NEW,
    MirrorState.SYNCING,
    MirrorState.IN_SYNC,
)
_BAD: Final = frozenset({MirrorState.STOPPED, MirrorState.FAILING})
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_ALWAYS: Final = datetime.max.replace(tzinfo=UTC)

_FILTERS: Final = (PROBLEMS, UNREADABLE, *(state.value for state in _ORDER), PAUSED)


def is_problem(summary: MirrorSummary) -> bool:
    """True if it cannot be read, fails, is stopped, or lags by more than is acceptable."""
    if summary.error or summary.status.state in _BAD:
        return True
    return summary.is_late


def host_of(address: str) -> str:
    """Return the host of a Source's address; empty for a folder."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


class MirrorQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A request for some of the mirrors, from the query of the page.

    Attributes:
        text: Part of the name or of the Source's host; empty for all.
        state: A state, or ``problems``, ``unreadable`` or ``paused``; empty for all.
        sort: The column that decides the order, ``-`` before it for the reverse; empty for the
            worst first.
        page: Number of the page, from 1.
        is_folded: True if failures with one cause are one line.
    """

    text: str = ""
    state: str = ""
    sort: str = ""
    page: int = 1
    is_folded: bool = True

    @classmethod
    def parse(cls, fields: Mapping[str, str]) -> "MirrorQuery":
        """Return the request; what is not valid is as if it were not given."""
        state, sort, page = (fields.get(name, "") for name in ("state", "sort", "page"))
        return cls(
            text=fields.get("q", "").strip()[:_MOST_TEXT],
            state=state if state in _FILTERS else "",
            sort=sort if sort.removeprefix("-") in SORTS else "",
            page=max(int(page), 1) if page.isascii() and page.isdigit() and len(page) < 7 else 1,  # noqa: PLR2004 - digits
            is_folded=fields.get("fold") != "no",
        )

    def fields(self, **changed: str | int | bool) -> dict[str, str | int]:
        """Return the query that leads to this request with some of its fields changed."""
        other = msgspec.structs.replace(self, **changed)
        found: dict[str, str | int] = {}
        if other.text:
            found["q"] = other.text
        if other.state:
            found["state"] = other.state
        if other.sort:
            found["sort"] = other.sort
        if not other.is_folded:
            found["fold"] = "no"
        if other.page > 1:
            found["page"] = other.page
        return found

    def finds(self, summary: MirrorSummary) -> bool:
        """True if the text is in the name of a mirror or the host of its Source."""
        text = self.text.casefold()
        if text and text not in summary.name.casefold():
            return text in host_of(summary.status.source)
        return True


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Mirrors that fail for one cause.

    Attributes:
        code: The code of the error.
        host: The host of their Sources.
        mirrors: The mirrors, by name.
    """

    code: str
    host: str
    mirrors: tuple[MirrorSummary, ...]


class MirrorSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The mirrors of a request, and how many there are.

    Attributes:
        query: The request; its page exists.
        total: Number of all mirrors.
        problems: Number of all mirrors with a problem.
        counts: Number of mirrors by filter, of those that the search finds; filters without one
            are left out.
        found: The mirrors that are rows, in their order, of all pages.
        groups: The failures with one cause, the largest first; these mirrors are no rows.
    """

    query: MirrorQuery
    total: int
    problems: int
    counts: Mapping[str, int]
    found: Sequence[MirrorSummary]
    groups: tuple[FailureGroup, ...] = ()

    @property
    def pages(self) -> int:
        """Return the number of pages, at least 1."""
        return max(-(-len(self.found) // PAGE_SIZE), 1)

    @property
    def shown(self) -> Sequence[MirrorSummary]:
        """Return the mirrors of the requested page."""
        first = (self.query.page - 1) * PAGE_SIZE
        return self.found[first : first + PAGE_SIZE]


def select_mirrors(mirrors: Sequence[MirrorSummary], query: MirrorQuery) -> MirrorSelection:
    """Return the mirrors of a request."""
    searched = [summary for summary in mirrors if query.finds(summary)]
    counts = Counter(name for summary in searched for name in _filters(summary))
    found = [summary for summary in searched if not query.state or query.state in _filters(summary)]
    groups = _groups(found) if query.is_folded else ()
    folded = {summary.name for group in groups for summary in group.mirrors}
    rows = sorted((summary for summary in found if summary.name not in folded), key=_badness)
    if query.sort:
        rows = _sorted(rows, query.sort)
    last = max(-(-len(rows) // PAGE_SIZE), 1)
    return MirrorSelection(
        query=msgspec.structs.replace(query, page=min(query.page, last)),
        total=len(mirrors),
        problems=sum(map(is_problem, mirrors)),
        counts={name: counts[name] for name in _FILTERS if counts[name]},
        found=rows,
        groups=groups,
    )


def _filters(summary: MirrorSummary) -> tuple[str, ...]:
    """Return the filters that a mirror passes."""
    state = UNREADABLE if summary.error else summary.status.state.value
    more = ((PROBLEMS, is_problem(summary)), (PAUSED, summary.is_paused))
    return (state, *(name for name, is_so in more if is_so))


def _groups(mirrors: Sequence[MirrorSummary]) -> tuple[FailureGroup, ...]:
    found: dict[tuple[str, str], list[MirrorSummary]] = {}
    for summary in mirrors:
        status = summary.status
        host = host_of(status.source)
        if summary.error or status.state is not MirrorState.FAILING or not host:
            continue
        code = status.outcome if status.failed is None else status.failed.code
        found.setdefault((code, host), []).append(summary)
    groups = [
        FailureGroup(code=code, host=host, mirrors=tuple(sorted(same, key=_name)))
        for (code, host), same in found.items()
        if len(same) >= _SMALLEST_GROUP
    ]
    return tuple(sorted(groups, key=lambda group: (-len(group.mirrors), group.host, group.code)))


def _name(summary: MirrorSummary) -> str:
    return summary.name


def _badness(summary: MirrorSummary) -> tuple[bool, int, float, str]:
    return not summary.error, _rank(summary), -_lag(summary), summary.name


def _rank(summary: MirrorSummary) -> int:
    return _ORDER.index(summary.status.state)


def _lag(summary: MirrorSummary) -> float:
    return inf if summary.lag is None else summary.lag


SORTS: Final[Mapping[str, Callable[[MirrorSummary], str | float | datetime]]] = {
    "name": _name,
    "state": _rank,
    "share": lambda summary: -1.0 if (share := summary.status.share) is None else share,
    "lag": _lag,
    "resources": lambda summary: summary.status.resources,
    "pending": lambda summary: summary.status.pending,
    "last": lambda summary: summary.status.last_run or _NEVER,
    "next": lambda summary: summary.next_at or _ALWAYS,
}
"""The columns that a table can be sorted by, each with the value that decides."""


def _sorted(rows: Sequence[MirrorSummary], sort: str) -> list[MirrorSummary]:
    """Return the rows in the order of a column; those without a value are last either way."""
    value = SORTS[sort.removeprefix("-")]
    return sorted(rows, key=value, reverse=sort.startswith("-"))


def failure_text(group: FailureGroup) -> str:
    """Return what the mirrors of a group have in common, in a sentence."""
    failed = group.mirrors[0].status.failed
    why = group.code if failed is None or not failed.message else failed.message
    return f"{formatting.counted(len(group.mirrors), 'mirror')} of {group.host}: {why}"
