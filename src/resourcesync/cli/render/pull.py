"""The text output of the events of a pull."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from resourcesync.cli import formatting
from resourcesync.cli.formatting import DETAIL, NORMAL, TextLine

SHOWN_FAILURES: Final = 20
"""Failures that are shown one by one unless ``--itemize`` is given."""

_DONE: Final = frozenset({"ok", "notneeded"})
_SYMBOLS: Final = {"create": "+", "update": "*", "delete": "-"}
Fields = Mapping[str, Any]


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

    def __call__(self, event: str, fields: Fields) -> Iterable[TextLine]:
        """Return the lines for one event."""
        is_shown = self.verbose or self.itemize or self.dry_run or event != "item"
        if is_shown or fields["status"] not in _DONE or "code" in fields:
            return self._lines(event, fields)
        return ()

    def _lines(self, event: str, fields: Fields) -> Iterator[TextLine]:
        level = NORMAL if self.first else DETAIL
        match event:
            case "scope":
                yield _filters_line(fields, since_moves=self.since_moves)
            case "source":
                yield from self._source(fields, level)
            case "leniency":
                yield formatting.leniency_line(fields)
            case "plan":
                yield TextLine(f"{fields['mode']}: {_planned(fields)}", "Plan", level)
            case "item":
                yield from self._item(fields)
            case "patch":
                text = f"{_name(fields)}   fetched whole, since its patch cannot be used"
                level = NORMAL if self.itemize else DETAIL
                yield TextLine(f"{text}: {fields['reason']}", "*", level)
            case "sets" | "mirror":
                yield from _several(event, fields)
            case _:
                return

    def _source(self, fields: Fields, level: int) -> Iterator[TextLine]:
        is_sitemap, spec = fields.get("sitemap"), fields.get("spec")
        kind = "plain sitemap" if is_sitemap else f"ResourceSync {spec}"
        yield TextLine(f"{fields['entry']}  ({kind})", "Source", level)
        shown = list(filter(None, (_listing(of, fields) for of in ("resource", "change"))))
        if shown and not is_sitemap:
            yield TextLine(", ".join(shown), "Set", level)
        if self.dry_run or fields.get("found_by"):
            level = NORMAL if self.dry_run else DETAIL
            yield TextLine(fields.get("found_by") or "its address", "Found by", level)

    def _item(self, fields: Fields) -> Iterator[TextLine]:
        status, action, name = fields["status"], fields["action"], _name(fields)
        level = NORMAL if self.itemize else DETAIL
        if status in {"absent", "skipped"}:
            kept = "; the copy is kept" if fields.get("kept") else ""
            yield TextLine(f"{name}   {status}: {fields['reason']}{kept}", "~", self._next_level())
        elif status in {"error", "impossible"} or fields.get("code"):
            yield from self._failure(fields)
        elif status != "ok":
            yield TextLine(name, "=", DETAIL)
        elif action == "move":
            done = "would be renamed to" if self.dry_run else "renamed to"
            level = NORMAL if self.dry_run else level
            yield TextLine(f"/{fields['was']}   {done} {name}", ">", level)
        else:
            text = f"would {action}" if self.dry_run else _done(fields)
            yield TextLine(f"{name}   {text}", _SYMBOLS[action], level)

    def _next_level(self) -> int:
        """Return the level of the next failure: the first ones are shown."""
        self.failures += 1
        return NORMAL if self.itemize or self.failures <= SHOWN_FAILURES else DETAIL

    def _failure(self, fields: Fields) -> Iterator[TextLine]:
        level, tries = self._next_level(), fields.get("tries", 0)
        kept = "; kept" if fields["action"] == "delete" else "; old copy kept"
        often = f" after {tries} tries" if tries > 1 else ""
        text = f"{fields['reason']}{often}{kept if fields.get('kept') else ''}"
        yield TextLine(f"{_name(fields)}   {text}", "!", level)
        if self.failures == SHOWN_FAILURES + 1 and not self.itemize:
            yield TextLine("  more failures are not shown; use -i to see them")


def _planned(fields: Fields) -> str:
    """Return the work of a plan."""
    unsized = fields["unsized"]
    more = f" and {formatting.count(unsized)} of unknown size" if unsized else ""
    size = f"{formatting.size(fields['bytes'])}{more} to fetch"
    if fields["mode"] == "baseline":
        total = fields["same"] + fields["create"] + fields["update"]
        return f"{formatting.counted(total, 'resource')}, {size}"
    parts = (f"{name} {formatting.count(fields[name])}" for name in _SYMBOLS)
    return f"{', '.join(parts)}; {size}"


def _done(fields: Fields) -> str:
    """Return what was done for a resource: its bytes and their proof."""
    if fields["action"] == "delete":
        return "deleted (in the trash)"
    before, patch = fields.get("was_bytes"), fields.get("patched")
    amount = f"{formatting.count(fields['bytes'])} B"
    if before is not None and before >= 0:  # negative: unknown
        amount = f"{formatting.count(before)} → {amount}"
    how = "" if patch is None else f"   by a patch of {formatting.count(patch)} B"
    return f"{amount}{how}   {formatting.proof(fields)}".rstrip()


def _several(event: str, fields: Fields) -> Iterator[TextLine]:
    """Yield the first line of several mirrors; only a mirror of a set names its set."""
    if event == "mirror":
        of_set = f"  {fields['set']}" if "set" in fields else ""
        gone = "" if fields.get("offered", True) else "  (withdrawn by the Source; copies kept)"
        yield TextLine(f"{fields['mirror']}{of_set}{gone}", "Mirror")
        return
    yield TextLine(f"{formatting.counted(fields['sets'], 'set')} of {fields['source']}", "Sets")
    if failure := fields.get("not_asked_anew"):
        yield TextLine(f"          as last read, since now: {failure}")


def _listing(of: str, fields: Fields) -> str:
    """Return the name of the list of resources or changes, or of the dump in its place."""
    found = (f"{of}_{kind}" for kind in ("list", "dump"))
    names = (
        f"{name.replace('_', ' ').title()} {fields[name]}" for name in found if fields.get(name)
    )
    return next(names, "")


def _name(fields: Fields) -> str:
    path = fields.get("path")
    return f"/{path}" if path else str(fields.get("uri"))


_OPTIONS: Final = {
    "include": "--include ",
    "exclude": "--exclude ",
    "types": "--type ",
    "max_size": "-o max_size=",
    "since": "--since ",
    "links": "-o link=",
    "allow_origins": "--allow-origin ",
}


def _filters_line(fields: Fields, *, since_moves: bool) -> TextLine:
    """Return the line about the changed filters and those that still hold."""
    before, after = (_options(fields.get(name) or {}) for name in ("before", "after"))
    names = [name for name in _OPTIONS if before.get(name) != after.get(name)]
    is_moving = since_moves and "since" in before and "since" in after
    changes = ", ".join(_change(before.get(name, ""), after.get(name, "")) for name in names)
    unchanged = ", ".join(after[name] for name in after if name not in names)
    still = f"; unchanged: {unchanged}" if unchanged else ""
    level = DETAIL if is_moving and names == ["since"] else NORMAL
    return TextLine(f"changed: {changes}{still}", "Filters", level)


def _change(was: str, now: str) -> str:
    if was and now:
        return f"{now} instead of {was}"
    return f"{now} added" if now else f"{was} removed"


def _options(filters: Fields) -> dict[str, str]:
    """Return the filters that are set, each as its option is written."""
    found = {}
    for name, option in _OPTIONS.items():
        value = filters.get(name)
        if isinstance(value, int):
            found[name] = f"{option}{formatting.size(value).replace(' ', '')}"
        elif isinstance(value, datetime):
            found[name] = f"{option}{formatting.stamp(value)}"
        elif value:
            found[name] = " ".join(f"{option}{shlex.quote(item)}" for item in value)
    return found
