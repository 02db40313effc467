"""A publisher that is killed, one that publishes more than memory holds, and programs that post."""

import gc
import hashlib
import os
import signal
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest

from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents import reader
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Part, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.originals import Omission, Original, Originals
from resourcesync.source import naming
from resourcesync.source.naming import is_sitemap
from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import Policy
from resourcesync.source.publisher import ListPublisher
from resourcesync.source.scan_for_changes import scan
from resourcesync.source.stored_plan import PublicationStep
from tests.support.commands.forking import Forked
from tests.support.commands.run import environment
from tests.support.crashes.publish_forever import BASE, POLICIES, publish
from tests.support.in_memory import ManualClock, MemoryDocuments
from tests.support.sources.opened import open_source
from tests.support.sources.publishing import Reader

ROOT = Path(__file__).parents[3]


def truth(tree: Path) -> dict[str, str]:
    return {
        BASE + path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tree.iterdir()
        if path.is_file() and not is_sitemap(path.name)
    }


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_a_publisher_that_is_killed_leaves_a_consistent_set_and_the_next_heals_it(
    tmp_path: Path, policy: str
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    documents = FolderDocuments(tree)
    program = ROOT / "tests/support/crashes/publish_forever.py"
    for round_ in range(8):
        told, out = os.pipe()
        words, streams = (str(tree), f"{round_}", policy), (0, out, 2)
        with (
            Forked(
                program, *words, cwd=tmp_path, env=environment(tmp_path), streams=streams
            ) as running,
            open(told, "rb", buffering=0) as said,
        ):
            os.close(out)
            for _ in range(1 + round_ % 3):
                assert said.read(1)
            time.sleep(0.007 * round_)
            running.signal(signal.SIGKILL)
            assert running.wait(20) == -signal.SIGKILL

        Reader(documents).view().current()  # whatever it was doing

        publish(tree, policy)
        assert Reader(documents).view().current() == truth(tree)
    if policy == "default":
        assert publish(tree).written == ()
    leftovers = [item.name for item in (tree / "resourcesync").iterdir() if item.name[0] == "."]
    assert leftovers == []


class Endless(Originals):
    """As many originals as one likes, none of which is held."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.version = 0

    def scan(self) -> Iterator[Original]:
        for number in range(self.count):
            yield Original(
                uri=f"{BASE}{number:09}",
                fingerprint=f"{self.version}",
                length=1,
                lastmod=datetime(2026, 1, 1, tzinfo=UTC),
            )

    def measure(self, original: Original) -> tuple[Resource, str]:
        digest = Digest("sha-256", hashlib.sha256(f"{self.version}".encode()).hexdigest())
        resource = Resource(uri=original.uri, length=1, digests=(digest,))
        return resource, original.fingerprint

    def open(self, uri: str) -> BinaryIO | None:
        raise AssertionError(uri)

    def omissions(self) -> Sequence[Omission]:
        return ()


class Discarding(MemoryDocuments):
    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        size = sum(len(chunk) for chunk in chunks)
        super().write(name, [str(size).encode()])
        return size


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_originals(tmp_path: Path) -> None:
    peaks = []
    for count in (2_500, 5_000):
        gc.collect()  # so that the next collection comes at the same place each time
        clock = ManualClock()
        with SourceCatalogue(tmp_path / f"{count}/catalogue.db", clock) as catalogue:
            originals = Endless(count)
            publisher = ListPublisher(open_source(catalogue, Discarding(), clock, BASE))
            tracemalloc.start()
            scan(originals, catalogue, clock.now())
            assert publisher.publish().written[0].entries == count
            originals.version = 1
            scan(originals, catalogue, clock.now())
            assert publisher.publish().updated == count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    assert peaks[1] < peaks[0] + 100_000  # 40 bytes for each of the others
    assert peaks[1] < 2_200_000


POSTED_TO = "https://h.example/"
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
            at, more = entries(documents, entry.uri.removeprefix(POSTED_TO))
            assert at == document.header.at
            found += more
        else:
            found.append(entry)
    return document.header.at, found


@pytest.mark.parametrize("rebase", [0, 60], ids=["one list", "a list each time"])
def test_lists_are_of_one_moment_whatever_is_posted_meanwhile(tmp_path: Path, rebase: int) -> None:
    clock, path, versions = ManualClock(), tmp_path / "c.db", dict.fromkeys(range(SIZE), 1)

    def resource(number: int) -> Resource:
        return Resource(uri=f"{POSTED_TO}{number:03}", length=versions[number])

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
                source = open_source(catalogue, documents, clock, POSTED_TO, *parts)
                ListPublisher(source).publish(step)
                check(documents, list(log.values()), first=dict.fromkeys(range(SIZE), 1))


def check(documents: MemoryDocuments, log: list[Change], first: dict[int, int]) -> None:
    """The Resource List is the state at its ``at``; the Change Lists go on from there, in order."""
    at, listed = entries(documents, naming.RESOURCE_LIST)
    assert at is not None
    state = {f"{POSTED_TO}{number:03}": version for number, version in first.items()}
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
