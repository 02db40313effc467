"""Exports of a mirror's copies, or of the versions of a published folder.

What is exported and the place of the export are opened for it.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

from resourcesync.adapters.catalogue import FileVersionReader, open_all_versions
from resourcesync.adapters.export_files import NewExport
from resourcesync.adapters.files.names import media_type, to_names
from resourcesync.adapters.mirror.own_folder import OWN_FOLDER, STATE_FILE
from resourcesync.adapters.mirror.state import SqliteMirrorState, StateSnapshot
from resourcesync.adapters.version_files import FolderVersions
from resourcesync.app import plugins
from resourcesync.app.mirrors import stores
from resourcesync.app.mirrors.mirror_state import is_mirror, not_a_mirror_error
from resourcesync.app.publishing.published_tree import published_files, published_settings
from resourcesync.destination.exports.checked_export import (
    Exported,
    ExportedCopies,
    OpenCopies,
    export_copies,
)
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import ConfigurationError, Remedy, StorageError
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.exporters import Exporter, ExportOptions
from resourcesync.ports.mirror import Copy, Fixity, PendingTask
from resourcesync.ports.versions import ResourceVersion
from resourcesync.settings.publication import CATALOGUE
from resourcesync.source.naming import SourceNaming
from resourcesync.source.publication_options import version_options_of

_ALL: Final = (1 << 63) - 1
_PIECE: Final = 1 << 20
_ALGORITHM: Final = "sha-256"


def export_mirror(
    folder: Path, form: str, out: Path, options: ExportOptions, *, report: Reporter, clock: Clock
) -> Exported:
    """Export the copies of a mirror, or the versions of a published folder.

    Every byte is hashed while it is copied. Should one copy differ from what is recorded, nothing
    is left at ``out``, and all such copies are found. A pull or a publication may go on meanwhile.

    Args:
        folder: The mirror; the published folder, if versions are exported.
        form: The format: a name that the list of plug-ins has as an exporter.
        out: The file or folder to make; it must not exist.
        options: The operator's options.
        report: Receives ``progress`` and ``finding`` events.
        clock: Time.

    Raises:
        ConfigurationError: The folder is not a mirror or is empty, or stores no versions, ``out``
            exists, or the options cannot work.
        StateError: The mirror's state is damaged or from a newer version.
        StorageError: A copy cannot be read, or the export cannot be written.
    """
    exporter = cast("Exporter", plugins.load(plugins.EXPORTERS, form))
    opening = _open_versions if options.versions else _open_copies
    with opening(folder) as opened:
        if out.resolve().is_relative_to(folder.resolve()):
            raise ConfigurationError(
                f"{out} is inside {folder}",
                hint="name a place outside: an export is no part of what it exports",
            )
        if not out.parent.is_dir():
            raise ConfigurationError(f"there is no folder {out.parent}", hint="create it first")
        copies = ExportedCopies(opened, report, clock.now())
        return export_copies(copies, NewExport(out), exporter, options)


@contextmanager
def _open_copies(folder: Path) -> Iterator[OpenCopies]:
    if not is_mirror(folder):
        raise not_a_mirror_error(folder)
    state_file = folder / OWN_FOLDER / STATE_FILE

    def recorded(copy: Copy) -> Copy | None:
        with SqliteMirrorState(state_file, read_only=True) as state:
            return state.copy(copy.uri)

    with (
        StateSnapshot(state_file) as state,
        stores.open_copy_reader(folder) as inspector,
    ):
        count = state.count()
        if not count:
            raise ConfigurationError(
                f"{folder} has no copy yet",
                hint="pull it first",
                remedy=Remedy("pull", target=str(folder)),
            )
        known = SyncState(state)
        identity, found = known.identity, known.discovered
        source = "" if identity is None else identity.source
        yield OpenCopies(
            source=source,
            capability_list=(None if found is None else found.capability_list) or source,
            as_of=known.as_of,
            count=count,
            missing=state.pending_count(PendingTask.FETCH, met_before=_ALL, listed_before=_ALL),
            is_begun=known.cursor.checkpoint is None,
            changed="a pull changed it during the export",
            copies=state.copies,
            media_type=_media_type,
            reading=lambda copy: inspector.reading(copy.path),
            recorded=recorded,
            scratch=_scratch,
        )


def _media_type(copy: Copy) -> str:
    """Return the media type by the address; ours may be the ending of a file's name."""
    return media_type(copy.uri.partition("?")[0])


def _scratch() -> BinaryIO:
    """Open a nameless temporary file.

    Raises:
        StorageError: None can be made.
    """
    try:
        return cast("BinaryIO", tempfile.TemporaryFile())
    except OSError as error:
        raise StorageError(f"cannot make a temporary file: {error.strerror}") from error


@contextmanager
def _open_versions(folder: Path) -> Iterator[OpenCopies]:
    """Open the versions of a published folder as they are now; a publication may go on meanwhile.

    Each version is a `Copy`, stored at its ``installed`` and so since its ``lastmod``. Versions of
    files that the last publication excluded are left out, as `serve` does not serve them either.

    Raises:
        ConfigurationError: The folder stores no versions.
        StateError: Its catalogue is damaged.
        StorageError: It cannot be read.
    """
    catalogue = folder / CATALOGUE
    if not catalogue.is_file():
        raise _no_versions_error(folder)
    settings = published_settings(folder)
    place = version_options_of(settings).place(folder)
    base = SourceNaming(base_uri=settings.url).base_uri if settings.url else ""
    is_public = _judge(base, published_files(folder))
    contents, reader = FolderVersions(place), FileVersionReader(catalogue)
    shown = os.path.relpath(place, folder)

    def to_copy(version: ResourceVersion) -> Copy:
        return _to_copy(version, f"{shown}/{version.sha256[:2]}/{version.sha256}")

    def recorded(copy: Copy) -> Copy | None:
        version = reader.find(copy.uri, copy.installed)
        return None if version is None else to_copy(version)

    with open_all_versions(catalogue) as versions:
        found = count = 0
        for version in versions():
            found += 1
            count += is_public(version.uri)
        if not count:
            raise _no_versions_error(folder)
        yield OpenCopies(
            source=base,
            capability_list=base,
            as_of=None,
            count=count,
            excluded=found - count,
            changed="a publication removed it during the export",
            copies=lambda: (to_copy(one) for one in versions() if is_public(one.uri)),
            media_type=_media_type,
            reading=lambda copy: _read(contents, copy),
            recorded=recorded,
            scratch=_scratch,
        )


def _judge(base: str, is_published: Callable[[str], bool]) -> Callable[[str], bool]:
    """Return the test for URIs whose versions are public."""

    def is_public(uri: str) -> bool:
        names = to_names(uri.removeprefix(base)) if uri.startswith(base) else None
        return names is not None and is_published("/".join(names))

    return is_public


def _to_copy(version: ResourceVersion, path: str) -> Copy:
    digests = f"{_ALGORITHM}:{version.sha256}"
    return Copy(
        uri=version.uri,
        path=path,
        length=version.length,
        digests=digests,
        listed=digests,
        lastmod=version.since,
        etag="",
        last_modified="",
        signature="",
        fixity=Fixity.VERIFIED,
        installed=version.moment,
    )


def _read(contents: FolderVersions, copy: Copy) -> Iterator[bytes] | None:
    stream = contents.open(copy.digests.removeprefix(f"{_ALGORITHM}:"))
    return None if stream is None else _pieces(stream, copy.path)


def _pieces(stream: BinaryIO, path: str) -> Iterator[bytes]:
    with stream:
        try:
            while piece := stream.read(_PIECE):
                yield piece
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error


def _no_versions_error(folder: Path) -> ConfigurationError:
    message = f"{folder} stores no versions"
    if is_mirror(folder):
        return ConfigurationError(
            message,
            hint="a mirror stores its present copies only: export those that are new after each "
            "pull, and put all exports into one archive",
        )
    return ConfigurationError(
        message, hint="store them when it is published", remedy=Remedy("store-versions")
    )
