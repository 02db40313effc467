"""The output of ``explore``: the fields of an event, and the lines of the tree."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.cli import formatting
from resourcesync.cli.formatting import DETAIL, NORMAL, QUIET, TextLine
from resourcesync.discovery.tree import DocumentReading, DocumentSurvey, PartsTotal, SourceNode
from resourcesync.model.capabilities import Package
from resourcesync.model.digests import format_digests
from resourcesync.model.links import find_link
from resourcesync.model.vocabulary import Capability, Dialect, Relation

Fields = Mapping[str, Any]

SHOWN_PARTS: Final = 20
"""Documents of one index that are shown one by one unless ``-v`` is given."""
_WELL_KNOWN: Final = "well-known URI"
"""The way of discovery that the address of the first document already shows."""
_COLUMN: Final = 55
_TOP: Final = 4
_NOUNS: Final = {
    "description": "set",
    "capabilitylist": "capability",
    "resourcedump": "package",
    "changedump": "package",
    "changelist": "change",
    "changedump-manifest": "change",
    "change-notification": "change",
    "framework-notification": "change",
}
PACKAGE: Final = "package"
"""The kind of a step that is a package, not a document."""
_HIDDEN_FIELDS: Final = frozenset({"branches", "depth", "documents"})
_POINTER_CAPABILITIES: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})
_SKIPPED: Final = {
    "seen": "shown above",
    "channel": "a channel to subscribe to; not fetched",
    "unknown": "an unknown capability; not fetched",
    "unread": "an unknown capability; not read",
    "budget": "too many documents; not fetched",
}


def step_event(step: SourceNode | PartsTotal) -> str:
    """Return the name of the event of a step."""
    if isinstance(step, PartsTotal):
        return "sum"
    return "document" if step.package is None else PACKAGE


def step_fields(step: SourceNode | PartsTotal) -> dict[str, object]:
    """Return a step of the walk as the fields of its event."""
    place: dict[str, object] = {"uri": step.uri, "branches": list(step.branches)}
    if isinstance(step, PartsTotal):
        return {**place, "parts": step.parts, "listed": step.listed, **_counts(step.survey)}
    if step.package is not None:
        return {**place, "depth": step.depth, **_package(step.package)}
    place |= {"depth": step.depth, "label": step.label}
    if step.found_by:
        place["found_by"] = step.found_by
    if step.error is not None:
        return {**place, "error": {"code": step.error.code, "message": step.error.message}}
    if step.reading is None:
        return {**place, "skipped": step.skipped}
    return {**place, **_document(step.reading)}


def _document(reading: DocumentReading) -> dict[str, object]:
    header = reading.header
    up = header.up
    return {
        "final_uri": reading.final_uri,
        "kind": header.phrase,
        "capability": None if header.capability is None else header.capability.value,
        "is_index": header.is_index,
        "is_open": header.is_open,
        "dialect": reading.dialect.phrase_for(header.capability),
        "served_as": reading.media_type,
        "at": header.at,
        "completed": header.completed,
        "from": header.from_,
        "until": header.until,
        "up": None if up is None else up.href,
        "archives": header.link(Relation.ARCHIVES),
        "documents": len(reading.children),
        **_counts(reading.survey),
    }


def _package(package: Package) -> dict[str, object]:
    contents = find_link(package.links, Relation.CONTENTS)
    return {
        "kind": PACKAGE,
        "bytes": package.length,
        "media_type": package.media_type,
        "hash": format_digests(package.digests),
        "at": package.at,
        "completed": package.completed,
        "from": package.from_,
        "until": package.until,
        "contents": None if contents is None else contents.href,
    }


def _counts(survey: DocumentSurvey) -> dict[str, object]:
    return {
        "entries": survey.entries,
        "refused": survey.refused,
        "bytes": survey.size,
        "sized": survey.sized,
        "hashed": survey.hashed,
        "unprovable": survey.unprovable,
        "media_types": dict(survey.media_types.most_common()),
        "algorithms": dict(survey.algorithms.most_common()),
        "changes": dict(survey.changes),
        "newest": survey.newest,
    }


class Totals(msgspec.Struct):
    """The totals of all documents."""

    documents: int = 0
    failed: int = 0
    skipped: int = 0
    entries: int = 0
    size: int = 0
    up: str = ""
    _first: bool = msgspec.field(default=True)

    def add(self, step: SourceNode | PartsTotal) -> None:
        """Count one step of the walk."""
        if isinstance(step, PartsTotal):
            return
        self.failed += step.error is not None
        self.skipped += bool(step.skipped)
        reading = step.reading
        if reading is None:
            return
        if self._first and reading.header.up is not None:
            self.up = reading.header.up.href
        self._first = False
        self.documents += 1
        kind = reading.header.capability
        if reading.header.is_index or (
            kind is not None and (kind.is_archive or kind in _POINTER_CAPABILITIES)
        ):
            return
        self.entries += reading.survey.entries
        if kind is None or not kind.is_manifest:  # a manifest's bytes are those of the package
            self.size += reading.survey.size

    def fields(self) -> dict[str, object]:
        """Return the totals as the fields of ``run.end``."""
        return {
            "documents": self.documents,
            "failed": self.failed,
            "not_fetched": self.skipped,
            "entries": self.entries,
            "bytes": self.size,
        }

    def lines(self, seconds: float) -> tuple[TextLine, ...]:
        """Return the closing lines."""
        counted = [
            formatting.counted(self.documents, "document"),
            formatting.counted(self.entries, "entry").replace("entrys", "entries"),
        ]
        if self.failed:
            counted.append(f"{formatting.count(self.failed)} failed")
        lines = [
            TextLine(f"{', '.join(counted)}  {formatting.duration(seconds)}", "Explored", QUIET)
        ]
        if self.up:
            lines.append(TextLine(f"  above     resourcesync explore {self.up}"))
        return tuple(lines)


def describe_step(fields: Fields) -> str:
    """Return the kind and the content of a step, in one line."""
    if "parts" in fields:
        read, listed = fields["parts"], formatting.counted(fields["listed"], "part")
        some = (
            f"all {listed}" if read == fields["listed"] else f"{formatting.count(read)} of {listed}"
        )
        return f"{some}: {', '.join(_list_contents(fields, ''))}"
    if "error" in fields:
        return f"! {fields['error']['code']}: {fields['error']['message']}"
    if fields.get("kind") == PACKAGE:
        return "  ".join(_package_parts(fields))
    if fields.get("skipped"):
        label = f"{fields['label']}  " if fields["label"] else ""
        return label + _SKIPPED[fields["skipped"]]
    contents = [] if _is_pointer(fields) else _list_contents(fields, str(fields["capability"]))
    return "  ".join((*_title(fields), *contents))


def step_details(fields: Fields) -> Iterator[tuple[str, str]]:
    """Yield all details of a step, as names and values."""
    for name, value in fields.items():
        if name in _HIDDEN_FIELDS or value is None or value in ("", {}):
            continue
        said = name.replace("_", " ")
        if isinstance(value, Mapping):
            shown = list(value.items())[:SHOWN_PARTS]
            yield said, ", ".join(f"{key} {_value(item)}" for key, item in shown)
        else:
            yield said, formatting.size(value) if name == "bytes" else _value(value)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return formatting.moment(value)
    return formatting.count(value) if isinstance(value, int) else str(value)


class ExploreRenderer:
    """A renderer of the tree: a line for each document, and one for its content."""

    def __init__(self) -> None:
        self._origin = ""
        self._shown: dict[int, int] = {}

    def __call__(self, event: str, fields: Fields) -> Iterator[TextLine]:
        """Yield the lines for one event."""
        branches = tuple(fields["branches"]) if "branches" in fields else ()
        if event == "sum":
            yield TextLine(_branch(branches) + describe_step(fields))
        elif event in ("document", PACKAGE):
            yield from self._document(fields, branches)

    def _document(self, fields: Fields, branches: tuple[bool, ...]) -> Iterator[TextLine]:
        uri = str(fields["uri"])
        level, name = self._level(branches), self._name(uri)
        head = (_branch(branches) + name).ljust(_COLUMN - 2) + "  "
        if "error" in fields:
            yield TextLine(head + describe_step(fields))
        elif fields.get("skipped") or fields["kind"] == PACKAGE:
            yield TextLine(head + describe_step(fields), level=level)
        else:
            if not str(fields.get("found_by", _WELL_KNOWN)).startswith(_WELL_KNOWN):
                yield TextLine(f"found by: {fields['found_by']}")
            yield TextLine(head + "  ".join(_title(fields)), level=level)
            if not _is_pointer(fields):
                contents = "  ".join(_list_contents(fields, str(fields["capability"])))
                yield TextLine(_branch((*branches, True)) + contents, level=level)

    def _name(self, uri: str) -> str:
        """Return an address without its origin, if that was shown before."""
        if not self._origin:
            self._origin = _origin(uri)
        elif _origin(uri) == self._origin:
            return uri[len(self._origin) :] or "/"
        return uri

    def _level(self, branches: tuple[bool, ...]) -> int:
        """Return the level of a line: after the first ``SHOWN_PARTS``, only ``-v`` shows it."""
        depth = len(branches)
        self._shown = {key: number for key, number in self._shown.items() if key <= depth}
        number = self._shown[depth] = self._shown.get(depth, 0) + 1
        return DETAIL if number > SHOWN_PARTS and not (branches and branches[-1]) else NORMAL


def _origin(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:  # such as http://[
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _branch(branches: tuple[bool, ...]) -> str:
    if not branches:
        return ""
    stems = "".join("   " if is_last else "│  " for is_last in branches[:-1])
    return stems + ("└─ " if branches[-1] else "├─ ")


def _is_pointer(fields: Fields) -> bool:
    """True if a document only points to documents or packages: one line is enough."""
    capability = fields["capability"]
    if fields["is_index"] or capability in {"description", "capabilitylist"}:
        return True
    return capability is not None and (
        Capability(capability).is_dump or Capability(capability).is_archive
    )


def _title(fields: Fields) -> Iterator[str]:
    yield str(fields["kind"]).lower()
    if fields["dialect"] not in {Dialect.V1_1, Dialect.SITEMAP}:
        yield f"dialect {fields['dialect']}"
    yield from _times(fields, is_open=fields["is_open"])
    if _is_pointer(fields):
        yield _pointer_counts(fields)


def _package_parts(fields: Fields) -> Iterator[str]:
    """Yield the details of a package, in the parts of one line."""
    yield PACKAGE
    if fields["bytes"] is not None:
        yield formatting.size(fields["bytes"])
    if fields["media_type"]:
        yield fields["media_type"]
    yield from _times(fields, is_open=False)


def _times(fields: Fields, *, is_open: bool) -> Iterator[str]:
    if fields["at"] is not None:
        yield f"at {formatting.moment(fields['at'])}"
    if fields["from"] is not None and is_open:
        yield f"open since {formatting.moment(fields['from'])}"
    elif fields["from"] is not None:
        yield f"{formatting.moment(fields['from'])} to {_until(fields['until'])}"


def _until(moment: datetime | None) -> str:
    return "now" if moment is None else formatting.moment(moment)


def _pointer_counts(fields: Fields) -> str:
    capability = str(fields["capability"])
    noun = "part" if fields["is_index"] else _NOUNS.get(capability, "document")
    number = _numbered(fields["entries"], noun)
    size = f", {formatting.size(fields['bytes'])}" if fields["bytes"] else ""
    return f"{number}{size}{_refused(fields)}"


def _list_contents(fields: Fields, capability: str) -> Iterator[str]:
    """Yield the content of a list, in the parts of one line."""
    noun = "change" if fields["changes"] else _NOUNS.get(capability, "resource")
    yield f"{_numbered(fields['entries'], noun)}{_refused(fields)}"
    if fields["bytes"]:
        yield formatting.size(fields["bytes"])
    if fields["changes"]:
        yield _top(fields["changes"], ("created", "updated", "deleted"))
    if fields["media_types"]:
        yield _top(fields["media_types"], ())
    for algorithm, number in list(fields["algorithms"].items())[:_TOP]:
        yield f"{algorithm} {formatting.count(number)}/{formatting.count(fields['entries'])}"
    if fields["unprovable"]:
        yield f"hash unusable {formatting.count(fields['unprovable'])}"
    if fields["newest"] is not None:
        yield f"newest {_newest(fields)}"


def _newest(fields: Fields) -> str:
    newest, start = fields["newest"], fields.get("from")
    if start is not None and newest.date() == start.date():
        return formatting.moment(newest).partition(" ")[2]
    return formatting.moment(newest)


def _top(counted: Mapping[str, int], order: tuple[str, ...]) -> str:
    names = [name for name in order if name in counted] or list(counted)
    shown = [f"{name} {formatting.count(counted[name])}" for name in names[:_TOP]]
    rest = sum(counted[name] for name in names[_TOP:])
    return ", ".join([*shown, f"others {formatting.count(rest)}"] if rest else shown)


def _refused(fields: Fields) -> str:
    refused = fields["refused"]
    return f" ({formatting.count(refused)} unusable)" if refused else ""


def _numbered(number: int, noun: str) -> str:
    text = formatting.counted(number, noun)
    return text.replace("capabilitys", "capabilities")
