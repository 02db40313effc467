"""A mirror's state whose copies are a Parquet table, with the rows that changed since.

The file ``state.db`` has everything that does not grow with the Source. Of the copies it has those
that this run changed: such a URI is in ``tabled`` if the table has it too, and its row in the table
is void. ``fold`` merges both into the next table; the list of its parts is a note, so that table
and cursor are always of the same moment.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.adapters.mirror import state_logs
from resourcesync.adapters.mirror.state import TABLES_NOTE, SqliteMirrorState
from resourcesync.errors import StateError
from resourcesync.ports.mirror import Copy, PathKey, Pending, PendingTask, StateTransaction
from resourcesync.ports.tables import DoneRow, TablePart, Tables
from resourcesync.sqlite_file import Connection, begin_snapshot, write_notes

_PAGE: Final = 2_000
_PART_ROWS: Final = 1_000_000
_MOST_RECALLED: Final = 100_000
_PUT_COPY: Final = "INSERT OR REPLACE INTO copy VALUES (?,?,?,?,?,?,?,?,?,?,?)"
_CLAIM: Final = (
    "INSERT OR IGNORE INTO tabled SELECT ? WHERE NOT EXISTS (SELECT 1 FROM copy WHERE uri = ?)"
)
_CREATE_TEMP_COPIES: Final = """
CREATE TEMP TABLE here (uri TEXT PRIMARY KEY, length INTEGER, installed INTEGER) WITHOUT ROWID
"""
_by_uri = attrgetter("uri")


class TabledState(SqliteMirrorState):
    """A ``MirrorState`` whose copies are a table.

    Args:
        path: The file.
        tables: Reads and writes tables.
        folder: The folder of the table's parts.
        read_only: Open an existing file for reading only.
        at_once: Read a snapshot, in which table and file match. The parts of the table stay until
            the next but one is made.

    Raises:
        StateError: The file is damaged, is not a mirror's state, or was written by a newer version.
    """

    def __init__(
        self,
        path: Path | str,
        tables: Tables,
        folder: Path,
        *,
        read_only: bool = False,
        at_once: bool = False,
    ) -> None:
        super().__init__(path, read_only=read_only)
        if at_once:
            with self._errors:
                begin_snapshot(self._db)
        self._tables = tables
        self._folder = folder
        self._recalled: dict[str, Copy | None] = {}
        self.parts: Sequence[TablePart] = self._read_parts()

    def _read_parts(self) -> tuple[TablePart, ...]:
        text = self.note(TABLES_NOTE)
        try:
            return () if text is None else msgspec.json.decode(text, type=tuple[TablePart, ...])
        except msgspec.MsgspecError as error:
            raise StateError(
                f"the mirror's list of its tables cannot be read: {error}",
                evidence=(("file", self._path), ("kept", "all copies")),
                hint="restore the folder from a copy, or move it away and pull again",
            ) from error

    @property
    def files(self) -> list[str]:
        """The files of the table's parts, in order."""
        return [str(self._folder / part.name) for part in self.parts]

    def copies(self) -> Iterator[Copy]:
        """Yield the copies in rising URI order; rows may be written meanwhile."""
        after = ""
        table = self._tables.read_copies(self.files) if self.parts else iter(())
        while group := list(islice(table, _PAGE)):
            last = group[-1].uri
            ours = self._tabled(after, last)
            theirs = (copy for copy in group if copy.uri not in ours)
            yield from merge(self._changed(after, last), theirs, key=_by_uri)
            after = last
        while changed := self._changed(after, None):
            yield from changed
            after = changed[-1].uri

    def _changed(self, after: str, last: str | None) -> list[Copy]:
        """Return the copies in this file after one URI, up to another or a full page."""
        upto, limit = ("AND uri <= ?", "") if last is not None else ("", f"LIMIT {_PAGE}")
        text = f"SELECT * FROM copy WHERE uri > ? {upto} ORDER BY uri {limit}"  # noqa: S608 - constants
        with self._errors:
            rows = self._db.execute(text, (after, last) if last is not None else (after,))
            return [Copy._make(row) for row in rows]

    def _tabled(self, after: str, last: str) -> set[str]:
        with self._errors:
            rows = self._db.execute(
                "SELECT uri FROM tabled WHERE uri > ? AND uri <= ?", (after, last)
            )
            return {row[0] for row in rows}

    def copy(self, uri: str) -> Copy | None:
        """Return the copy of a URI, or ``None``."""
        known = super().copy(uri)
        if known is not None or not self.parts:
            return known
        with self._errors:
            found = self._db.execute("SELECT 1 FROM tabled WHERE uri = ?", (uri,)).fetchone()
        if found is not None:
            return None
        if uri not in self._recalled:
            self.recall([uri])
        return self._recalled[uri]

    def recall(self, uris: Sequence[str]) -> None:
        """Prefetch some URIs from the table; they are requested next.

        Args:
            uris: The URIs, a few thousand at most.
        """
        self._recalled = dict.fromkeys(uris)
        self._recalled.update((copy.uri, copy) for copy in self._find(uris))

    def _find(self, uris: Sequence[str]) -> list[Copy]:
        """Return the copies of some URIs in the table; only parts that may have one are opened."""
        wanted = sorted(uris)
        files = [
            str(self._folder / part.name)
            for part in self.parts
            if bisect_left(wanted, part.first) < bisect_right(wanted, part.last)
        ]
        return self._tables.find(files, wanted) if files else []

    def count(self) -> int:
        """Return the number of copies."""
        with self._errors:
            tabled = int(self._db.execute("SELECT count(*) FROM tabled").fetchone()[0])
        return sum(part.rows for part in self.parts) - tabled + super().count()

    def size(self) -> int | None:
        """Return ``None``: the whole table would have to be read."""
        return None

    def path_conflicts(
        self, base: str, paths: Sequence[str], key: PathKey | None
    ) -> Iterator[tuple[str, str]]:
        """Yield the URIs and paths that conflict with new paths; all copies are read."""
        del base
        return self._near(paths, key)

    def pending_with_copy(self, task: PendingTask, codes: Sequence[str] = ()) -> int:
        """Count a task's rows whose URI has a copy; those of some reasons, or all."""
        rows: Iterator[Pending] = self.pending(task)
        if codes:
            rows = (row for row in rows if row.code in codes)
        here = 0
        while group := [row.uri for row in islice(rows, _PAGE)]:
            self.recall(group)
            here += sum(self.copy(uri) is not None for uri in group)
        return here

    def oldest_proofs(self) -> Iterator[tuple[str, int]]:
        """Yield URIs and when each was proven, or else installed, longest ago first."""
        copies = self.copies()
        with self._errors:
            self._db.execute("PRAGMA temp_store = FILE")
            self._db.execute("DROP TABLE IF EXISTS temp.here")
            self._db.execute(_CREATE_TEMP_COPIES)
        while group := list(islice(copies, _PAGE)):
            with self._file.writing() as db:
                rows = ((copy.uri, copy.length, copy.installed) for copy in group)
                db.executemany("INSERT INTO temp.here VALUES (?,?,?)", rows)
        with self._errors:
            yield from state_logs.read_oldest_proofs(self._db, "temp.here")

    def commit(self, step: StateTransaction) -> None:
        """Store a step durably: all of it, or nothing."""
        changed = [copy.uri for copy in (*step.suspect, *step.installed)]
        if self.parts and (changed or step.removed):
            self._claim_all([*changed, *step.removed])
        super().commit(step)

    def _claim_all(self, uris: Sequence[str]) -> None:
        """Move some URIs to this file: their rows in the table are void from now on."""
        unknown = sorted({uri for uri in uris if uri not in self._recalled})
        if len(self._recalled) > _MOST_RECALLED:
            self._recalled = {uri: copy for uri in uris if (copy := self._recalled.get(uri))}
        if unknown:
            self._recalled.update((copy.uri, copy) for copy in self._find(unknown))
        found = [known for uri in uris if (known := self._recalled.get(uri)) is not None]
        if not found:
            return
        with self._file.writing() as db:
            new = [copy for copy in found if self._claim(db, copy.uri)]
            db.executemany(_PUT_COPY, new)

    @staticmethod
    def _claim(db: Connection, uri: str) -> bool:
        """Claim a URI of the table; return false if this file has it already."""
        return db.execute(_CLAIM, (uri, uri)).rowcount == 1

    @property
    def changed_count(self) -> int:
        """Number of rows of this file that differ from the table."""
        with self._errors:
            copies, gone = self._db.execute(
                "SELECT (SELECT count(*) FROM copy), (SELECT count(*) FROM tabled"
                " WHERE uri NOT IN (SELECT uri FROM copy))"
            ).fetchone()
        return int(copies) + int(gone)

    def fold(self, stem: str, keep: Callable[[TablePart, Path], None]) -> None:
        """Make the next table: the rows of this file replace those of the table.

        Args:
            stem: The prefix of the names of new parts; never used before.
            keep: Stores a new part durably at further locations of the table.

        Raises:
            StorageError: It cannot be written; the table is unchanged.
        """
        if not self.changed_count and self.note(TABLES_NOTE) is not None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        news = self._folder / f"{stem}.changed"
        try:
            known = [(part, str(self._folder / part.name)) for part in self.parts]
            if self._tables.write_done(str(news), self._rows()):
                known = self._tables.merge(
                    known, [str(news)], into=str(self._folder), stem=stem, rows=_PART_ROWS
                )
        finally:
            news.unlink(missing_ok=True)
        before = {part.name for part in self.parts}
        for part, file in known:
            if part.name not in before:
                keep(part, Path(file))
        self._replace(tuple(part for part, _ in known))

    def _rows(self) -> Iterator[DoneRow]:
        after = ""
        while True:
            with self._errors:
                rows = self._db.execute(
                    "SELECT uri FROM copy WHERE uri > ? UNION SELECT uri FROM tabled WHERE uri > ?"
                    " ORDER BY uri LIMIT ?",
                    (after, after, _PAGE),
                ).fetchall()
            uris = [row[0] for row in rows]
            if not uris:
                return
            copies = {copy.uri: copy for copy in self._changed(after, uris[-1])}
            yield from (DoneRow(uri, copies.get(uri), None) for uri in uris)
            after = uris[-1]

    def _replace(self, parts: tuple[TablePart, ...]) -> None:
        text = msgspec.json.encode(parts).decode()
        with self._file.writing() as db:
            write_notes(db, {TABLES_NOTE: text})
            db.execute("DELETE FROM copy")
            db.execute("DELETE FROM tabled")
        self.parts = parts
        self._recalled = {}

    def unfold(self) -> None:
        """Move all copies back into the file: the mirror has no table any more.

        Raises:
            StorageError: There is no space, or the table cannot be read; it is unchanged.
        """
        copies = self.copies()
        with self._file.writing() as db:
            while group := list(islice(copies, _PAGE)):
                db.executemany(_PUT_COPY, group)
            db.execute("DELETE FROM tabled")
            db.execute("DELETE FROM note WHERE key = ?", (TABLES_NOTE,))
        self.parts = ()
        self._recalled = {}

    def drop_old_parts(self, before: Collection[str] = ()) -> list[str]:
        """Remove the files of former parts; return the names of the current ones.

        Args:
            before: The parts of the table before this one, which readers may still use.
        """
        kept = {part.name for part in self.parts}
        for file in list(self._folder.iterdir()) if self._folder.is_dir() else ():
            if file.name not in kept and file.name not in before:
                file.unlink(missing_ok=True)
        return sorted(kept)
