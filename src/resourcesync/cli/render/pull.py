"""The text output of the events of a pull."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from resourcesync.cli import formatting
from resourcesync.cli.formatting import DETAIL, NORMAL, TextLine
from resourcesync.cli.terminal import count_field
from resourcesync.destination.reports import Mode

SHOWN_FAILURES: Final = 20
"""Failures that are shown one by one unless ``--itemize`` is given."""

_DONE: Final = frozenset({"ok", "notneeded"})
_SYMBOLS: Final = {"create": "+", "update": "*", "delete": "-"}
_FILTERS: Final = {
    "include": "--include ",
    "exclude": "--exclude ",
    "types": "--type ",
    "max_size": "-o max_size=",
    "since": "--since ",
    "links": "-o link=",
    "allow_origins": "--allow-origin ",
}
_UNSET: Final[tuple[object, ...]] = (None, ())


class PullRenderer(msgspec.Struct, kw_only=True):
    """A renderer of the events of a pull.

    Attributes:
        first: True for the mirror's first pull: then lists and plan are shown.
        itemize: True if every action gets a line.
        dry_run: True if the actions are only planned.
        since_moves: True if ``--since`` is relative, such as -7d, and so another in each run.
        verbose: False if no line of level ``DETAIL`` is shown: they need not be made.
        failures: Number of failures so far.
    """

    first: bool = True
    itemize: bool = False
    dry_run: bool = False
    since_moves: bool = True
    verbose: bool = True
    failures: int = 0

    def __call__(self, event: str, fields: Mapping[str, object]) -> Iterable[TextLine]:
        """Return the lines for one event."""
        if event == "scope":
            return (_filters_line(fields, since_moves=self.since_moves),)
        is_shown = self.verbose or self.itemize or self.dry_run or event != "item"
        if is_shown or fields["status"] not in _DONE or "code" in fields:
            return self._lines(event, fields)
        return ()

    def _lines(self, event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
        match event:
            case "source":
                yield from self._source(fields)
            case "leniency":
                yield formatting.leniency_line(fields)
            case "plan":
                yield self._plan(fields)
            case "item":
                yield from self._item(fields)
            case "patch":
                text = f"{_name(fields)}   fetched whole, since its patch cannot be used: "
                level = NORMAL if self.itemize else DETAIL
                yield TextLine(f"{text}{fields.get('reason')}", "*", level)
            case "sets":
                yield from _sets(fields)
            case "mirror":
                yield _mirror(fields)
            case _:
                return

    def _source(self, fields: Mapping[str, object]) -> Iterator[TextLine]:
        level = NORMAL if self.first else DETAIL
        spec = fields.get("spec")
        kind = "plain sitemap" if fields.get("sitemap") else f"ResourceSync {spec}"
        yield TextLine(f"{fields.get('entry')}  ({kind})", "Source", level)
        shown = list(filter(None, (_listing(of, fields) for of in ("resource", "change"))))
        if shown and not fields.get("sitemap"):
            yield TextLine(", ".join(shown), "Set", level)
        if self.dry_run or fields.get("found_by"):
            level = NORMAL if self.dry_run else DETAIL
            yield TextLine(str(fields.get("found_by") or "its address"), "Found by", level)

    def _plan(self, fields: Mapping[str, object]) -> TextLine:
        total = sum(count_field(fields, name) for name in ("same", "create", "update"))
        size = formatting.size(count_field(fields, "bytes"))
        unsized = count_field(fields, "unsized")
        more = f" and {formatting.count(unsized)} of unknown size" if unsized else ""
        if fields.get("mode") == Mode.BASELINE:
            to_do = f"{formatting.counted(total, 'resource')}, {size}{more} to fetch"
        else:
            parts = (f"{name} {formatting.count(count_field(fields, name))}" for name in _SYMBOLS)
            to_do = f"{', '.join(parts)}; {size}{more} to fetch"
        return TextLine(f"{fields.get('mode')}: {to_do}", "Plan", NORMAL if self.first else DETAIL)

    def _item(self, fields: Mapping[str, object]) -> Iterator[TextLine]:
        status, action = fields.get("status"), str(fields.get("action"))
        if status in {"absent", "skipped"}:
            kept = "; the copy is kept" if fields.get("kept") else ""
            yield TextLine(
                f"{_name(fields)}   {status}: {fields.get('reason')}{kept}", "~", self._next_level()
            )
        elif status in {"error", "impossible"} or fields.get("code"):
            yield from self._failure(fields)
        elif status == "ok" and action == "move":
            done = "would be renamed to" if self.dry_run else "renamed to"
            level = NORMAL if self.itemize or self.dry_run else DETAIL
            yield TextLine(f"/{fields['was']}   {done} {_name(fields)}", ">", level)
        elif status == "ok":
            level = NORMAL if self.itemize else DETAIL
            yield TextLine(
                f"{_name(fields)}   {self._action_text(action, fields)}", _SYMBOLS[action], level
            )
        else:
            yield TextLine(_name(fields), "=", DETAIL)

    def _next_level(self) -> int:
        """Return the level of the next failure: the first ones are shown."""
        self.failures += 1
        return NORMAL if self.itemize or self.failures <= SHOWN_FAILURES else DETAIL

    def _failure(self, fields: Mapping[str, object]) -> Iterator[TextLine]:
        level = self._next_level()
        word = "; kept" if fields.get("action") == "delete" else "; old copy kept"
        kept = word if fields.get("kept") else ""
        tries = count_field(fields, "tries")
        often = f" after {tries} tries" if tries > 1 else ""
        yield TextLine(f"{_name(fields)}   {fields.get('reason')}{often}{kept}", "!", level)
        if self.failures == SHOWN_FAILURES + 1 and not self.itemize:
            yield TextLine("  more failures are not shown; use -i to see them")

    def _action_text(self, action: str, fields: Mapping[str, object]) -> str:
        if self.dry_run:
            return f"would {action}"
        if action == "delete":
            return "deleted (in the trash)"
        size, before = count_field(fields, "bytes"), fields.get("was_bytes")
        amount = f"{formatting.count(size)} B"
        if isinstance(before, int) and before >= 0:  # negative: unknown
            amount = f"{formatting.count(before)} → {amount}"
        patch = fields.get("patched")
        how = f"   by a patch of {formatting.count(patch)} B" if isinstance(patch, int) else ""
        return f"{amount}{how}   {formatting.proof(fields)}".rstrip()


def _mirror(fields: Mapping[str, object]) -> TextLine:
    """Return the first line of one of several mirrors; only a mirror of a set names its set."""
    of_set = f"  {fields['set']}" if "set" in fields else ""
    gone = "" if fields.get("offered", True) else "  (withdrawn by the Source; copies kept)"
    return TextLine(f"{fields.get('mirror')}{of_set}{gone}", "Mirror")


def _sets(fields: Mapping[str, object]) -> Iterator[TextLine]:
    yield TextLine(
        f"{formatting.counted(count_field(fields, 'sets'), 'set')} of {fields.get('source')}",
        "Sets",
    )
    if fields.get("not_asked_anew"):
        yield TextLine(f"          as last read, since now: {fields.get('not_asked_anew')}")


def _listing(of: str, fields: Mapping[str, object]) -> str:
    """Return the name of the list of resources or changes, or of the dump in its place."""
    for kind in ("list", "dump"):
        uri = fields.get(f"{of}_{kind}")
        if uri:
            return f"{of} {kind} ".title() + str(uri)
    return ""


def _name(fields: Mapping[str, object]) -> str:
    path = fields.get("path")
    return f"/{path}" if path else str(fields.get("uri"))


def _filters_line(fields: Mapping[str, object], *, since_moves: bool) -> TextLine:
    """Return the line about the changed filters and those that still hold."""
    before, after = (_filters(fields.get(name)) for name in ("before", "after"))
    changes, unchanged, level = [], [], DETAIL
    for name in _FILTERS:
        was, now = before.get(name, ""), after.get(name, "")
        if was != now and not (since_moves and name == "since" and was and now):
            level = NORMAL
        if was == now:
            unchanged += [now] if now else []
        elif was and now:
            changes.append(f"{now} instead of {was}")
        else:
            changes.append(f"{now} added" if now else f"{was} removed")
    still = f"; unchanged: {', '.join(unchanged)}" if unchanged else ""
    return TextLine(f"changed: {', '.join(changes)}{still}", "Filters", level)


def _filters(filters: object) -> dict[str, str]:
    """Return the filters that are set, each as its option is written."""
    values: Mapping[str, Any] = filters if isinstance(filters, Mapping) else dict.fromkeys(_FILTERS)
    return {name: _as_option(name, values[name]) for name in _FILTERS if values[name] not in _UNSET}


def _as_option(name: str, value: Any) -> str:
    if isinstance(value, int):
        return f"{_FILTERS[name]}{formatting.size(value).replace(' ', '')}"
    if isinstance(value, datetime):
        return f"{_FILTERS[name]}{formatting.stamp(value)}"
    return " ".join(f"{_FILTERS[name]}{shlex.quote(item)}" for item in value)
