"""The output of ``explore``: the fields of an event, and the lines of the tree."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.cli.output import DETAIL, NORMAL, QUIET, TextLine
from resourcesync.destination.reports import report_fields
from resourcesync.discovery.tree import DocumentReading, DocumentSurvey, PartsTotal, SourceNode
from resourcesync.model import formatting
from resourcesync.model.digests import format_digests
from resourcesync.model.entries import Package
from resourcesync.model.vocabulary import Capability, Dialect, Relation

Fields = Mapping[str, Any]

SHOWN_PARTS: Final = 20
"""Documents of one index that are shown one by one unless ``-v`` is given."""
_COLUMN: Final = 55
_TOP: Final = 4
_NOUNS: Final = {
    "description": ("set", "sets"),
    "capabilitylist": ("capability", "capabilities"),
    "resourcedump": ("package", "packages"),
    "changedump": ("package", "packages"),
    "changelist": ("change", "changes"),
    "changedump-manifest": ("change", "changes"),
    "change-notification": ("change", "changes"),
    "framework-notification": ("change", "changes"),
}
PACKAGE: Final = "package"
"""The kind of a step that is a package, not a document."""
_POINTERS: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})
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
    place["depth"] = step.depth
    if step.package is not None:
        return {**place, **_package(step.package)}
    place["label"] = step.label
    if step.found_by:
        place["found_by"] = step.found_by
    if step.error is not None:
        return {**place, "error": {"code": step.error.code, "message": step.error.message}}
    if step.reading is None:
        return {**place, "skipped": step.skipped}
    return {**place, **_document(step.reading)}


def _document(reading: DocumentReading) -> dict[str, object]:
    header = reading.header
    return {
        "final_uri": reading.final_uri,
        "kind": header.phrase,
        "capability": header.capability and header.capability.value,
        "is_index": header.is_index,
        "is_open": header.is_open,
        "dialect": reading.dialect.phrase_for(header.capability),
        "served_as": reading.media_type,
        "at": header.at,
        "completed": header.completed,
        "from": header.from_,
        "until": header.until,
        "up": header.up and header.up.href,
        "archives": header.link(Relation.ARCHIVES),
        "documents": len(reading.children),
        **_counts(reading.survey),
    }


def _package(package: Package) -> dict[str, object]:
    contents = package.contents
    return {
        "kind": PACKAGE,
        "bytes": package.length,
        "media_type": package.media_type,
        "hash": format_digests(package.digests),
        "at": package.at,
        "completed": package.completed,
        "from": package.from_,
        "until": package.until,
        "contents": contents and contents.href,
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
    """The totals of all documents; ``fields`` are those of ``run.end``."""

    documents: int = 0
    failed: int = 0
    not_fetched: int = 0
    entries: int = 0
    bytes: int = 0
    up: str = ""

    def add(self, step: SourceNode | PartsTotal) -> None:
        """Count one step of the walk."""
        if isinstance(step, PartsTotal):
            return
        self.failed += step.error is not None
        self.not_fetched += bool(step.skipped)
        reading = step.reading
        if reading is None:
            return
        header, survey = reading.header, reading.survey
        if not self.documents and header.up is not None:
            self.up = header.up.href
        self.documents += 1
        kind = header.capability
        if header.is_index or (kind is not None and (kind.is_archive or kind in _POINTERS)):
            return
        self.entries += survey.entries
        if kind is None or not kind.is_manifest:  # a manifest's bytes are those of the package
            self.bytes += survey.size

    def fields(self) -> dict[str, object]:
        """Return the totals as the fields of ``run.end``."""
        fields = report_fields(self)
        del fields["up"]
        return fields

    def lines(self, seconds: float) -> tuple[TextLine, ...]:
        """Return the closing lines."""
        documents = formatting.counted(self.documents, "document")
        entries = formatting.counted(self.entries, "entry", "entries")
        failed = f", {formatting.count(self.failed)} failed" if self.failed else ""
        text = f"{documents}, {entries}{failed}  {formatting.duration(seconds)}"
        above = (TextLine(f"  above     resourcesync explore {self.up}"),) if self.up else ()
        return (TextLine(text, "Explored", QUIET), *above)


class ExploreRenderer:
    """A renderer of the tree: a line for each document, and one for its content."""

    def __init__(self) -> None:
        self._origin = ""
        self._shown: dict[int, int] = {}

    def __call__(self, event: str, fields: Fields) -> Iterator[TextLine]:
        """Yield the lines for one event."""
        branches = tuple(fields.get("branches", ()))
        if event == "sum":
            yield TextLine(_branch(branches) + _sum(fields))
        elif event in {"document", PACKAGE}:
            yield from self._document(fields, branches)

    def _document(self, fields: Fields, branches: tuple[bool, ...]) -> Iterator[TextLine]:
        level, name = self._level(branches), self._name(str(fields["uri"]))
        head = (_branch(branches) + name).ljust(_COLUMN - 2) + "  "
        if "error" in fields:
            yield TextLine(f"{head}! {fields['error']['code']}: {fields['error']['message']}")
        elif fields.get("skipped"):
            label = f"{fields['label']}  " if fields["label"] else ""
            yield TextLine(head + label + _SKIPPED[fields["skipped"]], level=level)
        elif fields["kind"] == PACKAGE:
            yield TextLine(head + "  ".join(_package_parts(fields)), level=level)
        else:
            if "found_by" in fields:
                yield TextLine(f"found by: {fields['found_by']}")
            yield TextLine(head + "  ".join(_title(fields)), level=level)
            if not _is_pointer(fields):
                contents = "  ".join(_list_contents(fields, str(fields["capability"])))
                yield TextLine(_branch((*branches, True)) + contents, level=level)

    def _name(self, uri: str) -> str:
        origin = _origin(uri)
        if not self._origin:
            self._origin = origin
            return uri
        return (uri[len(origin) :] or "/") if origin == self._origin else uri

    def _level(self, branches: tuple[bool, ...]) -> int:
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
    kind = None if fields["capability"] is None else Capability(fields["capability"])
    if fields["is_index"] or kind is None:
        return bool(fields["is_index"])
    return kind in _POINTERS or kind.is_dump or kind.is_archive


def _sum(fields: Fields) -> str:
    listed = formatting.counted(fields["listed"], "part")
    is_all = fields["parts"] == fields["listed"]
    some = f"all {listed}" if is_all else f"{formatting.count(fields['parts'])} of {listed}"
    return f"{some}: {', '.join(_list_contents(fields, ''))}"


def _title(fields: Fields) -> Iterator[str]:
    yield str(fields["kind"]).lower()
    if fields["dialect"] not in {Dialect.V1_1, Dialect.SITEMAP}:
        yield f"dialect {fields['dialect']}"
    yield from _times(fields, is_open=fields["is_open"])
    if _is_pointer(fields):
        nouns = _NOUNS.get(str(fields["capability"]), ("document", "documents"))
        nouns = ("part", "parts") if fields["is_index"] else nouns
        size = f", {formatting.size(fields['bytes'])}" if fields["bytes"] else ""
        yield f"{formatting.counted(fields['entries'], *nouns)}{size}{_refused(fields)}"


def _package_parts(fields: Fields) -> Iterator[str]:
    yield PACKAGE
    if fields["bytes"] is not None:
        yield formatting.size(fields["bytes"])
    if fields["media_type"]:
        yield fields["media_type"]
    yield from _times(fields, is_open=False)


def _times(fields: Fields, *, is_open: bool) -> Iterator[str]:
    at, start, until = fields["at"], fields["from"], fields["until"]
    if at is not None:
        yield f"at {formatting.moment(at)}"
    if start is not None and is_open:
        yield f"open since {formatting.moment(start)}"
    elif start is not None:
        yield f"{formatting.moment(start)} to {formatting.moment(until) if until else 'now'}"


def _list_contents(fields: Fields, capability: str) -> Iterator[str]:
    nouns = _NOUNS.get("changelist" if fields["changes"] else capability, ("resource", "resources"))
    yield f"{formatting.counted(fields['entries'], *nouns)}{_refused(fields)}"
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
        yield f"newest {_newest(fields['newest'], fields.get('from'))}"


def _newest(newest: datetime, start: datetime | None) -> str:
    shown = formatting.moment(newest)
    is_same_day = start is not None and newest.date() == start.date()
    return shown.partition(" ")[2] if is_same_day else shown


def _top(counted: Mapping[str, int], order: tuple[str, ...]) -> str:
    names = [name for name in order if name in counted] or list(counted)
    shown = [f"{name} {formatting.count(counted[name])}" for name in names[:_TOP]]
    rest = sum(counted[name] for name in names[_TOP:])
    return ", ".join([*shown, f"others {formatting.count(rest)}"] if rest else shown)


def _refused(fields: Fields) -> str:
    refused = fields["refused"]
    return f" ({formatting.count(refused)} unusable)" if refused else ""
