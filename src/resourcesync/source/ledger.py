"""The publisher's bookkeeping, in the catalogue's notes: what is public, and where it is cut.

The plan is stored before the documents that follow from it are written, and the record of the
documents after them. So a run that was killed anywhere leaves a plan, which the next one carries
out: the same changes go into the same lists.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeVar

from resourcesync.errors import StateError
from resourcesync.ports import Catalogue

T = TypeVar("T")

_PLAN: Final = "publication-plan"
_RECORD: Final = "publication-record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The changes in one Change List.

    Attributes:
        after, last: It lists the changes numbered above ``after``, up to ``last``.
        start: Its ``from``, in microseconds.
        reached: The time of its newest change, or ``start``; its ``until`` once it is closed.
        entries: Changes in it.
        size: Bytes of its entries.
    """

    after: int
    last: int
    start: int
    reached: int
    entries: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What follows from the catalogue, so that it follows again after a crash.

    Attributes:
        base_uri, documents_uri: Where it is published.
        at: The ``at`` of the Resource List, in microseconds.
        number: The number of the first of several Change Lists.
        closed: The Change Lists that are complete, oldest first.
        open: The Change List that takes further changes.
    """

    base_uri: str
    documents_uri: str
    at: int
    number: int
    closed: tuple[Span, ...]
    open: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What is known of a document that was written.

    Attributes:
        key: Stands for its content: it is to be written again when it should have another.
        signature: What the store said of it then.
        digest: The sha-256 of its bytes.
        size: Its bytes.
        entries: Its entries.
    """

    key: str
    signature: str
    digest: str
    size: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What was published last.

    Attributes:
        listed: The number of the newest change that is listed.
        parts: The names of the Resource List's parts, when it has any.
        documents: Every document that belongs to it.
        orphans: Documents that no longer do, and when that was first seen, in microseconds.
    """

    listed: int
    parts: tuple[str, ...] = ()
    documents: dict[str, Recorded] = field(default_factory=dict)
    orphans: dict[str, int] = field(default_factory=dict)


def read_plan(catalogue: Catalogue) -> Plan | None:
    """Return the last plan, or ``None`` before the first.

    Raises:
        StateError: The note is damaged.
    """
    return _read(catalogue, _PLAN, _plan)


def read_record(catalogue: Catalogue) -> Record | None:
    """Return what was published last, or ``None`` when nothing ever was.

    Raises:
        StateError: The note is damaged.
    """
    return _read(catalogue, _RECORD, _record)


def write_plan(catalogue: Catalogue, plan: Plan) -> None:
    """Store the plan durably."""
    catalogue.write_notes({_PLAN: json.dumps(asdict(plan))})


def write_record(catalogue: Catalogue, record: Record) -> None:
    """Store the record durably."""
    catalogue.write_notes({_RECORD: json.dumps(asdict(record))})


def _plan(fields: dict[str, Any]) -> Plan:
    closed = tuple(Span(**span) for span in fields.pop("closed"))
    return Plan(closed=closed, open=Span(**fields.pop("open")), **fields)


def _record(fields: dict[str, Any]) -> Record:
    documents = {name: Recorded(**known) for name, known in fields.pop("documents").items()}
    return Record(parts=tuple(fields.pop("parts")), documents=documents, **fields)


def _read(catalogue: Catalogue, key: str, make: Callable[[dict[str, Any]], T]) -> T | None:
    text = catalogue.note(key)
    if text is None:
        return None
    try:
        return make(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateError(
            f"the publisher's note {key!r} in the catalogue is damaged: {error}",
            hint="delete the catalogue: the next publish starts a new Resource List",
        ) from error
