"""Export of a mirror: its copies and the place of the export are opened for it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from resourcesync.adapters.export_files import NewExport
from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.mirror_folder import STATE_FILE
from resourcesync.app import plugins
from resourcesync.app.mirrors import mirror_state, stores
from resourcesync.app.mirrors.opening import is_mirror, not_a_mirror_error
from resourcesync.destination.exports.checked_export import (
    Exported,
    ExportedCopies,
    OpenCopies,
    export_copies,
)
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.exporters import Exporter, ExportOptions
from resourcesync.ports.mirror import Copy


def export_mirror(
    folder: Path, form: str, out: Path, options: ExportOptions, *, report: Reporter, clock: Clock
) -> Exported:
    """Export the copies of a mirror; a pull may go on meanwhile.

    Every byte is hashed while it is copied. Should one copy differ from the mirror's state,
    nothing is left at ``out``, and all such copies are found.

    Args:
        folder: The mirror.
        form: The format: a name that the list of plug-ins has as an exporter.
        out: The file or folder to make; it must not exist.
        options: The operator's options.
        report: Receives ``progress`` and ``finding`` events.
        clock: Time.

    Raises:
        ConfigurationError: The folder is not a mirror or is empty, ``out`` exists, or the options
            cannot work.
        StateError: The mirror's state is damaged or from a newer version.
        StorageError: A copy cannot be read, or the export cannot be written.
    """
    if not is_mirror(folder):
        raise not_a_mirror_error(folder)
    exporter = cast("Exporter", plugins.load(plugins.EXPORTERS, form))
    if out.resolve().is_relative_to(folder.resolve()):
        raise ConfigurationError(
            f"{out} is inside the mirror",
            hint="name a place outside: a mirror only has the content of its Source",
        )
    if not out.parent.is_dir():
        raise ConfigurationError(f"there is no folder {out.parent}", hint="create it first")
    target = NewExport(out)
    with _open_copies(folder) as opened:
        copies = ExportedCopies(opened, report, clock.now())
        return export_copies(copies, target, exporter, options)


@contextmanager
def _open_copies(folder: Path) -> Iterator[OpenCopies]:
    state_file = folder / OWN_FOLDER / STATE_FILE

    def recorded(uri: str) -> Copy | None:
        with mirror_state.open_state(state_file, read_only=True) as state:
            return state.copy(uri)

    with (
        mirror_state.open_snapshot(state_file) as state,
        stores.open_copy_reader(folder) as inspector,
    ):
        yield OpenCopies(
            folder=str(folder),
            state=state,
            reading=inspector.reading,
            recorded=recorded,
            scratch=_scratch,
        )


def _scratch() -> BinaryIO:
    try:
        return cast("BinaryIO", tempfile.TemporaryFile())
    except OSError as error:
        raise StorageError(f"cannot make a temporary file: {error.strerror}") from error
