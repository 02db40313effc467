"""Publication of a tree, with its catalogue."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.app.publishing import document_stores, originals
from resourcesync.app.publishing.document_stores import locked_documents
from resourcesync.app.publishing.mending import publish_mended
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import ConfigurationError, OutOfScopeError, quoted
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.settings.publication import CATALOGUE, INPUT_NOTE, NOTE, PublicationSettings
from resourcesync.source import naming
from resourcesync.source.account_follower import SYSTEM_NOTE
from resourcesync.source.naming import SourceNaming
from resourcesync.source.plan import PublicationStep, read_record
from resourcesync.source.publication_options import (
    LeftAddress,
    PublicationResult,
    PublishRequest,
    dump_options_of,
    entry_settings_of,
    limits_of,
    publication_policy,
    read_settings,
    version_options_of,
)
from resourcesync.source.publisher import ListPublisher
from resourcesync.source.tree_publication import (
    REREAD_NOTE,
    OpenTree,
    TreePublication,
)
from resourcesync.source.versions.version_retention import (
    TreeVersions,
    is_retention_enabled,
)

if TYPE_CHECKING:
    from resourcesync.ports.originals import Originals, ResourceContents
    from resourcesync.ports.second_process import SecondProcess
    from resourcesync.source.dumps.dump_publication import DumpRequest
    from resourcesync.source.notifications import NoticeSender


class _Folders(msgspec.Struct, frozen=True):
    """The tree, and the folder whose own folder has the catalogue: mostly the tree."""

    root: Path
    home: Path


def publish_tree(
    root: Path,
    chosen: Mapping[str, object],
    *,
    clock: Clock,
    asked: PublishRequest | None = None,
    state: Path | None = None,
) -> PublicationResult:
    """Publish a tree, or update what was published."""
    if not _is_folder(root):
        raise ConfigurationError(f"{root} is not a folder", hint="name the folder to publish")
    asked = asked or PublishRequest()
    folders = _Folders(root, root if state is None else state)
    _check(folders, chosen)
    attempt = partial(_publish, folders, chosen, clock, asked)
    return publish_mended(folders.home / CATALOGUE, clock, asked, attempt)


def _publish(
    folders: _Folders, chosen: Mapping[str, object], clock: Clock, asked: PublishRequest
) -> PublicationResult:
    root = folders.root
    with ExitStack() as stack:
        catalogue = stack.enter_context(_catalogue(folders.home, clock, dry_run=asked.dry_run))
        known = read_settings(catalogue, NOTE)
        _refuse_other_input(root, catalogue)
        settings = merge_settings(root, known, chosen)
        originals.check_originals(settings, known)
        if settings.robots:
            document_stores.check_robots(root, settings.out, settings.url)
        own = (folders.home / CATALOGUE).parent
        store = stack.enter_context(
            locked_documents(root, settings.out, own, dry_run=asked.dry_run)
        )
        refuse_foreign(catalogue, store, settings, known, asked.step)
        reread = catalogue.note(REREAD_NOTE)
        found = stack.enter_context(originals.open_originals(root, settings, clock, reread))
        tree = _open_tree(folders, settings, catalogue, store, found, clock)
        left = _left_address(known.url, settings.url, store)
        done = TreePublication(tree, clock).publish(
            asked, anew=entry_settings_of(settings) != entry_settings_of(known)
        )
        done = structs.replace(done, root=root, left=left, unmatched=found.unmatched())
        return _with_changes(done, settings, known)


def _with_changes(
    done: PublicationResult, settings: PublicationSettings, known: PublicationSettings
) -> PublicationResult:
    """Return the result with what is new in the settings, and what is no longer in force."""
    former, globs = (_globs_of(of) for of in (known, settings))
    new = {glob for _, glob in globs} - {glob for _, glob in former}
    return structs.replace(
        done,
        unmatched=tuple(glob for glob in done.unmatched if done.dry_run or glob in new),
        dropped=tuple(glob for glob in former if glob not in globs),
        former_out=known.out if known.url and known.out != settings.out else "",
    )


def _globs_of(settings: PublicationSettings) -> list[tuple[str, str]]:
    """Return the globs of some settings, with the names of these."""
    included = [("include", glob) for glob in settings.include]
    return included + [("exclude", glob) for glob in settings.exclude]


def _refuse_other_input(root: Path, catalogue: SourceCatalogue) -> None:
    """Refuse a folder with the lists of another input: its resources are not the files there."""
    if catalogue.note(NOTE) is None and catalogue.note(INPUT_NOTE) is not None:
        system = catalogue.note(SYSTEM_NOTE) or f"catalogue:{root / CATALOGUE}"
        raise ConfigurationError(
            f"{root} has the lists of another input, and none of the files in it",
            evidence=(("input", system), ("kept", "what was published before")),
            hint="publish that input again: "
            f"resourcesync publish {quoted(system, 'INPUT')} --out {quoted(root, 'DIR')}",
        )


def _left_address(known: str, url: str, documents: DocumentStore) -> LeftAddress | None:
    """Return the address that a publication leaves, with the dumps that are listed there."""
    if not known or SourceNaming(base_uri=known) == SourceNaming(base_uri=url):
        return None
    dumps = (naming.RESOURCE_DUMP, naming.CHANGE_DUMP)
    found = tuple(name for name in dumps if documents.signature(name) is not None)
    return LeftAddress(url=known, dumps=found)


def _open_tree(
    folders: _Folders,
    settings: PublicationSettings,
    catalogue: SourceCatalogue,
    documents: DocumentStore,
    found: originals.OpenedOriginals,
    clock: Clock,
) -> OpenTree:
    versions = _open_versions(folders, settings, catalogue, clock)
    scanned = versions.originals(found.originals)
    return OpenTree(
        settings=settings,
        catalogue=catalogue,
        documents=documents,
        originals=scanned,
        contents=_contents(found, scanned, versions),
        versions=versions,
        publisher=publisher_of(catalogue, documents, settings, clock),
        reread=found.rereading.note(),
        dump_options=lambda asked: dump_options_of(
            settings, _second_process(asked, settings, documents)
        ),
        write_robots=lambda uri: document_stores.write_robots(folders.root / settings.out, uri),
        sender=lambda: _notice_sender(folders.home, clock),
    )


def _second_process(
    asked: "DumpRequest", settings: PublicationSettings, documents: DocumentStore
) -> "SecondProcess | None":
    """Return what packs beside this process: only from files into files, which survive a fork."""
    from resourcesync.adapters import second_process  # noqa: PLC0415 - for dumps only

    if settings.originals or not isinstance(documents, FolderDocuments):
        return None
    if not (asked.may_fork and second_process.can_fork()):
        return None
    documents.remove_leftovers()
    return second_process.ForkedProcess()


def _notice_sender(home: Path, clock: Clock) -> "NoticeSender":
    from resourcesync.app import hubs  # noqa: PLC0415 - few have hubs

    return hubs.notice_sender(clock, (home / CATALOGUE).parent)


def _open_versions(
    folders: _Folders, settings: PublicationSettings, catalogue: SourceCatalogue, clock: Clock
) -> TreeVersions:
    """Return the store of former versions, if there is one; a dry run stores nothing."""
    names = SourceNaming(base_uri=settings.url)
    is_enabled = is_retention_enabled(version_options_of(settings), names, catalogue)
    if catalogue.dry_run or not is_enabled:
        return TreeVersions()
    from resourcesync.app import plugins  # noqa: PLC0415 - the same
    from resourcesync.catalogue.version_files import FolderVersions  # noqa: PLC0415 - few keep versions
    from resourcesync.source.versions.version_recording import (  # noqa: PLC0415 - the same
        PatchGenerator,
        VersionNames,
        VersionPolicy,
        VersionRecorder,
    )
    from resourcesync.source.versions.version_retention import StoredTreeVersions  # noqa: PLC0415 - the same

    options, index = version_options_of(settings), catalogue.versions()
    store = FolderVersions(options.place(folders.root if options.folder else folders.home))
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
    found: originals.OpenedOriginals, readable: "Originals", past: TreeVersions
) -> Iterator["ResourceContents"]:
    with found.reading() as opening:
        yield past.contents(readable, opening)


def publisher_of(
    catalogue: SourceCatalogue,
    documents: DocumentStore,
    settings: PublicationSettings,
    clock: Clock,
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


@contextmanager
def _catalogue(home: Path, clock: Clock, *, dry_run: bool) -> Iterator[SourceCatalogue]:
    path = home / CATALOGUE
    place = None if dry_run and not path.exists() else path
    with SourceCatalogue(place, clock, dry_run=dry_run) as catalogue:
        try:
            yield catalogue
        except ConfigurationError:
            if catalogue.latest() is None and not dry_run:
                catalogue.remove()  # it is empty: a refused first run leaves nothing
            raise


def _is_folder(root: Path) -> bool:
    try:
        return root.is_dir()
    except OSError:  # such as a name that is too long
        return False


def _check(folders: _Folders, chosen: Mapping[str, object]) -> None:
    """Refuse invalid settings before anything is made, the catalogue included."""
    own = folders.root / CATALOGUE
    if folders.home.absolute() != folders.root.absolute() and own.exists():
        raise ConfigurationError(
            f"{folders.root} has a catalogue of its own",
            evidence=(("catalogue", str(own)),),
            hint=f"move {own.parent} into {folders.home}, or publish without a folder for it",
        )
    if chosen.get("url"):
        check_base(str(chosen["url"]))
    if chosen.get("described_by"):
        check_address(str(chosen["described_by"]))


def refuse_foreign(
    catalogue: SourceCatalogue,
    documents: DocumentStore,
    settings: PublicationSettings,
    known: PublicationSettings,
    step: PublicationStep,
) -> None:
    """Refuse to publish where a document would be replaced that this catalogue did not write."""
    has_begun = is_known_place(settings, known)
    if has_begun and not settings.sitemap:
        return
    from resourcesync.source import foreign_documents  # noqa: PLC0415 - few runs need it

    record = read_record(catalogue)
    if not has_begun:
        written = {} if record is None else record.documents
        names = SourceNaming(base_uri=settings.url)
        foreign_documents.refuse_foreign(documents, names, written, step)
    here = record if settings.out == known.out else None
    if settings.sitemap:
        foreign_documents.refuse_foreign_sitemap(documents, here)


def is_known_place(settings: PublicationSettings, known: PublicationSettings) -> bool:
    """True if the settings were stored with this place before: a run began to publish there."""
    return bool(known.url) and settings.out in (known.out, *known.earlier)


def check_base(url: str) -> None:
    """Refuse an address that cannot be that of a tree."""
    SourceNaming(base_uri=url)
    check_address(url)


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
    settings = structs.replace(known, **chosen)
    if settings.out != known.out and known.url:
        settings = structs.replace(
            settings, earlier=tuple(sorted({*known.earlier, known.out} - {settings.out}))
        )
    if not settings.url:
        raise ConfigurationError(
            f"the address of {root} on the Web is not known yet",
            hint="publish it with its address: "
            f"resourcesync publish {quoted(root, 'DIR')} --url https://HOST/",
        )
    version_options_of(settings).check(root, settings.hashes)
    return settings
