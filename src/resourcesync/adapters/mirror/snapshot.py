"""A mirror's memory as it was at one moment, however long it is read."""

from pathlib import Path

from resourcesync.adapters.mirror.state import SqliteMirrorState


class StateSnapshot(SqliteMirrorState):
    """A ``MirrorState`` for reading, in one transaction from its opening to its closing.

    A pull may go on meanwhile and is not seen. Its write-ahead log grows until this is closed.

    Args:
        path: The file.

    Raises:
        StateError: The file is damaged, is not a mirror's state, or was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, read_only=True)
        with self._guard():
            self._db.execute("BEGIN")
            self._db.execute("SELECT count(*) FROM note").fetchone()  # now it has its moment
