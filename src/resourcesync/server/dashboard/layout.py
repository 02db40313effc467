"""Common parts of all pages: their frame, states, tables and notes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib import resources
from typing import Final

from resourcesync import __version__
from resourcesync.destination.reports import MirrorState
from resourcesync.model import formatting
from resourcesync.server.dashboard.markup import Markup, Piece, join_markup, tag

STYLE: Final = resources.files(__package__).joinpath("style.css").read_text("utf-8")
"""The style of the pages, light and dark."""
_STATE_CLASSES: Final = {
    MirrorState.IN_SYNC: "good",
    MirrorState.BEHIND: "warn",
    MirrorState.SYNCING: "calm",
    MirrorState.NEW: "calm",
    MirrorState.FAILING: "bad",
    MirrorState.STOPPED: "bad",
}


def page(title: str, *body: Piece, now: datetime, home: str, is_live: bool = False) -> str:
    """Return a whole page; one that is loaded again by itself has a link that ends it."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} | resourcesync"),
        tag("link", rel="icon", href="data:,"),  # without it a browser requests one
        tag("link", rel="stylesheet", href="style.css"),
    )
    still = tag("a", "Do not load again", href="./?still=1") if is_live else None
    top = tag("header", tag("div", tag("a", tag("strong", home), href="./"), still, time_tag(now)))
    foot = tag("footer", f"resourcesync {__version__}. All times are UTC.")
    whole = tag("html", head, tag("body", top, tag("main", *body), foot), lang="en")
    return f"<!doctype html>\n{whole}\n"


def time_tag(moment: datetime, text: str = "") -> Markup:
    """Return a time; a pointer over it shows it in full."""
    full = formatting.moment(moment)
    return tag("time", text or full, datetime=formatting.stamp(moment), title=full)


def ago(moment: datetime, now: datetime) -> Markup:
    """Return how long ago something was; a pointer over it shows the time."""
    return time_tag(moment, f"{formatting.age((now - moment).total_seconds())} ago")


def pill(state: MirrorState) -> Markup:
    """Return the word for a state, in its colour."""
    return label(state.value, _STATE_CLASSES[state])


def label(word: str, look: str) -> Markup:
    """Return a word in a colour: ``good``, ``warn``, ``bad`` or ``calm``."""
    return tag("span", word, class_=f"state {look}")


def table(heads: Sequence[str], rows: Iterable[Piece]) -> Markup:
    """Return a table; on a small screen each row becomes a block. ``#`` marks a number's head."""
    cells = [tag("th", head.lstrip("#"), class_=_number_class(head)) for head in heads]
    return tag("table", tag("thead", tag("tr", cells)), tag("tbody", list(rows)), class_="stack")


def row(heads: Sequence[str], cells: Iterable[Piece]) -> Markup:
    """Return a row of a ``table``; the first cell is its heading."""
    drawn = [
        tag(
            "td",
            cell,
            class_=_number_class(head) if number else "whole",
            data_label=head.lstrip("#") if number else None,
        )
        for number, (head, cell) in enumerate(zip(heads, cells, strict=True))
    ]
    return tag("tr", drawn)


def rows_card(title: str, heads: Sequence[str], cells: Iterable[Iterable[Piece]]) -> Markup:
    """Return a card with a ``table`` of rows."""
    return card(table(heads, [row(heads, each) for each in cells]), title=title)


def note_row(heads: Sequence[str], *notes: Piece) -> Markup:
    """Return a row below another one, with paragraphs about it."""
    return tag(
        "tr", tag("td", [tag("p", note) for note in notes], colspan=len(heads)), class_="note"
    )


def _number_class(head: str) -> str | None:
    return "number" if head.startswith("#") else None


def numbers(shown: Iterable[tuple[str, str, Piece]]) -> Markup:
    """Return a few values, each with its name and more about it."""
    tiles = [
        tag(
            "div",
            tag("dt", name),
            tag("dd", tag("span", value, class_="value"), tag("span", more, class_="more")),
        )
        for name, value, more in shown
    ]
    return tag("dl", tiles, class_="numbers")


def card(*pieces: Piece, title: str = "", look: str = "") -> Markup:
    """Return a part of a page."""
    head = tag("h2", title) if title else None
    return tag("section", head, *pieces, class_=f"card {look}".strip())


def sentence(note: str) -> Markup:
    """Return a note as a sentence of its own, with its command, if any, marked up as one."""
    text = note
    if note.startswith("next   "):
        text = f"Next: {note.removeprefix('next').lstrip()}"
    if text.partition(" ")[0].isalpha():  # not a path
        text = f"{text[:1].upper()}{text[1:]}"
    before, mark, after = text.partition("resourcesync ")
    return join_markup(before, tag("code", mark + after) if mark else None)


def missing_page(head: str, what: str, now: datetime) -> str:
    """Return the page for a missing page, with the reason."""
    return page(head, tag("h1", head), card(sentence(what)), now=now, home="Home")
