"""Programs post while lists are written: each list is of one moment, no change is in neither."""

from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents import reader
from resourcesync.model.entries import Change, Part, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_settings import Policy
from resourcesync.source.publisher import ListPublisher
from tests.support.in_memory import ManualClock, MemoryDocuments
from tests.support.sources.opened import open_source

BASE = "https://h.example/"
SIZE = 40


class _Busy(MemoryDocuments):
    """Documents; while each is written, somebody posts."""

    def __init__(self, post: Callable[[], None]) -> None:
        super().__init__()
        self._post = post

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        def watched() -> Iterable[bytes]:
            self._post()
            yield from chunks
            self._post()

        return super().write(name, watched(), check)


def entries(documents: MemoryDocuments, name: str) -> tuple[datetime | None, list[object]]:
    """The ``at`` of a list, and all that it says; of an index all that its parts say."""
    stream = documents.open(name)
    assert stream is not None
    document = reader.read(BytesIO(stream.read()), uri=name)
    found: list[object] = []
    for entry in document.entries():
        if isinstance(entry, Part):
            at, more = entries(documents, entry.uri.removeprefix(BASE))
            assert at == document.header.at
            found += more
        else:
            found.append(entry)
    return document.header.at, found


@pytest.mark.parametrize("rebase", [0, 60], ids=["one list", "a list each time"])
def test_lists_are_of_one_moment_whatever_is_posted_meanwhile(tmp_path: Path, rebase: int) -> None:
    clock, path, versions = ManualClock(), tmp_path / "c.db", dict.fromkeys(range(SIZE), 1)

    def resource(number: int) -> Resource:
        return Resource(uri=f"{BASE}{number:03}", length=versions[number])

    with SourceCatalogue(path) as posted:
        posted.fill(map(resource, versions), clock.now())
        count, log = iter(range(10_000)), dict[int, Change]()

        def post() -> None:
            number = next(count) % SIZE
            versions[number] += 1
            posted.post([Change(kind=ChangeKind.UPDATED, resource=resource(number))], clock.now())
            log.update(posted.changes(after=max(log, default=0)))

        documents = _Busy(post)
        with closing(SourceCatalogue(path, clock)) as catalogue:
            for step in (
                PublicationStep.DUE,
                PublicationStep.DUE,
                PublicationStep.REBASE,
                PublicationStep.DUE,
                PublicationStep.INITIALISE,
                PublicationStep.DUE,
            ):
                clock.advance(hours=1)
                parts = (PageLimits(max_entries=7), Policy(rebase_every=rebase))
                source = open_source(catalogue, documents, clock, BASE, *parts)
                ListPublisher(source).publish(step)
                check(documents, list(log.values()), first=dict.fromkeys(range(SIZE), 1))


def check(documents: MemoryDocuments, log: list[Change], first: dict[int, int]) -> None:
    """The Resource List is the state at its ``at``; the Change Lists go on from there, in order."""
    at, listed = entries(documents, naming.RESOURCE_LIST)
    assert at is not None
    state = {f"{BASE}{number:03}": version for number, version in first.items()}
    for change in log:
        assert change.time is not None
        if change.time <= at:
            assert change.resource.length is not None
            state[change.uri] = change.resource.length
    assert {item.uri: item.length for item in listed if isinstance(item, Resource)} == state
    _, changes = entries(documents, naming.CHANGE_LIST)
    told = [change for change in changes if isinstance(change, Change)]
    later = [change for change in log if change.time is not None and change.time > at]
    newer = [change for change in told if change.time is not None and change.time > at]
    assert newer == later[: len(newer)]
    assert len(told) == len({change.time for change in told})
