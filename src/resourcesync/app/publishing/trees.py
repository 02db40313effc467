"""Publication of a tree, with its catalogue; and a check for rows that cannot be published."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from resourcesync.adapters.catalogue import FileCatalogue, bad_rows
from resourcesync.adapters.catalogue.bad_rows import BadRow
from resourcesync.app.publishing import document_stores, originals
from resourcesync.app.publishing.document_stores import documents_at, is_store, locked_documents
from resourcesync.app.publishing.publish_settings import (
    dump_options_of,
    entry_settings_of,
    limits_of,
    publication_policy,
    read_settings,
    version_options_of,
)
from resourcesync.errors import ConfigurationError, OutOfScopeError, Remedy, StateError
from resourcesync.model.digests import ALGORITHMS
from resourcesync.model.resources import Change, Resource
from resourcesync.ports import Clock
from resourcesync.ports.catalogue import (
    BAD_ROW,
    CatalogueEntry,
    CatalogueRecording,
    CatalogueSnapshot,
    CatalogueStore,
    DocumentStore,
    Omission,
)
from resourcesync.settings.publication import CATALOGUE, NOTE, PublicationSettings
from resourcesync.source.clock_guard import check_clock
from resourcesync.source.naming import CHANNELS, SourceNaming
from resourcesync.source.plan import read_plan, read_record
from resourcesync.source.publication_result import PublicationResult, PublishRequest
from resourcesync.source.publisher import ListPublisher, Publication
from resourcesync.source.round_trip import find_fault
from resourcesync.source.scan import scan
from resourcesync.source.versions.version_retention import (
    TreeVersions,
    is_retention_enabled,
)

if TYPE_CHECKING:
    from resourcesync.ports.originals import OriginalReader, ResourceContents
    from resourcesync.source.dumps.dump_publication import DumpRequest
    from resourcesync.source.dumps.dump_publisher import DumpOutcome
    from resourcesync.source.notifications import Notified


ROW_BATCH: Final = 10_000
"""Rows of one transaction."""


def _fault_of(entries: Sequence[Resource] | Sequence[Change]) -> str:
    """Return the reason why entries cannot be published or verified; empty when they can."""
    return find_fault(entries) or next(filter(None, map(_bad_digest, entries)), "")


def _bad_digest(entry: Resource | Change) -> str:
    resource = entry.resource if isinstance(entry, Change) else entry
    for digest in resource.digests:
        if digest.algorithm in ALGORITHMS and not digest.is_usable:
            return f"its digest is not a valid {digest.algorithm}: {digest.value[:200]!r}"
    return ""


@contextmanager
def hinting_at_bad_rows(path: Path) -> Iterator[None]:
    """Add the remedy to an error that names a row."""
    try:
        yield
    except StateError as error:
        if error.code == BAD_ROW:
            error.hint = "check the catalogue: each bad row is named"
            error.remedy = Remedy("check-catalogue", target=str(path))
        raise


def find_bad_rows(path: Path) -> Iterator[BadRow]:
    """Yield the rows of a catalogue that cannot be published; nothing is written.

    Raises:
        ConfigurationError: There is no such catalogue.
        StorageError: It cannot be read.
    """
    if not path.is_file():
        raise ConfigurationError(f"there is no catalogue {path}")
    yield from bad_rows.find_bad_rows(path, _fault_of)


def quarantine_rows(path: Path, clock: Clock) -> Iterator[BadRow]:
    """Quarantine the rows that cannot be published, some thousand at a time; yield each.

    Rows that were yielded stay in quarantine, whatever comes after them.

    Raises:
        ConfigurationError: There is no such catalogue.
        LockedError: Another run is publishing it.
        StorageError: It cannot be read or written.
    """
    if not path.is_file():
        raise ConfigurationError(f"there is no catalogue {path}")
    with closing(FileCatalogue(path, clock)):  # locks out other publications
        while rows := list(islice(find_bad_rows(path), ROW_BATCH)):
            bad_rows.quarantine_rows(path, rows, clock.now(), _fault_of)
            yield from rows


class ReadOnlyCatalogue:
    """A read-only view of a catalogue, for a dry run."""

    def __init__(self, catalogue: CatalogueStore) -> None:
        self._catalogue = catalogue

    def entries(self) -> Iterator[CatalogueEntry]:
        """Yield the recorded entries."""
        return self._catalogue.entries()

    @contextmanager
    def record(self, now: datetime) -> Iterator[CatalogueRecording]:
        """Open a recording without effect."""
        del now
        yield _NullRecording()

    def snapshot(self) -> AbstractContextManager[CatalogueSnapshot]:
        """Open a view of the recorded state."""
        return self._catalogue.snapshot()

    def note(self, key: str) -> str | None:
        """Return a note."""
        return self._catalogue.note(key)

    def forget_edits(self, last: int) -> None:
        """Do nothing."""

    def forget_changes(self, last: int) -> bool:
        """Do nothing."""
        del last
        return False

    def latest(self) -> datetime | None:
        """Return the latest recorded moment."""
        return self._catalogue.latest()

    def rewind(self, moment: datetime) -> None:
        """Do nothing."""

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Do nothing."""


class _NullRecording:
    """A recording without effect."""

    def created(self, resource: Resource, fingerprint: str) -> None:
        """Do nothing."""

    def updated(self, resource: Resource, fingerprint: str) -> None:
        """Do nothing."""

    def deleted(self, resource: Resource) -> None:
        """Do nothing."""

    def touched(self, resource: Resource, fingerprint: str) -> None:
        """Do nothing."""

    def advance_time(self) -> None:
        """Do nothing."""


_REREAD: Final = "publish.reread"
"""Note of the files that were read again, though they looked unchanged."""
_SHOWN_OMISSIONS: Final = 20


def publish_tree(
    root: Path, chosen: Mapping[str, object], *, clock: Clock, asked: PublishRequest | None = None
) -> PublicationResult:
    """Publish a tree, or update what was published.

    Args:
        root: The tree.
        chosen: Settings that are given now, by their names; the others are as the last time.
        clock: Time.
        asked: Options of this run alone.

    Raises:
        ConfigurationError: There is no such folder, no URL is known, a setting cannot work, a
            foreign file is in the place of a document, or the tree is empty.
        LockedError: Another run is publishing this tree.
        StorageError: The tree cannot be read, or a document cannot be written.
    """
    if not _is_folder(root):
        raise ConfigurationError(f"{root} is not a folder", hint="name the folder to publish")
    asked = asked or PublishRequest()
    _check(root, chosen)
    with ExitStack() as stack:
        catalogue = stack.enter_context(_catalogue(root, clock, dry_run=asked.dry_run))
        known = read_settings(catalogue, NOTE)
        settings = merge_settings(root, known, chosen)
        originals.check_originals(settings, known)
        if settings.robots:
            if is_store(settings.out):
                raise ConfigurationError(
                    f"{document_stores.ROBOTS_FILE} can only be written into a folder",
                    hint="put it there yourself, and write none",
                    remedy=Remedy("write-no-robots"),
                )
            document_stores.check_robots(root / settings.out, settings.url)
        own = (root / CATALOGUE).parent
        store = stack.enter_context(
            locked_documents(root, settings.out, own, dry_run=asked.dry_run)
        )
        refuse_foreign(catalogue, store, settings, known)
        reread = catalogue.note(_REREAD)
        found = stack.enter_context(originals.open_originals(root, settings, clock, reread))
        tree = _TreePublication(root, settings, catalogue, store, found, clock)
        return tree.publish(asked, anew=entry_settings_of(settings) != entry_settings_of(known))


class _TreePublication:
    """A tree, and everything needed to publish it."""

    def __init__(
        self,
        root: Path,
        settings: PublicationSettings,
        catalogue: CatalogueStore,
        documents: DocumentStore,
        found: originals.OpenedOriginals,
        clock: Clock,
    ) -> None:
        self._root = root
        self._settings = settings
        self._catalogue = catalogue
        self._documents = documents
        self._clock = clock
        self._reread = found.rereading.note()
        self._past = _open_versions(root, settings, catalogue, clock)
        self._originals = self._past.originals(found.originals)
        self._contents = _contents(found, self._originals, self._past)
        self._publisher = publisher_of(catalogue, documents, settings, clock)

    def publish(self, asked: PublishRequest, *, anew: bool) -> PublicationResult:
        """Scan the tree; unless in a dry run, write the changes."""
        now = self._clock.now()
        step = check_clock(self._catalogue, now, asked.step)
        found = scan(
            self._originals,
            self._catalogue,
            now,
            anew=anew,
            allow_empty=asked.allow_empty,
            settle=self._past.flush,
        )
        done, dumped, notified = Publication(), None, None
        if not asked.dry_run:
            note = msgspec.json.encode(self._settings).decode()
            self._catalogue.write_notes({NOTE: note, _REREAD: self._reread})
            try:
                dumped = self._dump(asked.dumps)
            finally:  # the lists are published even if something could not be packed
                done = self._publisher.publish(step, anew=anew, now=now)
            self._past.conclude(packed=asked.dumps is not None and asked.dumps.changes)
            notified = self._notify()
        omissions = filter(_is_reported, self._originals.omissions())
        return PublicationResult(
            settings=self._settings,
            scan=found,
            publication=done,
            omissions=tuple(islice(omissions, _SHOWN_OMISSIONS)),
            dry_run=asked.dry_run,
            dumped=dumped,
            retained=self._past.counts,
            notified=notified,
        )

    def _dump(self, asked: "DumpRequest | None") -> "DumpOutcome | None":
        if asked is None:
            return None
        from resourcesync.source.dumps import dump_publication  # noqa: PLC0415 - rarely needed

        plan = read_plan(self._catalogue)
        packing = dump_options_of(self._settings)
        if plan is not None and plan.base_uri != SourceNaming(base_uri=self._settings.url).base_uri:
            # Lists that start over do not continue older dumps.
            self._publisher.publish()
        with self._contents as bytes_of:
            return dump_publication.dump(
                asked, packing, self._catalogue, self._documents, bytes_of, self._clock
            )

    def _notify(self) -> "Notified | None":
        """Notify robots and hubs of the publication."""
        settings = self._settings
        if settings.robots:
            document_stores.write_robots(self._root / settings.out, self._publisher.sitemap_uri)
        if not settings.hubs:
            for name in CHANNELS.values():  # no document names them any more
                if self._documents.signature(name) is not None:
                    self._documents.delete(name)
            return None
        from resourcesync.app import hubs  # noqa: PLC0415 - few have hubs
        from resourcesync.source import notifications  # noqa: PLC0415 - the same

        send = hubs.notice_sender(self._clock, (self._root / CATALOGUE).parent)
        return notifications.notify_after(
            self._catalogue, self._documents, settings, self._clock, send
        )


def _open_versions(
    root: Path, settings: PublicationSettings, catalogue: CatalogueStore, clock: Clock
) -> TreeVersions:
    """Return the store of former versions, if there is one; a dry run stores nothing."""
    names = SourceNaming(base_uri=settings.url)
    if not isinstance(catalogue, FileCatalogue) or not is_retention_enabled(
        version_options_of(settings), names, catalogue
    ):
        return TreeVersions()
    from resourcesync.adapters.version_files import FolderVersions  # noqa: PLC0415 - few keep versions
    from resourcesync.app import plugins  # noqa: PLC0415 - the same
    from resourcesync.source.versions.version_recording import (  # noqa: PLC0415 - the same
        PatchGenerator,
        VersionNames,
        VersionPolicy,
        VersionRecorder,
    )
    from resourcesync.source.versions.version_retention import StoredTreeVersions  # noqa: PLC0415 - the same

    options, index = version_options_of(settings), catalogue.versions()
    store = FolderVersions(options.place(root))
    patches = PatchGenerator(plugins.patch_makers, plugins.patch_formats())
    recorder = VersionRecorder(
        index,
        store,
        VersionNames(naming=names),
        clock,
        keeping=VersionPolicy(is_public=options.is_public, most=options.most),
        patches=patches if options.patches else None,
    )
    return StoredTreeVersions(options, catalogue, index, store, recorder, clock)


@contextmanager
def _contents(
    found: originals.OpenedOriginals, readable: "OriginalReader", past: TreeVersions
) -> Iterator["ResourceContents"]:
    with found.reading() as opening:
        yield past.contents(readable, opening)


def publisher_of(
    catalogue: CatalogueStore, documents: DocumentStore, settings: PublicationSettings, clock: Clock
) -> ListPublisher:
    """Return the publisher of a catalogue."""
    return ListPublisher(
        catalogue,
        documents,
        base_uri=settings.url,
        clock=clock,
        limits=limits_of(settings),
        policy=publication_policy(settings),
        described_by=settings.described_by,
    )


def _is_reported(omission: Omission) -> bool:
    """True if an omission is reported: hidden files are not."""
    name = omission.name.rstrip("/").rpartition("/")[2]
    return not name.startswith(".") and not name.endswith("~")


@contextmanager
def _catalogue(root: Path, clock: Clock, *, dry_run: bool) -> Iterator[CatalogueStore]:
    path = root / CATALOGUE
    if not dry_run:
        with hinting_at_bad_rows(path), closing(FileCatalogue(path, clock)) as catalogue:
            yield catalogue
    elif path.exists():
        with closing(FileCatalogue(path, clock)) as catalogue:
            yield ReadOnlyCatalogue(catalogue)
    else:
        from resourcesync.adapters.in_memory import MemoryCatalogue  # noqa: PLC0415 - rarely needed

        yield MemoryCatalogue()


def _is_folder(root: Path) -> bool:
    try:
        return root.is_dir()
    except OSError:  # such as a name that is too long
        return False


def _check(root: Path, chosen: Mapping[str, object]) -> None:
    """Refuse invalid settings before anything is made, the catalogue included."""
    if chosen.get("url"):
        SourceNaming(base_uri=str(chosen["url"]))
    for name in ("url", "described_by"):
        if chosen.get(name):
            check_address(str(chosen[name]))
    if not (root / CATALOGUE).exists():
        _refuse_foreign(documents_at(root, str(chosen.get("out", PublicationSettings().out))))


def _refuse_foreign(documents: DocumentStore) -> None:
    from resourcesync.source import foreign_documents  # noqa: PLC0415 - the first time only

    foreign_documents.refuse_foreign(documents)


def refuse_foreign(
    catalogue: CatalogueStore,
    documents: DocumentStore,
    settings: PublicationSettings,
    known: PublicationSettings,
) -> None:
    """Refuse to publish where a foreign file would be replaced.

    Raises:
        ConfigurationError: One is there.
        StorageError: The existing file cannot be read.
    """
    record = None if settings.out != known.out else read_record(catalogue)
    if record is None:
        _refuse_foreign(documents)
    if settings.sitemap:
        from resourcesync.source import foreign_documents  # noqa: PLC0415 - few have one

        foreign_documents.refuse_foreign_sitemap(documents, record)


def check_address(url: str) -> None:
    """Refuse an address that Destinations would refuse."""
    from resourcesync.discovery.uris import normalise  # noqa: PLC0415 - rarely needed

    try:
        normalise(url)
    except OutOfScopeError as error:
        raise ConfigurationError(
            f"{url!r} cannot be the address of a Source, or of a document: {error.message}",
            hint="give the address as a browser shows it, such as https://example.org/",
        ) from error


def merge_settings(
    root: Path, known: PublicationSettings, chosen: Mapping[str, object]
) -> PublicationSettings:
    """Return the settings in force.

    Raises:
        ConfigurationError: No address is known.
    """
    settings = structs.replace(known, **chosen)
    if settings.out != known.out and known.url:
        settings = structs.replace(
            settings, earlier=tuple(sorted({*known.earlier, known.out} - {settings.out}))
        )
    if not settings.url:
        raise ConfigurationError(
            f"the address of {root} on the Web is not known yet",
            hint="publish it with its address",
            remedy=Remedy("publish", target=str(root)),
        )
    version_options_of(settings).check(root, settings.hashes)
    return settings
