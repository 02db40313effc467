"""What is new in a Change List that was not read before."""

from datetime import UTC, datetime, timedelta
from io import BytesIO

from resourcesync.destination.changes.intervals import (
    OVERLAP,
    ChangeHistory,
    ListPrefix,
    ReadingStart,
    span_of,
)
from resourcesync.destination.changes.scan import ChangeListScan, Reading
from resourcesync.destination.external_sort import TupleSorter
from resourcesync.destination.lists.selection import Refusals, ResourceSelection
from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.names import NameMapping
from resourcesync.destination.planner import ListedEntry
from resourcesync.destination.scope_and_filters import Scope
from resourcesync.discovery.document_fetcher import FetchedDocument
from resourcesync.documents.writer import write
from resourcesync.mirror_state.rows import ProcessedDocument
from resourcesync.model.entries import Change, Header, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import Capability, ChangeKind

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
BASE = "http://source.example/"


def read(
    *times: datetime | None, ended: datetime | None = None, processed: int | None = None
) -> ChangeHistory:
    header = Header(capability=Capability.CHANGE_LIST, from_=NOON - 9 * HOUR, until=ended)
    changes = [
        Change(kind=ChangeKind.UPDATED, time=time, resource=Resource(uri=f"{BASE}{number}"))
        for number, time in enumerate(times)
    ]
    uri, stream = BASE + "list.xml", BytesIO(b"".join(write(header, changes)))
    fetched = FetchedDocument(uri=uri, final_uri=uri, stream=stream)
    since, prefix = to_microseconds(NOON), ListPrefix()
    for change in changes[:processed]:
        prefix.add(change)
    digest = prefix.hexdigest()
    known = ProcessedDocument(fetched.uri, 1, None, prefix.entries, digest, "", "")
    start = ReadingStart(checkpoint=since, list_clock=since + OVERLAP, processed=())
    reading = Reading(fetched.uri, start, TupleSorter(ListedEntry, BytesIO))
    reading.list_clock = to_microseconds(NOON - 10 * HOUR)
    selection = ResourceSelection(
        Scope(origins=frozenset({BASE.rstrip("/")})),
        NameMapping(base=BASE, profile=FileSystemProfile.POSIX),
        Refusals(lambda _: None),
    )
    now, span = to_microseconds(NOON + HOUR), span_of(fetched.uri, header)
    with fetched:
        ChangeListScan(fetched, span, reading, selection=selection, now=now, ended=span.until).read(
            None if processed is None else known
        )
    return reading.history()


def new(history: ChangeHistory) -> list[str]:
    with history.sorter as spool:
        return [row.uri.removeprefix(BASE) for row in spool]


def test_behind_a_processed_prefix_every_change_is_new_whatever_its_time() -> None:
    times = (NOON + HOUR, NOON - HOUR, NOON - 5 * HOUR, None)

    assert new(read(*times, processed=1)) == ["1", "2", "3"]
    assert new(read(*times, processed=4)) == []


def test_of_a_list_that_was_not_read_before_what_is_of_that_moment_or_later_is_new() -> None:
    moment = timedelta(microseconds=1)

    assert new(read(NOON - moment, NOON, NOON + moment)) == ["1", "2"]


def test_nothing_is_new_without_a_time_in_a_list_that_ended_before_t() -> None:
    """An old copy of its index may still call it open."""
    assert new(read(None, None, ended=NOON - HOUR)) == []
    assert new(read(None, None, ended=NOON)) == ["0", "1"]
