"""Publication of a tree, with its catalogue."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import structs

from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.app import document_stores, shared_description
from resourcesync.app.publishing import originals
from resourcesync.app.publishing.mending import publish_mended
from resourcesync.app.shared_description import SharedDescription
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.recording import CatalogueRecording
from resourcesync.errors import ConfigurationError, OutOfScopeError, StateError, quoted
from resourcesync.own_files import is_present
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.ports.originals import Omission, Originals
from resourcesync.source import naming
from resourcesync.source.clock_guard import check_clock
from resourcesync.source.document_writer import WrittenDocument
from resourcesync.source.naming import SourceNaming
from resourcesync.source.publication_options import LeftAddress, PublicationResult, PublishRequest
from resourcesync.source.publication_settings import (
    CATALOGUE,
    INPUT_NOTE,
    NOTE,
    PublicationSettings,
    decode_settings,
)
from resourcesync.source.publisher import ListPublisher, OpenSource, Publication
from resourcesync.source.scan_for_changes import ScanReport, scan
from resourcesync.source.stored_plan import RECORD, SYSTEM_NOTE, PublicationStep
from resourcesync.source.versions.version_retention import TreeVersions, is_retention_enabled

if TYPE_CHECKING:
    from resourcesync.ports.documents import SecondProcess
    from resourcesync.source.dumps.dump_publisher import DumpOutcome, DumpRequest
    from resourcesync.source.notifications import Notified

_CHANGES: Final = ("created", "updated", "deleted")
_REREAD_NOTE: Final = "publish.reread"
"""Note of the files that were read again, though they looked unchanged."""
_SHOWN_OMISSIONS: Final = 20


class _Folders(msgspec.Struct, frozen=True):
    root: Path
    home: Path

    @property
    def own(self) -> Path:
        return (self.home / CATALOGUE).parent


def publish_tree(
    root: Path,
    chosen: Mapping[str, object],
    *,
    clock: Clock,
    asked: PublishRequest | None = None,
    state: Path | None = None,
) -> PublicationResult:
    """Publish a tree, or update what was published."""
    if not os.path.isdir(root):  # noqa: PTH112 - a name that is too long raises nothing
        raise ConfigurationError(f"{root} is not a folder", hint="name the folder to publish")
    asked = asked or PublishRequest()
    folders = _Folders(root, root if state is None else state)
    _check(folders, chosen)
    catalogue, out = folders.home / CATALOGUE, str(chosen.get("out") or "")
    trace = root / out / naming.CAPABILITY_LIST
    is_lost = not is_present(catalogue) and is_present(trace)
    if is_lost and ("url" not in chosen or asked.allow_empty):  # which would empty good lists
        raise lost_catalogue_error(str(root), catalogue, trace)
    attempt = partial(_publish, folders, chosen, clock, asked)
    return publish_mended(catalogue, clock, asked, attempt)


def _publish(
    folders: _Folders, chosen: Mapping[str, object], clock: Clock, asked: PublishRequest
) -> PublicationResult:
    root = folders.root
    with ExitStack() as stack:
        catalogue = stack.enter_context(_catalogue(folders.home, clock, dry_run=asked.dry_run))
        known = decode_settings(catalogue.note(NOTE))
        _check_input(root, catalogue)
        settings = merge_settings(root, known, chosen)
        settings = shared_description.place(root, root, known, settings)
        originals.check_originals(settings, known)
        if settings.robots:
            document_stores.check_robots(settings.out, settings.names.folder_uri)
        store = stack.enter_context(
            document_stores.locked_documents(root, settings.out, folders.own, dry_run=asked.dry_run)
        )
        source = OpenSource(catalogue=catalogue, documents=store, settings=settings, clock=clock)
        refuse_foreign(source, known, asked.step)
        shared = SharedDescription(source, root, folders.home / CATALOGUE, root)
        shared.claim(dry_run=asked.dry_run)
        reread = catalogue.note(_REREAD_NOTE)
        found = stack.enter_context(originals.open_originals(root, settings, clock, reread))
        left = _left_address(known.url, settings.url, store)
        versions = _open_versions(folders, source)
        tree = _Tree(folders, source, found, versions, versions.originals(found.originals), shared)
        done = tree.publish(asked, anew=settings.entries != known.entries)
        done = structs.replace(done, root=root, left=left, unmatched=found.unmatched())
        if settings.robots or known.robots:
            done = _with_robots(done)
        return _with_changes(done, settings, known)


def _with_robots(done: PublicationResult) -> PublicationResult:
    settings, made, name = done.settings, done.publication, document_stores.ROBOTS_FILE
    out = done.root / settings.out
    line = f"Sitemap: {settings.sitemap_uri}" if settings.robots and settings.sitemap_uri else ""
    size = None if done.dry_run else document_stores.update_robots(out, line)
    found, is_ours = document_stores.read_robots(out)
    if size:
        uri = settings.names.folder_uri + name
        written = WrittenDocument(name=name, uri=uri, capability=None, entries=1, bytes=size)
        made = structs.replace(made, written=(*made.written, written))
    elif size == 0:
        made = structs.replace(made, removed=(*made.removed, name))
    is_lacking = found is not None and not is_ours and line not in found.splitlines()
    return structs.replace(done, publication=made, robots_line=line if is_lacking else "")


class _Tree(NamedTuple):
    folders: _Folders
    source: OpenSource
    found: originals.OpenedOriginals
    versions: TreeVersions
    originals: Originals
    shared: SharedDescription

    def publish(self, asked: PublishRequest, *, anew: bool) -> PublicationResult:
        source, now, lists = self.source, self.source.clock.now(), ListPublisher(self.source)
        catalogue, settings, versions = source.catalogue, source.settings, self.versions
        step = check_clock(catalogue, now, asked.step)
        empty, settle = asked.allow_empty, self._end_recording
        scanned = scan(self.originals, catalogue, now, anew=anew, allow_empty=empty, settle=settle)
        done, dumped, notified = Publication(), None, None
        if asked.dry_run:
            done = _foreseen(lists.foresee(step, now, anew=anew), scanned)
        else:
            note = msgspec.json.encode(settings).decode()
            catalogue.write_notes({NOTE: note, _REREAD_NOTE: self.found.rereading.note()})
            try:
                if asked.dumps is not None and lists.starts_over(step):
                    done, step = lists.publish(step, now=now), PublicationStep.DUE
                if asked.dumps is not None:
                    dumped = self._dump(asked.dumps)
            finally:  # the lists are published even if something could not be packed
                last = lists.publish(step, anew=anew, now=now)
                done = self.shared.update(last.after(done))
            is_packed = dumped is not None and dumped.error is None
            versions.conclude(packed=bool(is_packed and asked.dumps and asked.dumps.changes))
            notified = notify_hubs(source, self.folders.own)
        omissions = (*self.originals.omissions(), *self._among_documents())
        return PublicationResult(
            settings=settings,
            scan=structs.replace(scanned, omitted=len(omissions)),
            publication=done,
            omissions=tuple(islice(filter(_is_reported, omissions), _SHOWN_OMISSIONS)),
            omitted_for=Counter(omission.reason for omission in omissions),
            dry_run=asked.dry_run,
            dumped=dumped,
            retained=versions.counts,
            notified=notified,
        )

    def _end_recording(self, recording: CatalogueRecording) -> int:
        updated = self.found.relink(recording)
        self.versions.flush()
        return updated

    def _among_documents(self) -> Iterator[Omission]:
        if self.source.settings.out == ".":
            for name in self.source.documents.names():
                if not naming.is_document(name):
                    yield Omission(name=name, reason="it is in a folder of the documents")

    def _dump(self, asked: "DumpRequest") -> "DumpOutcome":
        from resourcesync.source.dumps import dump_publisher  # noqa: PLC0415 - rarely needed

        source = self.source
        with self.found.reading() as opening:
            contents = self.versions.contents(self.originals, opening)
            return dump_publisher.dump(asked, source, contents, self._second_process(asked))

    def _second_process(self, asked: "DumpRequest") -> "SecondProcess | None":
        from resourcesync.adapters import second_process  # noqa: PLC0415 - for dumps only

        documents = self.source.documents
        if self.source.settings.originals or not isinstance(documents, FolderDocuments):
            return None
        if not (asked.may_fork and second_process.can_fork()):
            return None
        documents.remove_leftovers()
        return second_process.ForkedProcess()


def notify_hubs(source: OpenSource, own: Path) -> "Notified | None":
    """Notify the hubs of a publication; without hubs, no document names channels any more."""
    if not source.settings.hubs:
        for name in naming.CHANNELS.values():
            if source.documents.signature(name) is not None:
                source.documents.delete(name)
        return None
    from resourcesync.app.serving import hubs  # noqa: PLC0415 - few have hubs
    from resourcesync.source import notifications  # noqa: PLC0415 - the same

    return notifications.notify_after(source, hubs.notice_sender(source.clock, own))


def _is_reported(omission: Omission) -> bool:
    name = omission.name.rstrip("/").rpartition("/")[2]
    is_hidden = name.startswith(".") and name not in {".", ".."}
    return not is_hidden and not name.endswith("~")


def _with_changes(
    done: PublicationResult, settings: PublicationSettings, known: PublicationSettings
) -> PublicationResult:
    former, globs = (_globs_of(of) for of in (known, settings))
    new = {glob for _, glob in globs} - {glob for _, glob in former}
    new |= set(settings.links) - set(known.links)
    if done.dry_run:  # it compares all files, and measures those that changed
        new |= {glob for _, glob in globs}
    return structs.replace(
        done,
        unmatched=tuple(text for text in done.unmatched if text in new),
        dropped=tuple(glob for glob in former if glob not in globs),
        former_out=known.out if known.url and known.out != settings.out else "",
    )


def _globs_of(settings: PublicationSettings) -> list[tuple[str, str]]:
    included = [("include", glob) for glob in settings.include]
    return included + [("exclude", glob) for glob in settings.exclude]


def _check_input(root: Path, catalogue: SourceCatalogue) -> None:
    if catalogue.note(NOTE) is None and catalogue.note(INPUT_NOTE) is not None:
        system = catalogue.note(SYSTEM_NOTE) or f"catalogue:{root / CATALOGUE}"
        raise ConfigurationError(
            f"{root} has the lists of another input, and none of the files in it",
            evidence=(("input", system), ("kept", "what was published before")),
            hint="publish that input again: "
            f"resourcesync publish {quoted(system, 'INPUT')} --out {quoted(root, 'DIR')}",
        )


def _foreseen(listed: Publication, found: ScanReport) -> Publication:
    """Return what a run would list, with what a scan found and did not record."""
    if listed.is_anew:
        return listed
    added = {name: getattr(listed, name) + getattr(found, name) for name in _CHANGES}
    return structs.replace(listed, **added)


def _left_address(known: str, url: str, documents: DocumentStore) -> LeftAddress | None:
    if not known or SourceNaming(base_uri=known) == SourceNaming(base_uri=url):
        return None
    dumps = (naming.RESOURCE_DUMP, naming.CHANGE_DUMP)
    found = tuple(name for name in dumps if documents.signature(name) is not None)
    return LeftAddress(url=known, dumps=found)


def _open_versions(folders: _Folders, source: OpenSource) -> TreeVersions:
    settings = source.settings
    if source.catalogue.dry_run or not is_retention_enabled(source):
        return TreeVersions()
    from resourcesync.app import plugins  # noqa: PLC0415 - the same
    from resourcesync.catalogue.version_files import FolderVersions  # noqa: PLC0415 - few keep versions
    from resourcesync.source.versions.version_retention import StoredTreeVersions  # noqa: PLC0415 - the same
    from resourcesync.source.versions.versions_and_patches import (  # noqa: PLC0415 - the same
        PatchGenerator,
        VersionRecorder,
    )

    store = FolderVersions(
        settings.versions_folder(folders.root if settings.versions_in else folders.home)
    )
    patches = PatchGenerator(plugins.patch_makers, plugins.patch_formats)
    recorder = VersionRecorder(source, store, patches if settings.patches else None)
    return StoredTreeVersions(source, recorder)


@contextmanager
def _catalogue(home: Path, clock: Clock, *, dry_run: bool) -> Iterator[SourceCatalogue]:
    path = home / CATALOGUE
    place = None if dry_run and not is_present(path) else path
    with SourceCatalogue(place, clock, dry_run=dry_run) as catalogue:
        try:
            yield catalogue
        except ConfigurationError:
            if catalogue.latest() is None and not dry_run:
                catalogue.remove()  # it is empty: a refused first run leaves nothing
            raise


def _check(folders: _Folders, chosen: Mapping[str, object]) -> None:
    own = folders.root / CATALOGUE
    if folders.home.absolute() != folders.root.absolute() and own.exists():
        raise ConfigurationError(
            f"{folders.root} has a catalogue of its own",
            evidence=(("catalogue", str(own)),),
            hint=f"move {own.parent} into {folders.home}, or publish without a folder for it",
        )
    if chosen.get("url"):
        check_base(str(chosen["url"]))
    check_addresses(chosen)


def refuse_foreign(source: OpenSource, known: PublicationSettings, step: PublicationStep) -> None:
    """Refuse to publish where a document would be replaced that this catalogue did not write."""
    settings = source.settings
    has_begun = bool(known.url) and settings.out in (known.out, *known.earlier)
    if has_begun and not settings.sitemap:
        return
    from resourcesync.source import foreign_documents  # noqa: PLC0415 - few runs need it

    record = RECORD.read(source.catalogue)
    if not has_begun:
        written = {} if record is None else record.documents
        foreign_documents.refuse_foreign(source.documents, settings.names, written, step)
    here = record if settings.out == known.out else None
    if settings.sitemap:
        foreign_documents.refuse_foreign_sitemap(source.documents, here)


def check_base(url: str) -> None:
    """Refuse an address that cannot be that of a tree."""
    SourceNaming(base_uri=url)
    check_address(url)


def check_addresses(chosen: Mapping[str, object]) -> None:
    """Refuse addresses among settings that Destinations would refuse."""
    for name in ("url", "described_by"):
        if chosen.get(name):
            check_address(str(chosen[name]))


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
    """Return the settings in force."""
    without = {"patches": False} if chosen.get("versions") is False else {}  # they lead to versions
    settings = structs.replace(known, **{**without, **chosen})
    if settings.out != known.out and known.url:
        earlier = tuple(sorted({*known.earlier, known.out} - {settings.out}))
        settings = structs.replace(settings, earlier=earlier)
    if not settings.url:
        raise unknown_address_error(root)
    settings.check_versions(root)
    return settings


def first_command(target: object, out: object = None) -> str:
    """Return the command of a first publication; ``out`` is empty for a folder to choose."""
    into = "" if out is None else f" --out {quoted(out, 'FOLDER')}"
    return f"resourcesync publish {quoted(target, 'DIR')} --url https://HOST/{into}"


def lost_catalogue_error(
    name: str, catalogue: Path, trace: Path, *, has_url: bool = False
) -> StateError:
    """Return the error for a Source whose documents are here, and whose catalogue is not."""
    again = f"resourcesync publish {quoted(name, 'DIR')}" if has_url else first_command(name)
    return StateError(
        f"the catalogue of {name} is missing",
        evidence=(("tried", f"{catalogue}: not found"), ("here", f"{trace}, published")),
        hint="name what has it (publish --out, --state, catalogue:FILE), or restore it; to begin"
        f" anew: {again} --initialise",
    )


def unknown_address_error(target: object, out: object = None) -> ConfigurationError:
    """Return the error that no ``url`` was given yet for an input."""
    return ConfigurationError(
        "the address of the resources is not known yet",
        hint=f"publish it with its address on the Web: {first_command(target, out)}",
    )
