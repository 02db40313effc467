"""The page of all mirrors: a search, the failures with one cause, and a table, page by page."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from resourcesync.destination.mirror_health import pending_text
from resourcesync.destination.reports import MirrorStatus
from resourcesync.model import formatting
from resourcesync.server.dashboard import layout, mirror_selection
from resourcesync.server.dashboard.markup import Markup, Piece, address, tag
from resourcesync.server.dashboard.push_card import push_label
from resourcesync.server.dashboard.views import MirrorSummary, RunningJob, next_pull_text

HOME: Final = "Mirrors"
_HEADS: Final = ("Mirror", "State", "#In sync", "#Lag", "#Copies", "#Pending", "Last pull")
_WORDS: Final = {"unreadable": "cannot be read"}
_MOST_NAMES: Final = 100


def mirrors_page(selection: mirror_selection.MirrorSelection, now: datetime) -> str:
    """Return the page of some of the mirrors."""
    problems = f"({formatting.count(selection.problems)}) " if selection.problems else ""
    body: Piece = tag("p", "There are no mirrors yet.", class_="card")
    if selection.total:
        body = (_filters(selection), _groups(selection), _table(selection, now), _pager(selection))
    head = tag("div", tag("h1", HOME), _search(selection.query), class_="title")
    return layout.page(f"{problems}{HOME}", head, body, now=now, home=HOME, is_live=True)


def _search(query: mirror_selection.MirrorQuery) -> Markup:
    field = tag(
        "input",
        name="q",
        value=query.text,
        type="search",
        aria_label="Name or host",
        placeholder="Name or host",
    )
    state = tag("input", type="hidden", name="state", value=query.state) if query.state else None
    clear = tag("a", "all", href=address("./", **query.fields(text="", page=1)))
    pieces = (state, field, tag("button", "Search"), clear if query.text else None)
    return tag("form", *pieces, method="get", action="./", class_="search")


def _filters(selection: mirror_selection.MirrorSelection) -> Markup:
    query, counts = selection.query, selection.counts
    total = sum(number for name, number in counts.items() if name not in {"problems", "paused"})
    shown = [("", f"all {formatting.count(total)}")]
    shown += [
        (name, f"{formatting.count(counts[name])} {_WORDS.get(name, name)}") for name in counts
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
    return tag("nav", links, class_="choice", aria_label="Mirrors by state")


def _groups(selection: mirror_selection.MirrorSelection) -> Markup | None:
    if not selection.groups or selection.query.page > 1:
        return None
    found = [_group(group) for group in selection.groups]
    return layout.card(found, title="Failures with one cause", look="advice bad")


def _group(group: mirror_selection.FailureGroup) -> Markup:
    names = [
        tag("li", tag("a", summary.name, href=address("mirror", name=summary.name)))
        for summary in group.mirrors[:_MOST_NAMES]
    ]
    query = mirror_selection.MirrorQuery(text=group.host, state="failing")
    rows = tag("a", "Show each of them as a row", href=address("./", **query.fields()))
    more = len(group.mirrors) - len(names)
    rest = f" ({formatting.count(more)} more)" if more else None
    return tag(
        "details",
        tag("summary", tag("strong", group.text)),
        tag("ul", names, class_="names"),
        tag("p", rows, rest),
    )


def _table(selection: mirror_selection.MirrorSelection, now: datetime) -> Markup | None:
    if not selection.shown:
        return None if selection.groups else layout.card("No mirror is like this.")
    more = {
        "Next pull": any(mirror.next is not None for mirror in selection.shown),
        "Push": any(mirror.push is not None for mirror in selection.shown),
    }
    heads = (*_HEADS, *(head for head, is_known in more.items() if is_known))
    rows = [part for summary in selection.shown for part in _rows(summary, now, heads)]
    return layout.card(layout.table(heads, rows))


def _pager(selection: mirror_selection.MirrorSelection) -> Markup | None:
    if selection.pages == 1:
        return None
    query = selection.query
    first = (query.page - 1) * mirror_selection.PAGE_SIZE + 1
    numbers = (("previous", query.page - 1), ("next", query.page + 1))
    links = [
        tag("a", name, href=address("./", **query.fields(page=number)))
        for name, number in numbers
        if 1 <= number <= selection.pages
    ]
    last = formatting.count(first + len(selection.shown) - 1)
    text = f"{formatting.count(first)} to {last} of {formatting.count(len(selection.found))}"
    return tag("nav", tag("span", text), links, class_="choice", aria_label="Pages of mirrors")


def _rows(summary: MirrorSummary, now: datetime, heads: Sequence[str]) -> Iterator[Markup]:
    link = tag("a", tag("strong", summary.name), href=address("mirror", name=summary.name))
    more: dict[str, Piece] = {
        "Next pull": next_pull(summary, now),
        "Push": push_label(summary.push),
    }
    shown = [more[head] for head in heads[len(_HEADS) :]]
    unknown = (layout.label("not readable", "bad"), *["-"] * (len(_HEADS) - 2))
    cells = unknown if summary.error else _cells(summary, now)
    yield layout.row(heads, [link, *cells, *shown])
    notes = [*failing_text(summary, now), *map(layout.sentence, _first_notes(notes_of(summary)))]
    if notes and not summary.seen.is_fine:  # what is known by dates only is on the mirror's page
        yield layout.note_row(heads, *notes)


def notes_of(summary: MirrorSummary) -> list[str]:
    """Return the notes about a mirror, without the exit codes at their ends, for programs."""
    return [_without_exit(note) for note in summary.notes]


def _without_exit(note: str) -> str:
    before, mark, code = note.rpartition("  exit ")
    return before if mark and code.isdigit() else note


def _first_notes(notes: Sequence[str]) -> Iterable[str]:
    fixes = (note for note in notes[1:] if "resourcesync " in note or note.startswith("next"))
    return (*notes[:1], *list(fixes)[:1])


def failing_text(summary: MirrorSummary, now: datetime) -> Iterator[Piece]:
    """Yield since when a mirror fails, and when it is tried again; nothing if it does not."""
    since, planned = summary.status.failing_since, summary.next
    if since is None:
        return
    tries = 0 if planned is None else planned.failures
    again = planned is not None and not planned.is_paused
    yield (
        "Failing since ",
        layout.time_tag(since),
        f", {formatting.counted(tries, 'try', 'tries')}" if tries else None,
        (", next try ", next_pull(summary, now)) if again else None,
        ".",
    )


def next_pull(summary: MirrorSummary, now: datetime) -> Piece:
    """Return the time and the reason of a mirror's next pull; a dash if they are unknown."""
    planned = summary.next
    if planned is None:
        return "-"
    text = next_pull_text(planned, now)
    return (
        text
        if planned.time is None
        else layout.time_tag(datetime.fromtimestamp(planned.time, UTC), text)
    )


def _cells(summary: MirrorSummary, now: datetime) -> Iterator[Piece]:
    status = summary.status
    yield state_labels(summary, now)
    yield status.share_text
    lag = "-" if summary.seen.lag is None else formatting.age(summary.seen.lag)
    yield layout.label(lag, "bad") if summary.seen.is_late else lag
    yield formatting.count(status.resources)
    yield _pending(status)
    yield "never" if status.last_run is None else layout.ago(status.last_run, now)


def _pending(status: MirrorStatus) -> str:
    if not status.held:
        return pending_text(status)
    held = f"{formatting.counted(status.held, 'deletion')} held"
    return f"{formatting.count(status.listed.pending)}, {held}" if status.listed.pending else held


def state_labels(summary: MirrorSummary, now: datetime) -> Piece:
    """Return the state of a mirror, whether it is paused, and what runs now."""
    paused = (" ", layout.label("paused", "calm")) if summary.is_paused else None
    job = summary.running
    running = None if job is None else (" ", tag("span", _running_text(job, now), class_="muted"))
    return layout.pill(summary.status.state), paused, running


def _running_text(job: RunningJob, now: datetime) -> str:
    text = f"{job.kind} runs for {formatting.age((now - job.since).total_seconds())}"
    if not job.total:
        return text
    return f"{text}, {formatting.count(job.done)} of {formatting.count(job.total)} fetched"
