"""Validation of documents, packages and whole Sources: nothing is written, memory is bounded."""

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Final

from resourcesync.discovery.document_fetcher import DocumentProvider, FetchedDocument, fetch
from resourcesync.discovery.links import find_targets, own_sitemaps
from resourcesync.discovery.search import Search, use_first
from resourcesync.documents.blocks import pieces_of
from resourcesync.documents.reader import Document
from resourcesync.errors import DocumentError, ResourceMissingError, SourceError, StorageError
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Fetcher, Purpose
from resourcesync.validator import results, served_responses
from resourcesync.validator.crawl import Announced, DocumentWalk, TargetAccess, linked_documents
from resourcesync.validator.cross_document import judge_announced, judge_together
from resourcesync.validator.examination import Examination
from resourcesync.validator.inbound_links import InboundLinks
from resourcesync.validator.marks import MarkStore
from resourcesync.validator.packages import ListedPackage, PackageValidator, is_package_name
from resourcesync.validator.rule import RULES, AppliedRules, CheckScope, RuleFinding, by_place
from resourcesync.validator.sample import Chance, Sample, SampleSize, Unreached, judge_delivery
from resourcesync.validator.summaries import DocumentSummary, ListedResource

_LISTS_AND_SITEMAPS: Final = frozenset({None, Capability.RESOURCE_LIST, Capability.CHANGE_LIST})
_PACKAGE_RULES: Final = frozenset(
    rule.id for rule in RULES.values() if rule.checked is CheckScope.PACKAGE
)
_TOP: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST, None})


class Validator:
    """Checks targets."""

    def __init__(
        self, judgement: results.ValidationOptions, *, access: TargetAccess, chance: Chance
    ) -> None:
        self._judgement = judgement
        self._access = access
        self._chance = chance
        self._opened: set[str] = set()

    def judge(self, target: str) -> Iterator[results.ValidationEvent]:
        """Yield the findings of a target, and what was read."""
        selected, profile = self._judgement.rules, self._judgement.profile
        for event in self._judge_any(target):
            rule = event.rule if isinstance(event, RuleFinding) else None
            if rule is None or (rule.id in selected and profile in rule.profiles):
                yield event

    def _judge_any(self, target: str) -> Iterator[results.ValidationEvent]:
        try:
            yield from self._judge(target)
        except ResourceMissingError:
            most = self._judgement.most_documents
            names = self._access.documents_in(target, most + 1)
            if not names:
                raise
        else:
            return
        self._opened.clear()
        for name in sorted(names[:most], key=is_package_name):
            if is_package_name(name) and self._access.identity(name) in self._opened:
                continue  # it is opened with the dump that lists it
            try:
                yield from self._judge(name)
            except (SourceError, StorageError) as error:
                yield Unreached(uri=name, error=error)
        if len(names) > most:
            yield results.CutShort(target, most)

    def _judge(self, target: str) -> Iterator[results.ValidationEvent]:
        judgement = self._judgement
        with ExitStack() as stack:
            opened = stack.enter_context(self._access.open(target))
            fetcher, first = opened.fetcher, opened.first
            store = MarkStore(self._access.temporary_file)
            stack.callback(store.close)
            walk = DocumentWalk(
                documents=opened.documents,
                store=store,
                sample=Sample(judgement.sample or SampleSize(count=0), self._chance),
                is_local=fetcher is None,
                is_same=opened.is_same,
                chance=self._chance,
                most_documents=judgement.most_documents,
            )
            if is_package_name(first):
                yield from self._judge_package(walk, first)
                return
            yield from self._judge_source(walk, target, first)
            chosen = walk.sample.selected()
            if judgement.is_whole_source or self._access.is_folder(target):
                yield results.Sampled(target, len(chosen), max(walk.sample.listed, len(chosen)))
            if fetcher is not None and judgement.is_whole_source:
                yield from self._judge_served(walk, fetcher, target, chosen)

    def _judge_served(
        self, walk: DocumentWalk, fetcher: Fetcher, target: str, chosen: list[ListedResource]
    ) -> Iterator[results.ValidationEvent]:
        ways = InboundLinks(target, walk.documents, self._judgement.profile, walk.known())
        if self._judgement.sample is not None:
            yield from judge_delivery(fetcher, target, chosen, ways.add)
        yield from ways.fetch_page(target)
        yield from ways.judge()
        yield from ways.judge_robots(target)

    def _judge_package(
        self, walk: DocumentWalk, uri: str, listed: ListedPackage | None = None
    ) -> Generator[results.ValidationEvent, None, DocumentSummary | None]:
        fetched = walk.documents.get(uri, purpose=Purpose.RESOURCE)
        assert fetched is not None, "an unconditional request is never answered with 304"
        place = fetched.final_uri if walk.is_local else uri
        if listed is not None:
            self._opened.add(self._access.identity(place))
        with fetched:
            judge = PackageValidator(place, self._judgement.profile, listed, walk.store)
            for event in judge.judge(fetched.stream):
                yield walk.with_local_path(event) if isinstance(event, RuleFinding) else event
        yield AppliedRules(place, _PACKAGE_RULES if listed else _PACKAGE_RULES - {"RD07"})
        if judge.manifest is not None:
            yield results.Judged(judge.manifest, judge.manifest.uri)
            yield results.Sampled(place, judge.members, judge.listed_members, is_packed=True)
        return judge.manifest

    def _judge_dumps(
        self, walk: DocumentWalk, target: str, *, whole: bool
    ) -> Generator[results.ValidationEvent, None, list[DocumentSummary]]:
        """On this machine they are all opened, over the network as many as the sample allows."""
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
            yield results.Unopened(target, unopened, walk.is_local)
        return manifests

    def _judge_source(
        self, walk: DocumentWalk, target: str, first: str
    ) -> Iterator[results.ValidationEvent]:
        whole = self._judgement.is_whole_source or self._access.is_folder(target)
        yield from self._visit(walk, self._first_uris(walk.documents, first), follow=whole)
        if not walk.summaries:
            return
        if walk.is_local:
            walk.rename_first()
        manifests = yield from self._judge_dumps(walk, target, whole=whole)
        is_top = walk.summaries[0].capability in _TOP
        all_read = whole and is_top and not walk.is_cut and not walk.has_dropped_targets
        is_described = walk.is_local and self._is_described_above(walk, target)
        for finding in judge_together([*walk.summaries, *manifests], whole_source=all_read):
            if finding.rule.id != "SD09" or not is_described:
                yield walk.with_local_path(finding)
        if walk.is_cut or walk.has_dropped_targets:
            yield results.CutShort(target, len(walk.summaries), all_read=not walk.is_cut)
        linked = linked_documents(walk.summaries[0])
        if linked and not whole and not walk.is_local:
            yield results.StandaloneDocument(target, len(linked))

    def _is_described_above(self, walk: DocumentWalk, target: str) -> bool:
        """True if the Source Description is outside of the folder, as that of a site is."""
        first, identity = walk.summaries[0], self._access.identity
        place = identity(walk.places[first.uri]).removeprefix(identity(target))
        folder, above = first.uri.removesuffix(place), first.link("up") or ""
        return folder != first.uri and "://" in above and not above.startswith(f"{folder}/")

    def _first_uris(self, documents: DocumentProvider, address: str) -> tuple[str, ...]:
        if "://" not in address:
            return (address,)
        allowed = tuple(self._access.allowed_origins)

        def uris(document: Document, fetched: FetchedDocument) -> tuple[str, ...]:
            named = own_sitemaps(document, allowed) if document.is_robots else ()
            return tuple(named) or (fetched.uri,)

        try:
            return use_first(documents, address, uris, Search(documents, allowed))
        except DocumentError as error:
            return (error.uri or address,)

    def _visit(
        self, walk: DocumentWalk, first: tuple[str, ...], *, follow: bool
    ) -> Iterator[results.ValidationEvent]:
        waiting, change_lists = deque((uri, "") for uri in first), deque[Announced]()
        walk.visited.update(first)
        while waiting or change_lists:  # these last, so that they have the latest changes
            uri, announced = (waiting or change_lists).popleft()
            try:
                with fetch(walk.documents, uri) as fetched:
                    walk.places[uri] = fetched.final_uri if walk.is_local else uri
                    yield from self._validate_fetched(walk, fetched, announced)
            except (SourceError, StorageError) as error:
                if not walk.summaries:
                    raise
                yield Unreached(uri=uri, error=error)
                continue
            for item in walk.next_documents() if follow else ():
                is_last = item[1] == Capability.CHANGE_LIST.value
                (change_lists if is_last else waiting).append(item)

    def _validate_fetched(
        self, walk: DocumentWalk, fetched: FetchedDocument, announced: str
    ) -> Iterator[results.ValidationEvent]:
        fetched.stream.seek(0)

        def see(listed: ListedResource) -> None:
            if examination.summary.capability in _LISTS_AND_SITEMAPS:
                walk.sample.add(listed, examination.summary)

        examination = Examination(
            pieces_of(fetched.stream),
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
            yield from _judge_response(fetched)
        yield results.Judged(summary, walk.places[fetched.uri])


def _judge_response(fetched: FetchedDocument) -> Iterator[results.ValidationEvent]:
    yield from served_responses.judge_media_type(fetched.uri, fetched.media_type)
    yield from served_responses.judge_hub_links(fetched.uri, fetched.links)
    if find_targets(fetched.links, "hub", fetched.uri):
        yield AppliedRules(fetched.uri, frozenset({"NT06"}))
