"""The mirrors that the overview shows: those of a search, the worst first, page by page.

All is decided from the summaries; nothing is read. A thousand mirrors take a few milliseconds.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.destination.mirror_health import WORST_FIRST
from resourcesync.destination.reports import MirrorState
from resourcesync.model import formatting
from resourcesync.server.dashboard.views import MirrorSummary

PAGE_SIZE: Final = 100
"""Number of mirrors on a page."""
_SMALLEST_GROUP: Final = 3
_MOST_TEXT: Final = 200
_MOST_DIGITS: Final = 6
_BAD: Final = frozenset({MirrorState.STOPPED, MirrorState.FAILING})
_FILTERS: Final = ("problems", "unreadable", *(state.value for state in WORST_FIRST), "paused")


def is_problem(summary: MirrorSummary) -> bool:
    """True if it cannot be read, fails, is stopped, or lags by more than is acceptable."""
    return bool(summary.error) or summary.status.judged in _BAD or summary.seen.is_late


def host_of(address: str) -> str:
    """Return the host of a Source's address, with its port; empty for a folder."""
    try:
        return urlsplit(address).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""


class MirrorQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A request for some of the mirrors: part of a name or host, a filter, a page from 1."""

    text: str = ""
    state: str = ""
    page: int = 1

    @classmethod
    def parse(cls, fields: Mapping[str, str]) -> "MirrorQuery":
        """Return the request; what is not valid is as if it were not given."""
        state, page = fields.get("state", ""), fields.get("page", "")
        is_number = page.isascii() and page.isdigit() and len(page) <= _MOST_DIGITS
        return cls(
            text=fields.get("q", "").strip()[:_MOST_TEXT],
            state=state if state in _FILTERS else "",
            page=max(int(page), 1) if is_number else 1,
        )

    def fields(self, **changed: str | int) -> dict[str, str]:
        """Return the query that leads to this request with some of its fields changed."""
        other = msgspec.structs.replace(self, **changed)
        page = str(other.page) if other.page > 1 else ""
        shown = {"q": other.text, "state": other.state, "page": page}
        return {name: value for name, value in shown.items() if value}

    def finds(self, summary: MirrorSummary) -> bool:
        """True if the text is in the name of a mirror or the host of its Source."""
        text = self.text.casefold()
        return text in summary.name.casefold() or text in host_of(summary.status.source)


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Mirrors, by name, of one host that fail by one code."""

    code: str
    host: str
    mirrors: tuple[MirrorSummary, ...]

    @property
    def text(self) -> str:
        """What they have in common, in a sentence."""
        failed = self.mirrors[0].status.failed_run
        why = (failed and failed.message) or self.code
        return f"{formatting.counted(len(self.mirrors), 'mirror')} of {self.host}: {why}"


class MirrorSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The mirrors of a request, and how many there are.

    ``counts`` are by filter, of those that the search finds. ``found`` has all pages. ``groups``
    are the failures with one cause, the largest first: these mirrors are no rows. There are none
    for a request that searches or filters.
    """

    query: MirrorQuery
    total: int
    problems: int
    counts: Mapping[str, int]
    found: Sequence[MirrorSummary]
    groups: tuple[FailureGroup, ...] = ()

    @property
    def pages(self) -> int:
        """The number of pages, at least 1."""
        return max(-(-len(self.found) // PAGE_SIZE), 1)

    @property
    def shown(self) -> Sequence[MirrorSummary]:
        """The mirrors of the requested page."""
        first = (self.query.page - 1) * PAGE_SIZE
        return self.found[first : first + PAGE_SIZE]


def select_mirrors(mirrors: Sequence[MirrorSummary], query: MirrorQuery) -> MirrorSelection:
    """Return the mirrors of a request."""
    searched = [summary for summary in mirrors if query.finds(summary)]
    counts = Counter(name for summary in searched for name in _filters(summary))
    found = [summary for summary in searched if not query.state or query.state in _filters(summary)]
    groups = () if query.text or query.state else _groups(found)
    folded = {summary.name for group in groups for summary in group.mirrors}
    single = [summary for summary in found if summary.name not in folded]
    rows = sorted(single, key=lambda summary: (not summary.error, summary.seen.rank))
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
    state = "unreadable" if summary.error else summary.status.state.value
    more = (("problems", is_problem(summary)), ("paused", summary.is_paused))
    return (state, *(name for name, is_so in more if is_so))


def _groups(mirrors: Sequence[MirrorSummary]) -> tuple[FailureGroup, ...]:
    found: dict[tuple[str, str], list[MirrorSummary]] = {}
    for summary in mirrors:
        status = summary.status
        host = host_of(status.source)
        if summary.error or status.judged is not MirrorState.FAILING or not host:
            continue
        code = status.outcome if status.failed_run is None else status.failed_run.code
        found.setdefault((code, host), []).append(summary)
    groups = [
        FailureGroup(code=code, host=host, mirrors=tuple(sorted(same, key=lambda one: one.name)))
        for (code, host), same in found.items()
        if len(same) >= _SMALLEST_GROUP
    ]
    return tuple(sorted(groups, key=lambda group: (-len(group.mirrors), group.host, group.code)))
