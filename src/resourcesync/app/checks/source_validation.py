"""Validation of documents, packages and whole Sources: nothing is written, memory is bounded."""

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from resourcesync.adapters.local_documents import LocalDocuments, find_documents
from resourcesync.app.document_access import (
    is_web_address,
    network_documents,
    open_documents,
    open_fetcher,
)
from resourcesync.discovery.addresses import join
from resourcesync.discovery.document_fetcher import DocumentProvider, FetchedDocument, fetch
from resourcesync.discovery.search import Search, use_first
from resourcesync.errors import DocumentError, ResourceMissingError, SourceError, StorageError
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Fetcher, Purpose
from resourcesync.ports.cancellation import CancelToken
from resourcesync.settings.network import Network
from resourcesync.validator.cross_document import judge_announced, judge_reread, judge_together
from resourcesync.validator.delivery import DeliveredResponse, judge_document_response
from resourcesync.validator.examination import validate_document
from resourcesync.validator.findings import RuleFinding, by_place
from resourcesync.validator.inbound_links import InboundLinks
from resourcesync.validator.marks import MarkStore
from resourcesync.validator.notifications import (
    LARGEST,
    is_recorded_message,
    judge_message,
    read_message,
)
from resourcesync.validator.packages import (
    ListedPackage,
    PackageValidator,
    is_package_name,
)
from resourcesync.validator.rule import RuleProfile
from resourcesync.validator.rules import RULES
from resourcesync.validator.sample import Sample, SampleSize, Unreached, judge_delivery
from resourcesync.validator.summaries import DocumentSummary, ListedResource

MAX_TARGETS: Final = 200_000
"""Most stored entries for documents and packages: some 100 MB of them."""
_FOLLOWED: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})
_CHANNELS: Final = frozenset(
    {Capability.CHANGE_NOTIFICATION.value, Capability.FRAMEWORK_NOTIFICATION.value}
)
_LISTS: Final = frozenset({Capability.RESOURCE_LIST, Capability.CHANGE_LIST})
"""Documents that have targets only if they are lists: indexes of another name."""

Announced = tuple[str, str]
"""The address of a document, and the capability that it is announced as; empty for none."""


@dataclass(slots=True, kw_only=True)
class DocumentWalk:
    """The documents of one target during its validation.

    Attributes:
        documents: Fetches them.
        store: Stores digests of their entries.
        sample: Chooses resources to fetch; ``None`` fetches none.
        is_local: True if they are on this machine.
        most_documents: Most documents that are visited.
        summaries: Summary of each, in order.
        visited: The addresses of all visited ones.
        places: Place of each.
        is_cut: True if there are more documents than are visited.
        has_dropped_targets: True if more is listed than is stored, so that a part is not compared.
    """

    documents: DocumentProvider
    store: MarkStore
    sample: Sample | None
    is_local: bool
    most_documents: int
    summaries: list[DocumentSummary] = field(default_factory=list)
    visited: set[str] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    has_dropped_targets: bool = False
    _targets: int = 0
    _random: Random = field(default_factory=Random)

    def known(self) -> dict[str, DocumentSummary]:
        """Return the documents that were read, by their addresses."""
        return {summary.uri: summary for summary in self.summaries}

    def next_documents(self) -> list[Announced]:
        """Return the unvisited documents that the last one leads to."""
        is_first = len(self.summaries) == 1 and not self.is_local
        last = self.summaries[-1]
        found = list(
            self._unvisited(linked_documents(last) if is_first else _listed_documents(last))
        )
        self._targets += len(last.targets)
        if self._targets > MAX_TARGETS:
            self._targets -= len(last.targets)
            last.targets.clear()
            self.has_dropped_targets = True
        return found

    def _unvisited(self, below: list[Announced]) -> Iterator[Announced]:
        for uri, announced in below:
            if uri in self.visited:
                continue
            if len(self.visited) >= self.most_documents:
                self.is_cut = True
                return
            self.visited.add(uri)
            yield uri, announced

    def packages(self, size: SampleSize | None) -> tuple[list[ListedPackage], int]:
        """Return the packages to open, and the number of the other listed ones.

        Args:
            size: Sample of each dump. Without it all packages on this machine are opened, and none
                that must be fetched.
        """
        chosen: list[ListedPackage] = []
        known, listed = self.known(), 0
        for dump in self.summaries:
            if dump.capability is None or not dump.capability.is_dump or dump.is_index:
                continue
            targets = dump.targets if self.is_local else []
            if size is not None:
                targets = self._random.sample(dump.targets, size.resolve(len(dump.targets)))
            listed += len(dump.targets)
            for target in targets:
                copy = (
                    known.get(join_reference(dump.uri, target.contents))
                    if target.contents
                    else None
                )
                uri = join_reference(dump.uri, target.uri)
                chosen.append(ListedPackage(uri=uri, dump=dump, package=target, copy=copy))
        return chosen, listed - len(chosen)

    def rename_first(self) -> None:
        """Give the first document of a folder the address that the others use for it."""
        first = self.summaries[0]
        assert isinstance(self.documents, LocalDocuments), "only a folder has places"
        place = self.places[first.uri]
        for other in self.summaries[1:]:
            for above in (other.link("up") or "", other.link("index") or ""):
                if "://" in above and self.documents.is_same(above, place):
                    self.places[above] = place
                    first.uri = above
                    return

    def with_local_path(self, finding: RuleFinding) -> RuleFinding:
        """Name the local file of the document."""
        place = self.places.get(finding.uri, finding.uri)
        return finding if place == finding.uri else replace(finding, uri=place)


def linked_documents(first: DocumentSummary) -> list[Announced]:
    """Return the documents that a first document leads to: those below, and those above.

    Above is the Source Description, where a page or the caller named a Capability List.
    """
    above = first.link("up")
    if first.capability is not Capability.CAPABILITY_LIST or above is None:
        return _listed_documents(first)
    description = (join_reference(first.uri, above), Capability.DESCRIPTION.value)
    return [description, *_listed_documents(first)]


def _listed_documents(summary: DocumentSummary) -> list[Announced]:
    """Return the documents that one lists."""
    capability, targets = summary.capability, summary.targets
    is_index = summary.is_index and not (capability is not None and capability.is_archive)
    if capability in _FOLLOWED:
        usable = [target for target in targets if target.capability or not target.label]
        listed = [(target.uri, target.label) for target in usable if target.label not in _CHANNELS]
    elif capability in _LISTS or is_index:
        listed = [(target.uri, "") for target in targets]
    else:  # dumps of dumps, or copies of manifests
        listed = [
            (target.uri if capability and target.capability is capability else target.contents, "")
            for target in targets
        ]
    return [(join_reference(summary.uri, uri), label) for uri, label in listed if uri]


def join_reference(base: str, target: str) -> str:
    """Return the address of a reference, or the reference itself when it has none."""
    return join(base, target) or target


_BLOCK: Final = 65_536
MOST_DOCUMENTS: Final = 10_000
"""Default for the most documents of one target."""
_LISTS_AND_SITEMAPS: Final = frozenset({None, Capability.RESOURCE_LIST, Capability.CHANGE_LIST})
_TOP: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST, None})


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationOptions:
    """The options of a validation.

    Attributes:
        profile: The text of the standard.
        rules: The ids of the selected rules.
        live: True if all documents of a Source are checked, and not only the one at its address.
        sample: Number of resources to fetch; ``None`` for none.
        again: Seconds until Change Lists are read again and compared; ``None`` for never.
        most_documents: Most documents of one target.
        hub_secret: Secret shared with the hub whose messages are checked; ``None`` for none.
    """

    profile: RuleProfile = RuleProfile.RS_1_1
    rules: frozenset[str] = frozenset(RULES)
    live: bool = False
    sample: SampleSize | None = None
    again: float | None = None
    most_documents: int = MOST_DOCUMENTS
    hub_secret: bytes | None = None

    @property
    def is_whole_source(self) -> bool:
        """True if all documents of a Source are read, for any reason."""
        return self.live or self.sample is not None or self.again is not None


@dataclass(frozen=True, slots=True)
class Judged:
    """A document was read to its end, or as far as it could be."""

    summary: DocumentSummary
    place: str


@dataclass(frozen=True, slots=True)
class Sampled:
    """Resources were fetched, or the members of a package were read."""

    uri: str
    checked: int
    listed: int


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """Change Lists were read a second time and compared with the first."""

    uri: str
    lists: int


@dataclass(frozen=True, slots=True)
class CutShort:
    """A Source has more documents than the limit, or lists more than is stored.

    Attributes:
        uri: The Source.
        documents: Number of documents that were read.
        all_read: True if these are all, and only a part of their entries was not compared.
    """

    uri: str
    documents: int
    all_read: bool = False


@dataclass(frozen=True, slots=True)
class StandaloneDocument:
    """A document was checked by itself, though it leads to others."""

    uri: str
    others: int


@dataclass(frozen=True, slots=True)
class Unopened:
    """Dumps list packages that were not opened, so their content is unknown.

    Attributes:
        uri: The target.
        packages: Number of packages.
        is_local: True if they should be on this machine, and are not.
    """

    uri: str
    packages: int
    is_local: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of a hub was read, as it was recorded.

    Attributes:
        uri: The file.
        kind: ``notification`` or ``verification``.
    """

    uri: str
    kind: str


ValidationEvent = (
    RuleFinding
    | Judged
    | Sampled
    | ReadAgain
    | CutShort
    | StandaloneDocument
    | Unopened
    | Heard
    | Unreached
)


class Validator:
    """Checks targets.

    Args:
        judgement: The options.
        network: Settings for requests to Sources.
        cancel: The request to stop, and the clock.
    """

    def __init__(
        self, judgement: ValidationOptions, *, network: Network, cancel: CancelToken
    ) -> None:
        self._judgement = judgement
        self._network = network
        self._cancel = cancel
        self._opened: set[Path] = set()

    def judge(self, target: str) -> Iterator[ValidationEvent]:
        """Yield the findings of a target, and what was read.

        Args:
            target: A document, a package, a recorded message of a hub, the folder of a published
                tree, or one of documents and packages, each of which is checked by itself; or the
                address of a document, a package or a Source.

        Raises:
            SourceError: Nothing was found at the address, or it cannot be fetched.
            StorageError: A file cannot be read.
            DocumentError: A recorded message is incomplete.
            ConfigurationError: There is no such file, or a setting cannot work.
        """
        for event in self._judge_any(target):
            if not isinstance(event, RuleFinding) or self._is_selected(event):
                yield event

    def _is_selected(self, finding: RuleFinding) -> bool:
        rule = finding.rule
        return rule.id in self._judgement.rules and self._judgement.profile in rule.profiles

    def _judge_any(self, target: str) -> Iterator[ValidationEvent]:
        """Check a target; in a folder that is not a published tree, each document by itself."""
        try:
            yield from self._judge(target)
        except ResourceMissingError:
            most = self._judgement.most_documents
            is_folder = not is_web_address(target) and Path(target).is_dir()
            names = find_documents(Path(target), most + 1) if is_folder else []
            if not names:
                raise
        else:
            return
        self._opened.clear()
        for name in sorted(names[:most], key=is_package_name):
            if is_package_name(name) and Path(name).resolve() in self._opened:
                continue  # it is opened with the dump that lists it
            try:
                yield from self._judge(name)
            except (SourceError, StorageError) as error:
                yield Unreached(uri=name, error=error)
        if len(names) > most:
            yield CutShort(target, most)

    def _judge(self, target: str) -> Iterator[ValidationEvent]:
        judgement = self._judgement
        if not is_web_address(target) and (recorded := recorded_message(Path(target))):
            yield from self._judge_recorded(target, recorded)
            return
        with ExitStack() as stack:
            fetcher: Fetcher | None = None
            documents: DocumentProvider
            if is_web_address(target):
                opened = open_fetcher(target, self._network, self._cancel)
                fetcher = stack.enter_context(opened)
                documents, first = network_documents(fetcher), target
            else:
                opening = open_documents(target, self._network, self._cancel)
                documents, first = stack.enter_context(opening)
            store = MarkStore(TemporaryFile)
            stack.callback(store.close)
            random = Random()  # noqa: S311 - a sample, no secret
            sample = Sample(judgement.sample, random) if judgement.sample and fetcher else None
            walk = DocumentWalk(
                documents=documents,
                store=store,
                sample=sample,
                is_local=fetcher is None,
                most_documents=judgement.most_documents,
            )
            if is_package_name(first):
                yield from self._judge_package(walk, first)
                return
            yield from self._judge_source(walk, target, first)
            if fetcher is not None and judgement.is_whole_source:
                yield from self._judge_served(walk, fetcher, target)
            if judgement.again is not None:
                yield from self._judge_again(walk, target, judgement.again)

    def _judge_served(
        self, walk: DocumentWalk, fetcher: Fetcher, target: str
    ) -> Iterator[ValidationEvent]:
        """Check what is served beside the documents: a sample of resources, pages, robots.txt."""
        ways = InboundLinks(walk.documents, self._judgement.profile, walk.known())
        if walk.sample is not None:
            chosen = walk.sample.selected()
            yield Sampled(target, len(chosen), max(walk.sample.listed, len(chosen)))
            yield from judge_delivery(fetcher, chosen, ways.add)
        yield from ways.fetch_page(target)
        yield from ways.judge()
        yield from ways.judge_robots(target)

    def _judge_recorded(self, target: str, recorded: bytes) -> Iterator[ValidationEvent]:
        """Check a message of a hub, and the document that a notification contains."""
        message = read_message(recorded, target)
        yield from judge_message(message, target, self._judgement.hub_secret)
        if not message.is_notification:
            yield Heard(target, "verification")
            return
        yield Heard(target, "notification")
        examination = validate_document([message.body], uri=target, profile=self._judgement.profile)
        for finding in by_place(examination):  # with the line numbers of the file
            above = message.line - 1 if finding.line else 0
            yield replace(finding, line=finding.line + above)
        yield Judged(examination.summary, target)

    def _judge_package(
        self, walk: DocumentWalk, uri: str, listed: ListedPackage | None = None
    ) -> Generator[ValidationEvent, None, DocumentSummary | None]:
        """Yield the faults of a package; return its manifest."""
        fetched = walk.documents.get(uri, purpose=Purpose.RESOURCE)
        assert fetched is not None, "an unconditional request is never answered with 304"
        place = fetched.final_uri if walk.is_local else uri
        if listed is not None:
            self._opened.add(Path(place).resolve())
        with fetched:
            judge = PackageValidator(place, self._judgement.profile, listed, walk.store)
            for event in judge.judge(fetched.stream):
                yield walk.with_local_path(event) if isinstance(event, RuleFinding) else event
        if judge.manifest is not None:
            yield Judged(judge.manifest, judge.manifest.uri)
            yield Sampled(place, judge.members, judge.manifest.entries)
        return judge.manifest

    def _judge_dumps(
        self, walk: DocumentWalk, target: str, *, whole: bool
    ) -> Generator[ValidationEvent, None, list[DocumentSummary]]:
        """Open packages of each dump; return the manifests that no document is a copy of.

        On this machine they are all opened, over the network as many as the sample allows.
        """
        manifests: list[DocumentSummary] = []
        size, unopened = walk.packages(self._judgement.sample)
        for listed in size:
            try:
                manifest = yield from self._judge_package(walk, listed.uri, listed)
            except (SourceError, StorageError) as error:
                if whole or not isinstance(error, ResourceMissingError):
                    yield Unreached(uri=listed.uri, error=error)
                else:  # a local document that was given without its packages
                    unopened += 1
                continue
            if manifest is not None and listed.copy is None:
                manifests.append(manifest)
        if unopened:
            yield Unopened(target, unopened, walk.is_local)
        return manifests

    def _judge_source(
        self, walk: DocumentWalk, target: str, first: str
    ) -> Iterator[ValidationEvent]:
        whole = self._judgement.is_whole_source or (walk.is_local and Path(target).is_dir())
        address = self._first_uri(walk.documents, first)
        yield from self._visit(walk, address, "", follow=whole)
        if not walk.summaries:
            return
        if walk.is_local:
            walk.rename_first()
        manifests = yield from self._judge_dumps(walk, target, whole=whole)
        is_top = walk.summaries[0].capability in _TOP
        all_read = whole and is_top and not walk.is_cut and not walk.has_dropped_targets
        for finding in judge_together([*walk.summaries, *manifests], whole_source=all_read):
            yield walk.with_local_path(finding)
        if walk.is_cut or walk.has_dropped_targets:
            yield CutShort(target, len(walk.summaries), all_read=not walk.is_cut)
        linked = linked_documents(walk.summaries[0])
        if linked and not whole and not walk.is_local:
            yield StandaloneDocument(target, len(linked))

    def _first_uri(self, documents: DocumentProvider, address: str) -> str:
        """Return the address of the first document, even if it is broken."""
        if "://" not in address:
            return address
        search = Search(documents, self._network.allow_origins)
        try:
            return use_first(documents, address, lambda _, fetched: fetched.uri, search)
        except DocumentError as error:
            return error.uri or address

    def _visit(
        self, walk: DocumentWalk, uri: str, announced: str, *, follow: bool
    ) -> Iterator[ValidationEvent]:
        waiting = deque([(uri, announced)])
        walk.visited.add(uri)
        while waiting:
            uri, announced = waiting.popleft()
            try:
                with fetch(walk.documents, uri) as fetched:
                    walk.places[uri] = fetched.final_uri if walk.is_local else uri
                    yield from self._validate_fetched(walk, fetched, announced)
            except (SourceError, StorageError) as error:
                if not walk.summaries:
                    raise
                yield Unreached(uri=uri, error=error)
                continue
            if follow:
                waiting += walk.next_documents()

    def _validate_fetched(
        self, walk: DocumentWalk, fetched: FetchedDocument, announced: str
    ) -> Iterator[ValidationEvent]:
        sample = walk.sample
        fetched.stream.seek(0)

        def see(listed: ListedResource) -> None:
            if sample is not None and examination.summary.capability in _LISTS_AND_SITEMAPS:
                sample.add(listed, examination.summary)

        examination = validate_document(
            _chunks(fetched.stream),
            uri=fetched.uri,
            profile=self._judgement.profile,
            on_resource=see,
            store=walk.store,
        )
        for finding in by_place(examination):
            yield walk.with_local_path(finding)
        summary = examination.summary
        walk.summaries.append(summary)
        if announced:
            for finding in judge_announced(announced, summary):
                yield walk.with_local_path(finding)
        if not walk.is_local:
            headers = {"content-type": fetched.media_type}
            yield from judge_document_response(
                DeliveredResponse(uri=fetched.uri, status=200, headers=headers)
            )
        yield Judged(summary, walk.places[fetched.uri])

    def _judge_again(
        self, walk: DocumentWalk, target: str, seconds: float
    ) -> Iterator[ValidationEvent]:
        """Read Change Lists a second time: a closed one is as it was, an open one may have grown.

        One that became an index has moved its entries to its parts, and is not compared.
        """
        lists = [
            summary for summary in walk.summaries if summary.capability is Capability.CHANGE_LIST
        ]
        lists = [summary for summary in lists if summary.complete and not summary.is_index]
        if lists:
            self._cancel.clock.sleep(seconds)
        compared = 0
        for before in lists:
            try:
                with fetch(walk.documents, before.uri) as fetched:
                    fetched.stream.seek(0)
                    examination = validate_document(
                        _chunks(fetched.stream),
                        uri=before.uri,
                        profile=self._judgement.profile,
                        store=walk.store,
                    )
                    unreadable = [finding for finding in examination if finding.rule.id == "G01"]
            except (SourceError, StorageError) as error:
                yield Unreached(uri=before.uri, error=error)
                continue
            now = examination.summary
            found = unreadable if not now.complete else judge_reread(before, now)
            compared += now.complete and not now.is_index
            for finding in () if now.is_index else found:
                yield walk.with_local_path(finding)
        yield ReadAgain(target, compared)


def recorded_message(path: Path) -> bytes:
    """Return the bytes of a file that is a recorded message; none of any other."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as stream:
            start = stream.read(_BLOCK)
            return start + stream.read(LARGEST) if is_recorded_message(start) else b""
    except OSError:
        return b""  # the next opening reports the reason


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_BLOCK):
        yield chunk
