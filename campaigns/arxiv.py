"""A Source of arXiv's size for some days, and a Destination that follows it every day.

With ``--remembered`` the Destination begins with all resources in its memory and without their
files, as if it had fetched them long ago: millions of files take longer than ten days of changes.
There are no dumps then.

The Source is a catalogue: no folder is scanned, and nginx makes the bodies. Its day ends with all
changes at one moment; then its lists are published, each fifth day a new Resource List, each third
a new dump. Whether the Destination is equal is judged by what this campaign itself remembers, and
what went over the wire by what nginx wrote down.
"""

import io
import random
import resource as usage
import shutil
import sqlite3
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, Final

from campaigns.generated import GeneratedSource, body_of, generated_source, hash_of, installed
from campaigns.lists import remember
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.app.mirrors import opening
from resourcesync.app.mirrors.stores import Home
from resourcesync.app.publishing import catalogues
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.model.digests import Digest
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.catalogue import Original
from resourcesync.settings.publication import PublicationSettings
from resourcesync.source.contents import PresentContents
from resourcesync.source.dumps import dump_publication
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_options import PublishRequest as AskedOfPublish
from resourcesync.source.publication_options import dump_options_of

_START: Final = datetime(2026, 1, 1, 20, tzinfo=UTC)
_DAY: Final = 86_400.0
_REBASE_DAYS: Final = 5
_DUMP_DAYS: Final = 3
_POLICY: Final = {"rotate": _DAY, "rebase_every": _REBASE_DAYS * _DAY, "keep": 3 * _DAY}


class _Days:
    """A ``Clock`` on which a day can pass at once; besides, time passes as it does."""

    def __init__(self) -> None:
        self._began, self._days = time.monotonic(), 0

    def now(self) -> datetime:
        return _START + timedelta(days=self._days, seconds=self.monotonic() - self._began)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))

    def next_day(self) -> None:
        self._days += 1


class Truth:
    """What there is at the Source, whatever its lists say: a version for each number, 0 for none.

    Attributes:
        size: The numbers that were given.
    """

    def __init__(self, source: GeneratedSource, size: int) -> None:
        self._source = source
        self._versions = bytearray(b"\x01" * size)
        self.size = size

    def body(self, number: int) -> bytes:
        """Return the bytes of a resource that is there."""
        version = self._versions[number]
        return body_of(number) if version == 1 else b"%sversion %d\n" % (body_of(number), version)

    def resources(self) -> Iterator[Resource]:
        """Yield all that is there, in the order of the URIs."""
        return (self.resource(number) for number in range(self.size) if self._versions[number])

    def resource(self, number: int) -> Resource:
        """Return what a list says of a resource that is there."""
        body = self.body(number)
        algorithm, _, value = hash_of(body).partition(":")
        return Resource(
            uri=self._source.uri(number), length=len(body), digests=(Digest(algorithm, value),)
        )

    def number(self, uri: str) -> int | None:
        """Return the number of a URI at which there is something."""
        number = int(uri.rpartition("/")[2].removesuffix(".txt"))
        return number if self._versions[number] else None

    def change(self, luck: random.Random, changes: int) -> Iterator[Change]:
        """Change some resources: of ten, eight are updated, one is created and one deleted."""
        for known in sorted(luck.sample(range(self.size), changes)):
            kind = luck.choices(("updated", "created", "deleted"), (8, 1, 1))[0]
            if kind == "deleted" and not self._versions[known]:
                kind = "updated"  # it is gone already, and comes back
            if kind == "created":
                number, self.size = self.size, self.size + 1
                self._versions.append(1)
            else:
                number = known
                self._versions[number] = 0 if kind == "deleted" else self._versions[number] + 1
            self._serve(number)
            resource = Resource(uri=self._source.uri(number))
            if kind != "deleted":
                resource = self.resource(number)
            yield Change(kind=ChangeKind(kind), resource=resource)

    def _serve(self, number: int) -> None:
        path = self._source.root / self._source.uri(number).removeprefix(f"{self._source.url}/")
        if not self._versions[number]:
            path.unlink(missing_ok=True)
            path.mkdir(parents=True, exist_ok=True)
            return
        if path.is_dir():
            path.rmdir()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.body(number))


class _Bodies:
    """The bytes for dumps (``OriginalReader``)."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth

    def open(self, uri: str) -> BinaryIO | None:
        number = self._truth.number(uri)
        return None if number is None else io.BytesIO(self._truth.body(number))

    def measure(self, original: Original) -> tuple[Resource, str]:
        number = self._truth.number(original.uri)
        assert number is not None, "only what is listed is packed"
        return self._truth.resource(number), ""


class _Source:
    """The Source, as its operator keeps it."""

    def __init__(self, web: GeneratedSource, folder: Path, truth: Truth, clock: _Days) -> None:
        self._web, self._truth, self._clock = web, truth, clock
        self._path = folder / "catalogue.db"
        with catalogues.open_catalogue(self._path) as catalogue:
            catalogue.fill(truth.resources(), clock.now())

    def publish(self) -> int:
        """Publish what is due; return how many documents were written."""
        done = catalogues.publish(
            self._path,
            self._web.root,
            {"url": f"{self._web.url}/", **_POLICY},
            clock=self._clock,
            asked=AskedOfPublish(step=PublicationStep.DUE),
        )
        return len(done.publication.written)

    def dump(self) -> int:
        """Bring the dump in step; return how many packages were made."""
        with closing(FileCatalogue(self._path, self._clock)) as catalogue:
            dumped = dump_publication.dump(
                dump_publication.DumpRequest(),
                dump_options_of(PublicationSettings(url=f"{self._web.url}/")),
                catalogue,
                FolderDocuments(self._web.root),
                PresentContents(_Bodies(self._truth)),
                self._clock,
            )
        self.publish()  # leads to it
        return len(dumped.packages)

    def end_of_day(self, changes: Iterable[Change]) -> int:
        """Record all changes of a day at one moment, and publish."""
        with catalogues.open_catalogue(self._path) as catalogue:
            catalogue.post(changes, self._clock.now())
        return self.publish()


class _Traffic:
    """What nginx says that it answered since the last time."""

    def __init__(self, log: Path) -> None:
        self._log, self._read = log, 0

    def take(self) -> tuple[int, list[str], int]:
        """Return requests, paths of those that failed, and bytes with the fields of the answers."""
        requests, failed, sent = 0, list[str](), 0
        with self._log.open("rb") as lines:
            lines.seek(self._read)
            for line in lines:
                status, size, path = line.split(maxsplit=2)
                requests, sent = requests + 1, sent + int(size)
                if status >= b"400":
                    failed.append(path.decode().strip())
            self._read = lines.tell()
        return requests, failed, sent


@dataclass(frozen=True, slots=True)
class _Destination:
    """A Destination."""

    folder: Path
    clock: _Days

    def pull(self, url: str) -> RunReport:
        """Follow the Source."""
        with opening.open_destination(
            Home(self.folder), source=url, report=lambda *_: None, cancel=CancelToken(self.clock)
        ) as destination:
            return destination.pull(PullOptions())

    def differences(self, truth: Truth, changed: Container[str] | None) -> Iterator[str]:
        """Yield what is not as the Source has it: each URI and digest, and the files of some.

        Args:
            truth: What the Source has.
            changed: The URIs whose files are read too; all of them for ``None``.
        """
        state = self.folder / ".resourcesync/state.db"
        with closing(sqlite3.connect(f"{state.as_uri()}?mode=ro", uri=True)) as memory:
            rows = memory.execute("SELECT uri, digests, path FROM copy ORDER BY uri")
            for resource, row in zip_longest(truth.resources(), rows):
                if resource is None or row is None or (resource.uri, _hash(resource)) != row[:2]:
                    uri = resource and resource.uri
                    yield f"{uri} is held as {row and row[0]}, or with another digest"
                    return
                if changed is None or resource.uri in changed:
                    number = truth.number(resource.uri)
                    assert number is not None
                    if (self.folder / row[2]).read_bytes() != truth.body(number):
                        yield f"the file of {resource.uri} has other bytes"


def _hash(resource: Resource) -> str:
    return ":".join(resource.digests[0])


def run(asked: Asked) -> Outcome:
    """Publish and follow for some days; see that the Destination is equal on each."""
    outcome, luck, clock = Outcome(), random.Random(asked.seed), _Days()
    if not installed():
        outcome.missing = "nginx is not here"
        return outcome
    with generated_source(asked.folder / "source") as web:
        (web.root / "robots.txt").write_text("User-agent: *\nDisallow:\n")
        mirror = _Destination(asked.folder / "mirror", clock)
        if asked.remembered:
            _remember(web, asked, mirror)
        truth, touched = Truth(web, asked.size), set[str]()
        follow = _Following(outcome, web, truth)
        with _costs(outcome, "catalogue filled"):
            source = _Source(web, asked.folder, truth, clock)
        with _costs(outcome, "first publication"):
            source.publish()
        if not asked.remembered:
            _dump(outcome, source, "first dump")
        follow.pull("day 0", mirror, touched if asked.remembered else None)
        for day in range(1, asked.days + 1):
            clock.next_day()
            changes = list(truth.change(luck, asked.changes))
            touched.update(change.uri for change in changes)
            with _costs(outcome, f"day {day}, published"):
                source.end_of_day(changes)
            if not asked.remembered and day % _DUMP_DAYS == 0:
                _dump(outcome, source, f"day {day}, dumped")
            is_all = day == asked.days and not asked.remembered
            follow.pull(f"day {day}", mirror, None if is_all else touched)
        if not asked.remembered:
            follow.pull("who comes last", _Destination(asked.folder / "late", clock))
    outcome.add("resources at the end", sum(1 for _ in truth.resources()))
    peak = usage.getrusage(usage.RUSAGE_SELF).ru_maxrss / 1_024
    outcome.add("peak MiB, Source, Destination and truth in one process", peak)
    return outcome


def _remember(web: GeneratedSource, asked: Asked, mirror: _Destination) -> None:
    """Let the mirror follow the Source, while there is one resource, and remember them all."""
    early, clock = asked.folder / "early", mirror.clock
    early.mkdir()
    _Source(web, early, Truth(web, 1), clock).publish()
    mirror.pull(web.url)
    for folder in ("resourcesync", ".well-known"):
        shutil.rmtree(web.root / folder)
    truth = Truth(web, asked.size)
    held = ((web.uri(number), truth.body(number)) for number in range(1, asked.size))
    remember(mirror.folder, held, lastmod=None)
    clock.next_day()


@contextmanager
def _costs(outcome: Outcome, name: str) -> Iterator[list[str]]:
    """Add what the block costs; it may add words of its own, which come first."""
    began, used = time.monotonic(), time.process_time()
    words: list[str] = []
    yield words
    seconds, cpu = time.monotonic() - began, time.process_time() - used
    words.append(f"{seconds:,.1f} s ({cpu:,.1f} s of processor time)")
    outcome.add(name, ", ".join(words))


def _dump(outcome: Outcome, source: _Source, name: str) -> None:
    with _costs(outcome, name) as words:
        words.append(f"{source.dump():,} packages")


class _Following:
    """Pulls, counts and compares."""

    def __init__(self, outcome: Outcome, web: GeneratedSource, truth: Truth) -> None:
        self._outcome, self._web, self._truth = outcome, web, truth
        self._traffic = _Traffic(web.log)
        self._traffic.take()
        self._lists = set[str]()

    def pull(self, name: str, mirror: _Destination, changed: set[str] | None = None) -> None:
        """Pull once and add what it cost; what differs afterwards is a violation."""
        dropped = self._dropped()
        with _costs(self._outcome, f"{name}, pulled") as words:
            report = mirror.pull(self._web.url)
            requests, failed, sent = self._traffic.take()
            words.append(f"{requests:,} requests, {sent:,} bytes")
        for difference in mirror.differences(self._truth, changed):
            self._outcome.violations.append(f"{name}: {difference}")
        said = (report.state, report.failed, report.refused, report.held)
        self._outcome.require(
            said == (MirrorState.IN_SYNC, 0, 0, 0), f"{name}: the report says {said}"
        )
        self._outcome.require(
            requests == report.requests,
            f"{name}: nginx counts {requests}; the report {report.requests}",
        )
        wrong = [path for path in failed if path not in dropped]
        self._outcome.require(not wrong, f"{name}: {len(wrong)} failed, the first is {wrong[:1]}")

    def _dropped(self) -> set[str]:
        """Return the Change Lists that the Source has dropped.

        A Destination looks once a day whether closed ones were changed: these answer 404.
        """
        found = self._web.root.glob("resourcesync/changelist-*.xml")
        present = {f"/{path.relative_to(self._web.root)}" for path in found}
        self._lists |= present
        return self._lists - present


CAMPAIGN: Final = Campaign(run=run, size=2_400_000, unit="resources")
