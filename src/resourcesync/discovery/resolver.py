"""Discovery of a Source's lists from any address (§6.3), or from a known Capability List (§9)."""

from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from resourcesync.discovery.document_fetcher import DocumentProvider, FetchedDocument, fetch
from resourcesync.discovery.search import Search
from resourcesync.discovery.sets import ANY, OfferedSet, SetChoice, SourceLists, choose
from resourcesync.discovery.uris import join, own_entries
from resourcesync.documents.reader import Document
from resourcesync.errors import (
    DocumentError,
    NotAListError,
    SourceError,
    SourceUnavailableError,
    UnexpectedDocumentError,
    quoted,
)
from resourcesync.model.entries import CapabilityEntry, Header, Part
from resourcesync.model.timestamps import parse_w3c, to_microseconds
from resourcesync.model.vocabulary import VALID_FROM, Capability, Relation

_MAX_SETS: Final = 1_000
_MAX_DESCRIPTIONS: Final = 100
_MAX_HOPS: Final = 4
_LISTS: Final = {
    Capability.RESOURCE_LIST: "resource_list",
    Capability.CHANGE_LIST: "change_list",
    Capability.RESOURCE_DUMP: "resource_dump",
    Capability.CHANGE_DUMP: "change_dump",
}
"""The fields of ``SourceLists`` for the documents that a mirror follows."""
_SETS: Final = frozenset({Capability.CAPABILITY_LIST, Capability.DESCRIPTION})


def discover(
    documents: DocumentProvider,
    address: str,
    *,
    choice: SetChoice = ANY,
    allowed: Iterable[str] = (),
) -> SourceLists:
    """Return the lists of the Source at ``address``; `Search.find` has the order."""
    return _SourceResolver(documents, address, choice, allowed).find()


def offered_sets(
    documents: DocumentProvider, address: str, *, allowed: Iterable[str] = ()
) -> tuple[OfferedSet, ...]:
    """Return the sets that the Source at ``address`` offers, in its order; one at least."""
    return _SourceResolver(documents, address, ANY, allowed).sets()


class _SourceResolver:
    def __init__(
        self, documents: DocumentProvider, address: str, choice: SetChoice, allowed: Iterable[str]
    ) -> None:
        self._documents = documents
        self._address = address
        self._choice = choice
        self._search = Search[Any](documents, allowed, names_set=bool(choice.requested))
        self._descriptions = 0
        self._chose = False

    def find(self) -> SourceLists:
        # Of several documents that a page or robots.txt names, the lists of one are meant.
        found: SourceLists = self._search.find(
            self._address,
            self.begin,
            lambda offered: self._follow(self._choose(self._distinct_sets(offered)).uri, 0),
        )
        is_found = (self._choice.requested or self._choice.pinned) in found.documents
        if not (self._chose or is_found):
            self._choose((OfferedSet(uri=found.set_uri),))
        return replace(found, road=self._search.found_by, unanswered=self._search.unanswered)

    def sets(self) -> tuple[OfferedSet, ...]:
        found: tuple[OfferedSet, ...] = self._search.find(
            self._address, self._sets_of, self._distinct_sets
        )
        return found

    def _choose(self, offered: tuple[OfferedSet, ...]) -> OfferedSet:
        self._chose = True
        return choose(offered, self._choice, self._address)

    def begin(self, document: Document, fetched: FetchedDocument) -> SourceLists:
        return self._interpret(document, fetched, hops=0)

    def _interpret(self, document: Document, fetched: FetchedDocument, *, hops: int) -> SourceLists:
        found = SourceLists(entry=fetched.final_uri, dialect=document.dialect)
        header, uri = document.header, fetched.uri
        match header.capability:
            case None:
                return replace(found, resource_list=uri, is_sitemap=True)
            case Capability.CAPABILITY_LIST if not header.is_index:
                return from_capability_list(document, replace(found, capability_list=uri))
            case Capability.DESCRIPTION | Capability.CAPABILITY_LIST:
                return self._from_description(document, fetched, hops)
            case listed if listed in _LISTS:
                return self._of_its_moment(document, uri, self._climb(document, found))
            case beside:  # a manifest, archive or notification
                climbed = self._climb(document, found)
                if climbed == found:
                    raise NotAListError(f"this {beside.phrase} leads to no list", uri=document.uri)
                return climbed

    def _climb(self, document: Document, found: SourceLists) -> SourceLists:
        """Climb from a list to its Capability List (§6.2), by way of the index above a part."""
        seen = {found.entry, document.uri}
        header, base = document.header, document.uri
        for _ in range(_MAX_HOPS):
            above = _above(header, base, seen)
            if above is None:
                break
            seen.add(above)
            try:
                with fetch(self._documents, above) as fetched:
                    upper = fetched.open()
                    header, base = upper.header, fetched.final_uri
                    if header.capability is Capability.DESCRIPTION:
                        return replace(found, description=above)
                    if header.capability is Capability.CAPABILITY_LIST and not header.is_index:
                        whole = replace(found, capability_list=fetched.uri)
                        return from_capability_list(upper, whole)
            except (SourceError, DocumentError) as error:
                self._search.note(above, error)
                break
        return found

    def _of_its_moment(self, document: Document, uri: str, climbed: SourceLists) -> SourceLists:
        """Return the lists of the Source; those of an archived one alone, as it has its moment."""
        header = document.header
        assert header.capability is not None, "it is a list of the framework"
        field = _LISTS[header.capability]
        named, offered = getattr(climbed, field), climbed.documents
        if named is None:  # its kind is offered no more: others of the set tell its age
            whole = join(document.uri, header.link(Relation.INDEX) or "") or uri
            climbed = replace(climbed, **{field: whole})
        if climbed.capability_list in {None, self._choice.pinned} or named == uri:
            return climbed
        newer = named or offered[1]
        try:
            with fetch(self._documents, newer) as fetched:
                now = fetched.open()
                is_itself = own_entries(document.uri, [fetched.final_uri])
                is_past = not is_itself and _is_superseded(document, now)
        except SourceUnavailableError:  # which of them is of the past cannot be told now
            raise
        except (SourceError, DocumentError) as error:
            self._search.note(newer, error)
            return climbed
        if is_past is False:
            return climbed
        if is_past is None or not header.capability.is_snapshot or header.link(Relation.INDEX):
            raise NotAListError(
                f"this {header.phrase} is of the past: the Source offers others now"
                if is_past
                else f"the Source offers another {header.phrase}, and not both state their moment",
                uri=document.uri,
                hint=f"pull what it offers now: resourcesync pull {quoted(newer, 'URL')}",
                code="archived-list",
            )
        alone = SourceLists(
            entry=climbed.entry,
            dialect=climbed.dialect,
            superseded_by=climbed.capability_list or "",
        )
        return replace(alone, **{_LISTS[header.capability]: uri})

    def _from_description(
        self, document: Document, fetched: FetchedDocument, hops: int
    ) -> SourceLists:
        offered = tuple(self._gather(document, hops))
        if offered:
            return replace(
                self._follow_one(offered, fetched.final_uri, hops),
                entry=fetched.final_uri,
                description=fetched.uri,
            )
        # Some Sources list their lists in the description, without a Capability List.
        found = SourceLists(
            entry=fetched.final_uri, dialect=document.dialect, description=fetched.uri
        )
        try:
            return from_capability_list(fetched.open(), found)
        except NotAListError as error:
            raise NotAListError(
                "this Source Description lists nothing", uri=document.uri
            ) from error

    def _follow_one(
        self, offered: tuple[OfferedSet, ...], description: str, hops: int
    ) -> SourceLists:
        meant = {self._choice.requested, self._choice.pinned}
        if len(offered) > 1 and not any(offered_set.uri in meant for offered_set in offered):
            offered = self._without_indexes(offered, hops)
        if len(offered) > 1:
            return self._follow_named(self._choose(offered).uri, description, hops + 1)
        found = self._follow_named(offered[0].uri, description, hops + 1)
        if not self._chose:
            self._choose(offered)
        return found

    def _follow_named(self, uri: str, description: str, hops: int) -> SourceLists:
        try:
            return self._follow(uri, hops)
        except SourceError as error:
            host = urlsplit(uri).netloc
            if urlsplit(description).netloc != host:
                named = ("named by", f"{description}: the Source was published for {host}")
                error.evidence = (*error.evidence, named)
            raise

    def _follow(self, uri: str, hops: int) -> SourceLists:
        if hops > _MAX_HOPS:
            raise _too_deep(uri)
        with fetch(self._documents, uri) as fetched:
            return self._interpret(fetched.open(), fetched, hops=hops)

    def _gather(self, document: Document, hops: int) -> Iterator[OfferedSet]:
        if hops > _MAX_HOPS:
            raise _too_deep(document.uri)
        is_known = document.header.capability is Capability.CAPABILITY_LIST
        seen: set[str] = set()
        for target, described_by in _targets(document):
            if target in seen:
                continue
            seen.add(target)
            if document.header.is_index and not is_known:
                yield from self._sets_of_part(target, hops + 1)
            else:
                yield OfferedSet(uri=target, described_by=described_by)

    def _without_indexes(
        self, offered: tuple[OfferedSet, ...], hops: int
    ) -> tuple[OfferedSet, ...]:
        """Return the sets, and in place of a Capability List Index those that it lists (0.9 §9.2).

        Only its root element says what it is. What cannot be read stays the set that it was
        offered as: it fails when it is followed, and the others do not. A set is one, whoever
        offers it.
        """
        sets, indexes = {each.uri: each for each in offered}, set[str]()
        for uri in list(sets)[:_MAX_DESCRIPTIONS]:
            try:
                with fetch(self._documents, uri) as fetched:
                    document = fetched.open()
                    header = document.header
                    if header.capability is Capability.CAPABILITY_LIST and header.is_index:
                        indexes.add(uri)
                        for each in self._gather(document, hops + 1):
                            sets.setdefault(each.uri, each)
            except (SourceError, DocumentError) as error:
                self._search.note(uri, error)
        return tuple(sets[uri] for uri in sets if uri not in indexes) or offered

    def _sets_of_part(self, uri: str, hops: int) -> Iterator[OfferedSet]:
        self._descriptions += 1
        if self._descriptions > _MAX_DESCRIPTIONS:
            raise NotAListError("an index of too many Source Descriptions", uri=uri)
        with fetch(self._documents, uri) as fetched:
            try:
                document = fetched.open()
            except UnexpectedDocumentError as error:  # of an unknown capability
                self._search.note(uri, error)
                return
            header = document.header
            if header.capability is Capability.CAPABILITY_LIST and not header.is_index:
                described_by = header.link(Relation.DESCRIBED_BY) or ""
                yield OfferedSet(uri=uri, described_by=join(document.uri, described_by) or "")
            elif header.capability in _SETS:
                yield from self._gather(document, hops)
            else:
                self._search.note(
                    uri, NotAListError(f"a {header.phrase}, no Source Description", uri=uri)
                )

    def _sets_of(self, document: Document, fetched: FetchedDocument) -> tuple[OfferedSet, ...]:
        header = document.header
        if header.capability in _SETS:
            is_one = header.capability is Capability.CAPABILITY_LIST and not header.is_index
            offered = () if is_one else tuple(self._gather(document, 0))
            if header.capability is Capability.DESCRIPTION and not header.is_index:
                offered = self._without_indexes(offered, 0)
            if offered:
                return offered
        return (OfferedSet(uri=self.begin(fetched.open(), fetched).set_uri),)

    def _distinct_sets(self, offered: tuple[OfferedSet, ...]) -> tuple[OfferedSet, ...]:
        sets: dict[str, OfferedSet] = {}
        unknown: UnexpectedDocumentError | None = None
        for offered_set in offered:
            try:
                uri = self._follow(offered_set.uri, 0).set_uri
            except UnexpectedDocumentError as error:
                self._search.note(offered_set.uri, error)
                unknown = error
            else:
                sets.setdefault(uri, replace(offered_set, uri=uri))
        if unknown is not None and not sets:
            raise unknown
        return tuple(sets.values())


def _is_superseded(document: Document, now: Document) -> bool | None:
    """True if a list is older than one that the Source offers, or no part of the one of its kind.

    ``None`` if nothing shows which of two snapshots of a kind is the older. A closed list of
    changes of a kind that the Source does not offer leads to nothing after it.
    """
    header, newer = document.header, now.header
    is_log = header.capability is not None and header.capability.is_log
    if header.capability is not newer.capability:
        if is_log:
            return header.until is not None
    elif newer.is_index and not header.is_index:
        parts = (entry.uri for entry in now.entries() if isinstance(entry, Part))
        is_part = any(join(now.uri, part) == document.uri for part in parts)
        if is_part or header.link(Relation.INDEX):
            return not is_part
    if is_log:
        then, present = header.from_ if header.until else None, newer.from_
    else:
        then, present = header.completed or header.at, newer.completed or newer.at or newer.from_
    if None in {then, present} and not is_log and header.capability is newer.capability:
        return None
    return then is not None and present is not None and then < present


def _too_deep(uri: str) -> NotAListError:
    return NotAListError("descriptions that point to descriptions, too deep", uri=uri)


def _above(header: Header, base: str, seen: set[str]) -> str | None:
    for relation in (Relation.UP, Relation.INDEX):
        target = join(base, header.link(relation) or "")
        if target is not None and target not in seen:
            return target
    return None


def _targets(document: Document) -> Iterator[tuple[str, str]]:
    number = 0
    for entry in document.entries():
        if isinstance(entry, CapabilityEntry):
            is_set = entry.capability in _SETS or not (entry.capability or entry.label)
        else:
            is_set = isinstance(entry, Part)
        if not is_set:
            continue
        assert isinstance(entry, CapabilityEntry | Part), "only these lead to sets"
        link = entry.link_to(Relation.DESCRIBED_BY)
        number += 1
        if number > _MAX_SETS:
            raise NotAListError("this Source offers too many sets", uri=document.uri)
        about = "" if link is None else join(document.uri, link.href) or ""
        yield absolute(document, entry.uri), about


def absolute(document: Document, target: str) -> str:
    """Return an address that a document names."""
    address = join(document.uri, target)
    if address is None:
        raise NotAListError(
            "it names something that is not an address",
            uri=document.uri,
            evidence=(("loc", target[:2_048]),),
            code="no-address",
        )
    return address


def from_capability_list(document: Document, found: SourceLists) -> SourceLists:
    """Return what was found, with the lists that a Capability List names."""
    lists: dict[Capability, str] = {}
    monitor: str | None = None
    since: int | None = None
    for entry in document.entries():
        if not isinstance(entry, CapabilityEntry) or entry.capability is None:
            continue
        if entry.capability is Capability.RESOURCE_LIST and entry.capability not in lists:
            monitor, since = _monitor_of(entry, document.uri)
        lists.setdefault(entry.capability, absolute(document, entry.uri))
    archive = lists.get(Capability.CHANGE_LIST_ARCHIVE)
    followed = {
        field: lists.get(capability, getattr(found, field)) for capability, field in _LISTS.items()
    }
    followed["change_list"] = followed["change_list"] or archive
    if not any(followed.values()):
        raise NotAListError(
            "this Capability List offers neither a list nor a dump of resources or changes",
            uri=document.uri,
        )
    up = document.header.link(Relation.UP)
    return replace(
        found,
        description=found.description or join(document.uri, up or ""),
        **followed,
        change_list_archive=archive,
        change_dump_archive=lists.get(Capability.CHANGE_DUMP_ARCHIVE),
        monitor=monitor,
        monitored_since=since,
    )


def _monitor_of(entry: CapabilityEntry, base: str) -> tuple[str | None, int | None]:
    link = entry.link_to(Relation.MONITOR)
    if link is None:
        return None, None
    try:
        since = to_microseconds(parse_w3c(dict(link.extra).get(VALID_FROM, "")))
    except ValueError:
        return None, None
    return join(base, link.href), since


def offered_by(capability_list: Document, known: SourceLists) -> SourceLists:
    """Return the present lists in a known Capability List."""
    header = capability_list.header
    if header.capability is not Capability.CAPABILITY_LIST or header.is_index:
        raise UnexpectedDocumentError(f"a {header.phrase}", uri=capability_list.uri)
    others = {field: None for field in _LISTS.values() if getattr(known, field) != known.entry}
    return from_capability_list(capability_list, replace(known, **others))
