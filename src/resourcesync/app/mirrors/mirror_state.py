"""Opening of a mirror's state, whether its copies are in it or in a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.state import TABLES_NOTE, SqliteMirrorState, StateSnapshot

if TYPE_CHECKING:
    from resourcesync.adapters.mirror.tabled_state import TabledState
    from resourcesync.ports.tables import Tables

_PARTS: Final = "tables"
_SCRATCH: Final = "tmp"


def open_state(path: Path, *, read_only: bool = False) -> SqliteMirrorState:
    """Open the state at a path; without ``read_only`` it is made when it does not exist.

    Raises:
        StateError: It is damaged, is not a mirror's, or was written by a newer version.
        ConfigurationError: Its copies are a table, and the reader of tables is not installed.
    """
    state = SqliteMirrorState(path, read_only=read_only)
    if state.note(TABLES_NOTE) is None:
        return state
    state.close()
    return open_table_state(path, read_only=read_only)


def open_table_state(
    path: Path, *, read_only: bool = False, at_once: bool = False
) -> "TabledState":
    """Open a state whose copies are a table, or are to be one; see ``TabledState``.

    Raises:
        StateError: It is damaged, is not a mirror's, or was written by a newer version.
        ConfigurationError: The reader of tables is not installed.
    """
    from resourcesync.adapters.mirror.tabled_state import TabledState  # noqa: PLC0415 - rarely

    own = path.parent
    return TabledState(
        path, tables_of(own), parts_folder(own), read_only=read_only, at_once=at_once
    )


def open_snapshot(path: Path) -> SqliteMirrorState:
    """Open the state at a path as it is at this moment: for long readings, while pulls go on.

    Raises:
        StateError: It is damaged, is not a mirror's, or was written by a newer version.
        ConfigurationError: Its copies are a table, and the reader of tables is not installed.
    """
    state = StateSnapshot(path)
    if state.note(TABLES_NOTE) is None:
        return state
    state.close()
    return open_table_state(path, read_only=True, at_once=True)


def parts_folder(own: Path) -> Path:
    """Return the folder of the table's parts, in the mirror's own folder."""
    return own / _PARTS


def tables_of(own: Path) -> "Tables":
    """Return the reader and writer of tables, with disk space for what exceeds its memory.

    Raises:
        ConfigurationError: The reader of tables is not installed.
    """
    from resourcesync.cluster.tables import ParquetTables  # noqa: PLC0415 - an extra

    return ParquetTables(own / _SCRATCH)


def has_copy_table(folder: Path) -> bool:
    """True if the copies of the mirror in a folder are a table."""
    file = folder / OWN_FOLDER / "state.db"
    if not file.is_file():
        return False
    with SqliteMirrorState(file, read_only=True) as state:
        return state.note(TABLES_NOTE) is not None
