"""Selection: the entries that a mirror wants, as rows with their paths, and refused ones. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from resourcesync.destination.mapping import PathMapping
from resourcesync.destination.mapping.names import NameMapping
from resourcesync.destination.pending_tasks import PART_UNREAD
from resourcesync.destination.planner import FILTERED, ListedEntry
from resourcesync.destination.scope_and_filters import FilterVerdict, LinkFilter, LinkTarget, Scope
from resourcesync.discovery.known_addresses import KnownAddresses
from resourcesync.discovery.uris import normalise, percent_encode
from resourcesync.errors import OutOfScopeError
from resourcesync.mirror_state.rows import RefusedRow
from resourcesync.model.digests import format_digests
from resourcesync.model.entries import Change, RefusedEntry, Resource, ResourceRun
from resourcesync.model.leniencies import Leniency, LeniencyTally
from resourcesync.model.timestamps import lastmod_microseconds
from resourcesync.model.vocabulary import ChangeKind

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document
    from resourcesync.ports.patches import PatchFormat

_new_row: Final[Callable[[tuple[Any, ...]], ListedEntry]] = partial(tuple.__new__, ListedEntry)
_ROW_DEFAULTS: Final = tuple(ListedEntry._field_defaults.values())
MAX_REFUSED: Final = 1_000
"""Refused entries that are stored."""
_MAX_COUNTED: Final = 100_000
"""Refused URIs that are counted once; beyond it a repeated one may count again."""

_KEPT_BY_MARKS: Final = frozenset({"_report", "_known", "_reported"})


class Refusals:
    """Entries that cannot be used: all are counted, the first thousand are stored.

    An entry that the Source deletes later, or lists later in a usable form, is withdrawn.
    ``new_count`` are those that no earlier reading had, ``dropped`` unreadable values, whose
    entries are used without them; ``ahead`` is the time of a change, days in the future. ``unread``
    are the parts of lists among them.
    """

    def __init__(self, tell: Callable[[RefusedRow], None], known: Iterable[str] = ()) -> None:
        self._report = tell
        self._known = frozenset(known)
        self._stored: dict[str, RefusedRow] = {}
        self._counted: set[int] = set()  # hashes: URIs may be long
        self._reported: set[str] = set()
        self.count = 0
        self.new_count = 0
        self.dropped = 0
        self.example = ""
        self.ahead: datetime | None = None
        self.withdrawn: set[str] = set()
        self.unread: set[str] = set()
        self.leniencies = LeniencyTally()

    @property
    def stored(self) -> list[RefusedRow]:
        """The stored refusals."""
        return list(self._stored.values())

    def add(self, uri: str, code: str, reason: str) -> None:
        """Add a refusal; one URI counts once."""
        if code == PART_UNREAD:
            self.unread.add(uri)
        if hash(uri) not in self._counted:
            self._count(uri)
            if len(self._stored) < MAX_REFUSED:
                self._stored[uri] = refused = RefusedRow(uri=uri, code=code, reason=reason)
                if uri not in self._reported:  # else a document is read again
                    self._reported.add(uri)
                    self._report(refused)

    def _count(self, uri: str) -> None:
        self.count += 1
        if len(self._counted) < _MAX_COUNTED:
            self._counted.add(hash(uri))
        self.new_count += uri not in self._known
        self.withdrawn.discard(uri)

    def add_entry(self, entry: RefusedEntry) -> None:
        """Add an entry that the reader of a document could not use."""
        uri = entry.uri or f"entry at line {entry.line}"
        if entry.uri or hash(uri) not in self._counted:
            self.add(uri, entry.code, entry.reason)
        else:
            self._count(uri)  # two lists, each with an entry without a URI at this line

    def count_tolerated(
        self,
        document: "Document",
        *,
        before: int = 0,
        earlier: Mapping[Leniency, int] | None = None,
    ) -> None:
        """Count the unreadable values of a document that was read, and all that was tolerated."""
        self.leniencies.add(document.leniencies(earlier or {}))
        self.dropped += document.dropped - before
        if document.dropped > before and not self.example:
            from resourcesync.documents.reader import DROPPED  # noqa: PLC0415 - rarely

            first = next(tolerated for tolerated in document.tolerated if tolerated.code in DROPPED)
            self.example = f"{first.reason} ({document.uri}, line {first.line})"

    def withdraw(self, uri: str) -> None:
        """Withdraw the refusal of a URI: a later change of it is usable, or deleted it."""
        if uri in self._known:
            self.withdrawn.add(uri)
        self._stored.pop(uri, None)
        self.unread.discard(uri)
        if hash(uri) in self._counted:
            self._counted.remove(hash(uri))
            self.count -= 1
            self.new_count -= uri not in self._known

    def mark(self) -> dict[str, Any]:
        """Return the present refusals, to restore before a document is read again."""
        fields = vars(self).items()
        return {name: copy(value) for name, value in fields if name not in _KEPT_BY_MARKS}

    def restore(self, mark: Mapping[str, Any]) -> None:
        """Discard all refusals since ``mark``."""
        vars(self).update((name, copy(value)) for name, value in mark.items())


class ResourceSelection:
    """Selection and paths of a Source's entries; ``has_entries``: one has links to store."""

    def __init__(
        self,
        scope: Scope,
        mapping: PathMapping,
        refusals: Refusals,
        patches: "Callable[[], Mapping[str, PatchFormat]]" = dict,
        links: LinkFilter | None = None,
        homes: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._scope = scope
        self.mapping = mapping
        self._renamed: frozenset[str] = frozenset()
        self.refusals = refusals
        self._patch_formats = cache(patches)
        self._links = links
        self._foreign: set[str] = set()
        self.left_out = ""  # a listed resource that the filters exclude
        self.addresses = KnownAddresses(homes, scope.origins)
        self.has_entries = False
        self.moment: datetime | None = None
        """The moment of the list that is read."""

    def accept_twins(self, *uris: str) -> None:
        """Accept the twins of a plain sitemap's own origin."""
        self.addresses.accept_twins(*uris)
        self._scope = replace(self._scope, origins=self.addresses.origins)

    def refuse(self, entry: RefusedEntry) -> None:
        """Add an entry that the reader of a document could not use, if it may be selected."""
        if self._scope.fits(self.addresses.mirror_uri(entry.uri)):
            self.refusals.add_entry(entry)

    def resource_row(self, resource: Resource) -> ListedEntry | None:
        """Return the row for an entry of a Resource List; ``None`` if it cannot be used."""
        return self._row(resource, lastmod_microseconds(resource.lastmod), "")

    def resource_rows(self, run: ResourceRun) -> Iterator[ListedEntry]:
        """Yield the result of `resource_row` for each of many, three times as fast for plain ones.

        A plain one is below the mirror's base, and its URI needs no escape in its path. URIs with
        the same head are judged together by the first of them, then singly by their last segment.
        """
        mapping = self.mapping
        if self._scope.has_filters or not isinstance(mapping, NameMapping):
            yield from filter(None, map(self.resource_row, run))
            return
        is_plain = mapping.plain_name.fullmatch
        start, home, folder = "", "", None
        when, moment = None, None
        columns = zip(run.uris, run.lastmods, run.lengths, run.hashes, strict=True)
        for uri, lastmod, length, digests in columns:
            head, _, name = uri.rpartition("/")
            if head != start:
                start, home = head, self.addresses.mirror_uri(f"{head}/")[:-1]
                is_twin = self.addresses.is_twin(f"{head}/")
                is_listable = not is_twin and self._scope.speaks_for(f"{home}/")
                folder = mapping.plain_folder(home) if is_listable else None
            if lastmod != when or (lastmod is not None and lastmod.fold):
                moment = lastmod_microseconds(lastmod)
                when = None if moment is None else lastmod
            if folder is not None and is_plain(name):
                known = uri if home == head else f"{home}/{name}"
                yield _new_row(
                    (known, uri, f"{folder}{name}", digests, length, moment, "", *_ROW_DEFAULTS)
                )
            elif (row := self.resource_row(Resource(uri=uri))) is not None:
                yield row._replace(hash=digests, length=length, lastmod=moment)

    def change_row(self, change: Change) -> ListedEntry | None:
        """Return the row for an entry of a Change List; ``None`` if it cannot be used."""
        resource = change.resource
        own, other = resource.lastmod, change.time
        if change.kind is ChangeKind.DELETED:  # what is gone was modified earlier than that
            own, other = other, own
        lastmod = lastmod_microseconds(own or other)
        if change.is_diff:  # nothing tells the bytes of the resource
            resource = replace(resource, digests=(), length=None)
        row = self._row(resource, lastmod, change.kind.value, change.time)
        if row is not None:
            self._withdraw(change.resource.uri, row.loc)
        return row

    def _withdraw(self, *uris: str) -> None:
        for uri in dict.fromkeys((*uris, *map(self.addresses.mirror_uri, uris))):
            self.refusals.withdraw(uri)

    @property
    def follows_links(self) -> bool:
        """True if the targets of links may be selected too."""
        return self._links is not None

    def linked_row(self, target: LinkTarget, via: str) -> ListedEntry | None:
        """Return the row for the target of a link; ``None`` if it cannot be used."""
        assert self._links is not None, "no links are followed"
        link = target._replace(href=self.addresses.requested_uri(percent_encode(target.href)))
        home = self.addresses.mirror_uri(link.href)
        resource = Resource(uri=home, length=link.length)
        try:
            verdict = self._links.scope.judge(resource)
            uri, path = normalise(home), self.mapping.path(home)
        except OutOfScopeError as error:
            if error.uri not in self._foreign:
                if len(self._foreign) < MAX_REFUSED:
                    self._foreign.add(error.uri)
                self.refusals.add(error.uri, error.code, error.message)
            return None
        return ListedEntry(
            uri=uri,
            loc=link.href,
            path=path,
            hash=link.hash,
            length=link.length,
            lastmod=link.modified,
            change="" if verdict is FilterVerdict.SELECTED else FILTERED,
            via=via,
        )

    def change_mapping(self, mapping: PathMapping, changed: frozenset[str]) -> None:
        """Use another mapping from now on."""
        self.mapping = mapping
        self._renamed |= changed

    def with_current_paths(self, rows: Iterable[ListedEntry]) -> Iterator[ListedEntry]:
        """Yield rows that were read before with their present paths."""
        if not self._renamed:
            return iter(rows)
        return (
            row._replace(path=self.mapping.path(row.uri)) if row.uri in self._renamed else row
            for row in rows
        )

    def retained_row(self, uri: str) -> ListedEntry | None:
        """Return a row that leaves the copy of ``uri`` unchanged; ``None`` if there can be none."""
        home = self.addresses.mirror_uri(percent_encode(uri))
        try:
            return ListedEntry(
                uri=normalise(home),
                loc="",  # see `is_out_of_scope`
                path=self.mapping.path(home),
                hash="",
                length=None,
                lastmod=None,
                change=FILTERED,
            )
        except OutOfScopeError:
            return None

    def _row(
        self, resource: Resource, lastmod: int | None, change: str, moment: datetime | None = None
    ) -> ListedEntry | None:
        written, listed_uri = resource.uri, percent_encode(resource.uri)
        if listed_uri is not written:
            self.refusals.leniencies.note(Leniency.URI_ENCODED, written)
        uri = self.addresses.requested_uri(listed_uri)
        if uri is not written:
            resource = replace(resource, uri=uri)
        home, verdict = self.addresses.mirror_uri(uri), None
        try:
            verdict = self._scope.judge(resource if home == uri else replace(resource, uri=home))
            known = normalise(home)
            path = self.mapping.path(home)
        except OutOfScopeError as error:
            if verdict is FilterVerdict.FILTERED:
                return None
            if change == ChangeKind.DELETED:
                self._withdraw(error.uri, written, uri)
            else:
                self.refusals.add(error.uri, error.code, error.message)
            return None
        change = change if verdict is FilterVerdict.SELECTED else FILTERED
        self.left_out = uri if change == FILTERED else self.left_out
        if self.addresses.may_be_twins:
            self._note_twins(listed_uri, known)
        listed = ListedEntry(
            uri=known,
            loc=uri,
            path=path,
            hash=format_digests(resource.digests),
            length=resource.length,
            lastmod=lastmod,
            change=change,
        )
        if not resource.links:
            return listed
        return self._with_links(listed, resource, self.moment if moment is None else moment)

    def _note_twins(self, listed: str, known: str) -> None:
        is_host_twin, is_tls_twin = self.addresses.twins_of(listed, known)
        if is_host_twin:
            self.refusals.leniencies.note(Leniency.HOST_TWIN, listed)
        if is_tls_twin:
            self.refusals.leniencies.note(Leniency.TLS_TWIN, listed)

    def _with_links(
        self, listed: ListedEntry, resource: Resource, moment: datetime | None
    ) -> ListedEntry:
        from resourcesync.destination.lists import usable_links  # noqa: PLC0415 - most have none

        patched = listed.change == ChangeKind.UPDATED and resource.patches
        formats = self._patch_formats() if patched else {}
        entry = usable_links.encode_links(resource)
        self.has_entries = self.has_entries or bool(entry)
        return listed._replace(
            mirrors=usable_links.mirrors_of(resource, self.addresses.origins),
            memento=usable_links.memento_of(resource, moment),
            patch=usable_links.patch_of(resource, formats) if patched else None,
            links=() if self._links is None else self._links.targets_of(resource),
            entry=entry,
        )
