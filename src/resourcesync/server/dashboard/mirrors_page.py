"""The page of all mirrors: a search, the failures with one cause, and a table, page by page."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from resourcesync.destination.reports import MirrorStatus
from resourcesync.model import formatting
from resourcesync.server.dashboard.charts import spark
from resourcesync.server.dashboard.layout import (
    LIVE,
    ago,
    card,
    outcome,
    page,
    pill,
    row,
    sentence,
    table,
    time_tag,
)
from resourcesync.server.dashboard.markup import Markup, Piece, address, tag
from resourcesync.server.dashboard.mirror_selection import (
    PAGE_SIZE,
    FailureGroup,
    MirrorQuery,
    MirrorSelection,
    failure_text,
)
from resourcesync.server.dashboard.push_status import push_status
from resourcesync.server.dashboard.views import MirrorActivity, MirrorSummary, RunningJob

_HEADS: Final = (
    "Mirror",
    "State",
    "#In sync",
    "#Lag",
    "#Resources",
    "#Pending",
    "Changes, 7 days",
    "Last pull",
)
_COLUMNS: Final = {
    "Mirror": "name",
    "State": "state",
    "#In sync": "share",
    "#Lag": "-lag",
    "#Resources": "-resources",
    "#Pending": "-pending",
    "Last pull": "-last",
    "Next pull": "next",
}
"""The order that a heading leads to first."""
_HELP: Final = {
    "#In sync": "Share of the listed and deleted resources that are in the mirror as listed",
    "#Lag": "Time since the start of the last pull that found the mirror in sync",
    "#Pending": "Listed resources that are missing, or not as listed",
}
_WORDS: Final = {"unreadable": "cannot be read"}
_MOST_NAMES: Final = 100
_NO_ACTIVITY: Final = MirrorActivity()


def mirrors_page(
    selection: MirrorSelection,
    activity: Mapping[str, MirrorActivity],
    running: Sequence[RunningJob],
    now: datetime,
) -> str:
    """Return the page of some of the mirrors."""
    problems = selection.problems
    title = f"({formatting.count(problems)}) Mirrors" if problems else "Mirrors"
    live = tag(
        "div",
        _running(running, now),
        _filters(selection),
        _groups(selection),
        _table(selection, activity, now),
        _pager(selection),
        id="mirrors",
        **LIVE,
    )
    if not selection.total:
        live = tag("div", tag("p", "There are no mirrors yet.", class_="card"), **LIVE)
    head = tag("div", tag("h1", "Mirrors"), _search(selection.query), class_="title")
    return page(title, head, live, now=now, here="Mirrors", script=True)


def _running(jobs: Sequence[RunningJob], now: datetime) -> Markup:
    shown = [
        tag("span", tag("strong", job.mirror), f" {running_text(job, now)}", class_="running")
        for job in jobs
    ]
    return tag("p", "Now: ", shown or "nothing runs.", class_="muted now")


def _search(query: MirrorQuery) -> Markup:
    hidden = [
        tag("input", type="hidden", name=name, value=value)
        for name, value in query.fields(text="", page=1).items()
    ]
    clear = tag("a", "all", href=address("./", **query.fields(text="", page=1)))
    return tag(
        "form",
        hidden,
        tag(
            "input",
            name="q",
            value=query.text,
            type="search",
            aria_label="Name or host",
            placeholder="Name or host",
        ),
        tag("button", "Search"),
        clear if query.text else None,
        method="get",
        action="./",
        class_="search",
    )


def _filters(selection: MirrorSelection) -> Markup:
    query = selection.query
    total = sum(
        count for name, count in selection.counts.items() if name not in {"problems", "paused"}
    )
    shown = [("", f"all {formatting.count(total)}")] + [
        (
            name,
            formatting.counted(count, "problem")
            if name == "problems"
            else f"{formatting.count(count)} {_WORDS.get(name, name)}",
        )
        for name, count in selection.counts.items()
    ]
    links = [
        tag(
            "a",
            text,
            href=address("./", **query.fields(state=name, page=1)),
            aria_current="true" if name == query.state else None,
        )
        for name, text in shown
    ]
    return tag("nav", links, class_="choice filters", aria_label="Mirrors by state")


def _groups(selection: MirrorSelection) -> Markup | None:
    if not selection.groups or selection.query.page > 1:
        return None
    unfolded = address("./", **selection.query.fields(is_folded=False, page=1))
    return card(
        [_group(group, selection.query) for group in selection.groups],
        tag("p", tag("a", "Show each of them as a row", href=unfolded), class_="muted"),
        title="Failures with one cause",
        look="advice bad",
    )


def _group(group: FailureGroup, query: MirrorQuery) -> Markup:
    names = [
        tag("li", tag("a", summary.name, href=address("mirror", name=summary.name)), _next(summary))
        for summary in group.mirrors[:_MOST_NAMES]
    ]
    more = len(group.mirrors) - len(names)
    if more:
        fields = query.fields(text=group.host, state="failing", is_folded=False, page=1)
        text = f"and {formatting.count(more)} more"
        names.append(tag("li", tag("a", text, href=address("./", **fields))))
    return tag(
        "details",
        tag("summary", tag("strong", failure_text(group))),
        tag("ul", names, class_="names"),
        id=f"group-{group.code}-{group.host}",
    )


def _next(summary: MirrorSummary) -> Piece:
    return f" next pull {summary.next_pull}" if summary.next_pull else None


def _table(
    selection: MirrorSelection, activity: Mapping[str, MirrorActivity], now: datetime
) -> Markup | None:
    if not selection.shown:
        return None if selection.groups else card("No mirror is like this.")
    heads = _heads(selection.shown)
    rows = [
        part
        for summary in selection.shown
        for part in _rows(summary, activity.get(summary.name, _NO_ACTIVITY), now, heads)
    ]
    titles = {head: _head_link(head, selection.query) for head in heads if head in _COLUMNS}
    return tag("div", table(heads, rows, titles=titles), class_="card")


def _head_link(head: str, query: MirrorQuery) -> Markup:
    first = _COLUMNS[head]
    second = first.removeprefix("-") if first.startswith("-") else f"-{first}"
    target = second if query.sort == first else first
    mark = {first: " ↓", second: " ↑"}.get(query.sort)
    return tag(
        "a",
        head.lstrip("#"),
        mark,
        href=address("./", **query.fields(sort=target, page=1)),
        title=_HELP.get(head),
    )


def _pager(selection: MirrorSelection) -> Markup | None:
    if selection.pages == 1:
        return None
    query, last = selection.query, selection.pages
    first = (query.page - 1) * PAGE_SIZE + 1
    end = first + len(selection.shown) - 1
    numbers = [
        tag("a", name, href=address("./", **query.fields(page=number)))
        for name, number in (
            ("first", 1),
            ("previous", query.page - 1),
            ("next", query.page + 1),
            ("last", last),
        )
        if 1 <= number <= last and number != query.page
    ]
    text = f"{formatting.count(first)} to {formatting.count(end)} of "
    found = formatting.count(len(selection.found))
    return tag(
        "nav",
        tag("span", text, found),
        numbers,
        class_="choice pages",
        aria_label="Pages of mirrors",
    )


def _heads(mirrors: Sequence[MirrorSummary]) -> tuple[str, ...]:
    """Return the headings of the columns; those without a value for any mirror are left out."""
    more = {
        "Next pull": any(mirror.next_pull for mirror in mirrors),
        "Push": any(mirror.push is not None for mirror in mirrors),
    }
    return (*_HEADS, *(head for head, is_known in more.items() if is_known))


def _rows(
    summary: MirrorSummary, activity: MirrorActivity, now: datetime, heads: Sequence[str]
) -> Iterator[Markup]:
    if summary.error:
        cells: list[Piece] = [
            tag("strong", summary.name),
            outcome(is_good=False, word="not readable"),
        ]
        yield row(heads, [*cells, *["-"] * (len(heads) - len(cells))])
    else:
        more: dict[str, Piece] = {"Next pull": planned(summary), "Push": push_status(summary.push)}
        shown = [more[head] for head in heads[len(_HEADS) :]]
        yield row(heads, [*_cells(summary, activity, now), *shown])
    notes = summary.notes or ((summary.error,) if summary.error else ())
    sentences = [
        tag("p", text) for text in (failing_text(summary, activity.failing_since),) if text
    ]
    sentences += [tag("p", sentence(without_exit(note))) for note in _first_notes(notes)]
    if sentences:
        yield tag("tr", tag("td", sentences, colspan=len(heads)), class_="note")


def without_exit(note: str) -> str:
    """Return a note without the exit code at its end, which is for programs."""
    before, mark, code = note.rpartition("  exit ")
    return before if mark and code.isdigit() else note


def failing_text(summary: MirrorSummary, since: datetime | None) -> Piece:
    """Return since when a mirror fails, and when it is tried again; ``None`` if it does not."""
    if since is None:
        return None
    again = summary.next_pull and not summary.is_paused
    return (
        "Failing since ",
        time_tag(since),
        f", {formatting.counted(summary.tries, 'try', 'tries')}" if summary.tries else None,
        (", next try ", planned(summary)) if again else None,
        ".",
    )


def planned(summary: MirrorSummary) -> Piece:
    """Return the time and the reason of a mirror's next pull; a dash if they are unknown."""
    if not summary.next_pull or summary.next_at is None:
        return summary.next_pull or "-"
    return time_tag(summary.next_at, summary.next_pull)


def running_text(job: RunningJob, now: datetime) -> str:
    """Return the progress of a running job, in a few words."""
    parts = [f"{job.kind} runs for {formatting.age((now - job.since).total_seconds())}"]
    if job.total:
        parts.append(f"{formatting.count(job.done)} of {formatting.count(job.total)} fetched")
    return ", ".join(parts)


def _first_notes(notes: Sequence[str]) -> Sequence[str]:
    """Return the first note, and the one with the remedy."""
    fix = next(
        (note for note in notes[1:] if "resourcesync " in note or note.startswith("next")), None
    )
    return notes[:1] if fix is None else (notes[0], fix)


def _cells(summary: MirrorSummary, activity: MirrorActivity, now: datetime) -> Iterator[Piece]:
    status = summary.status
    yield tag("a", tag("strong", summary.name), href=address("mirror", name=summary.name))
    yield state_labels(summary, now)
    yield share(summary)
    lag = "-" if summary.lag is None else formatting.age(summary.lag)
    yield tag("span", lag, class_="state bad") if summary.is_late else lag
    yield formatting.count(status.resources)
    yield _pending(status)
    yield spark(activity.days, "Changes of the last 7 days") if activity.days else "-"
    yield "never" if status.last_run is None else ago(status.last_run, now)


def state_labels(summary: MirrorSummary, now: datetime) -> Piece:
    """Return the state of a mirror, whether it is paused, and what runs now."""
    running = summary.running
    return (
        pill(summary.status.state),
        (" ", tag("span", "paused", class_="state calm")) if summary.is_paused else None,
        None
        if running is None
        else (" ", tag("span", running_text(running, now), class_="muted running")),
    )


def _pending(status: MirrorStatus) -> Piece:
    """Return the number of pending resources, and of deletions that are not applied."""
    if not status.held:
        return formatting.count(status.pending)
    held = f"{formatting.counted(status.held, 'deletion')} held"
    return f"{formatting.count(status.pending)}, {held}" if status.pending else held


def share(summary: MirrorSummary) -> str:
    """Return the share that is in sync, of listed and deleted resources, where it is known."""
    return summary.status.share_text
