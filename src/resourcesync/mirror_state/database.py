"""The mirror's state in one SQLite file (``DEST/.resourcesync/state.db``).

WAL and ``synchronous=FULL``: a commit survives a power cut. One connection writes. Other programs
should open the file read-only. ``StateSnapshot`` is the state at one moment, for long reads.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter, lt
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from resourcesync import sqlite_file
from resourcesync.mirror_state import change_log
from resourcesync.mirror_state.change_log import MirrorLogs
from resourcesync.mirror_state.rows import (
    Copy,
    PathKey,
    Pending,
    PendingCounts,
    PendingTask,
    ProcessedDocument,
    RefusedRow,
    RunRow,
    StateTransaction,
    TrashRow,
    UnhashedCounts,
)
from resourcesync.model.timestamps import Microseconds

APPLICATION_ID: Final = 0x52534D31  # "RSM1"

PATH_NOT_IN_URI: Final = "substr(uri, -length(path)) <> path"
"""The condition of the indexes of paths: only of a few rows is the path not the end of the URI."""
SCHEMA: Final = sqlite_file.read_schema(__file__, "schema.sql", path_not_in_uri=PATH_NOT_IN_URI)
"""All tables. Indexes of copies have conditions: they cost nothing in most mirrors."""

STATE_FORMAT: Final = sqlite_file.SqliteFormat(
    noun="the state of a mirror",
    application_id=APPLICATION_ID,
    schema=SCHEMA,
    durability=sqlite_file.Durability.SHARED,
    is_private=False,
    opens_when_full=True,  # so that its trash can be emptied
    retained="all copies, and the last complete step",
    repair="move {path} away and pull its address again: good copies are kept, not fetched",
)


_PATH_TABLES: Final = (("copy", ""), ("pending", " AND task = 'fetch'"))
# A path that is the end of its URI is found by that; others by an index of their own.
_SAME_PATH: Final = " UNION ALL ".join(
    f"SELECT uri, path FROM {table} WHERE uri = :uri AND path = :path{of_task}"  # noqa: S608 - constants
    f" UNION ALL SELECT uri, path FROM {table} WHERE path = :path AND {PATH_NOT_IN_URI}{of_task}"
    for table, of_task in _PATH_TABLES
)
_LOWER_PATHS: Final = " UNION ALL ".join(
    f"SELECT * FROM (SELECT uri, path FROM {table} WHERE uri > :uri || '/' AND uri < :uri || '0'"  # noqa: S608 - constants
    f" AND substr(path, 1, length(:path) + 1) = :path || '/'{of_task} LIMIT 1)"
    f" UNION ALL SELECT * FROM (SELECT uri, path FROM {table} WHERE path > :path || '/'"
    f" AND path < :path || '0' AND {PATH_NOT_IN_URI}{of_task} LIMIT 1)"
    for table, of_task in _PATH_TABLES
)
_SUSPECT_TASKS: Final = (
    "SELECT pending.* FROM pending CROSS JOIN copy USING (uri) WHERE signature IN"
    " ('altered', 'missing', 'edited') AND pending.uri > ? ORDER BY pending.uri LIMIT ?"
)


def _folders_of(path: str) -> Iterator[str]:
    at = path.find("/")
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)


def find_path_conflicts(
    file: sqlite_file.SqliteFile, base: str, paths: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the URIs and paths of rows that conflict with new paths, found by indexes."""
    folders = {folder for path in paths for folder in _folders_of(path)}
    for query, named in ((_SAME_PATH, {*paths, *folders}), (_LOWER_PATHS, set(paths))):
        for path in sorted(named):
            values = {"uri": f"{base}{path}", "path": path}
            yield from file.rows(tuple[str, str], query, values)


def conflicting_paths(
    named: Iterable[tuple[str, str]], paths: Iterable[str], key: PathKey
) -> Iterator[tuple[str, str]]:
    """Yield the same in one pass over all rows, for paths that are equal by their keys.

    They are the rows at these paths or at one of their folders, and at least one of those below a
    path.
    """
    wanted = {key(path) for path in paths}
    above = {folder for path in wanted for folder in _folders_of(path)}
    found: set[str] = set()
    for uri, path in named:
        known = key(path)
        if known in wanted or known in above:
            yield uri, path
        for folder in _folders_of(known):
            if folder in wanted and folder not in found:
                found.add(folder)
                yield uri, path


R = TypeVar("R", Copy, Pending, TrashRow)
_PAGE: Final = 2_000
MAX_RUNS: Final = 1_000
"""The most runs in the history; older ones are removed."""
_MAX_DOCUMENTS: Final = 100_000
_NOTHING: Final = StateTransaction()

_PUT_COPY: Final = "INSERT OR REPLACE INTO copy VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
# A blank, which is less than "!", separates the digests; the constant names the index.
_FIND_COPY: Final = (
    "SELECT * FROM copy WHERE digests >= ? AND digests < ? AND length >= 16384 AND length = ?"
    " LIMIT 1"
)
_INCOMING: Final = "(copy.length < 0 AND signature = '')"
_COUNT_AND_SIZE: Final = (
    f"SELECT count(*), ifnull(sum(max(length, 0)), 0), ifnull(sum{_INCOMING}, 0) FROM copy"  # noqa: S608 - a constant
)
_PENDING_WITH_COPY: Final = "SELECT count(*) FROM pending JOIN copy USING (uri) WHERE task = ?"
_COUNT_DOUBTFUL: Final = f"""
WITH doubtful AS (SELECT uri FROM pending
UNION SELECT uri FROM copy WHERE signature IN ('altered', 'missing', 'edited'))
SELECT count(*) FILTER (WHERE listed <> ''), count(*) FILTER (WHERE listed = '')
FROM doubtful JOIN copy USING (uri) WHERE NOT {_INCOMING}
"""  # noqa: S608 - a constant
_UNHASHED: Final = """
SELECT * FROM copy WHERE listed = '' AND uri > ? {} AND length >= 0
AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.uri = copy.uri) ORDER BY uri LIMIT ?
"""
_PUT_PENDING: Final = """
INSERT INTO pending VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (uri) DO UPDATE SET
    loc = excluded.loc, path = excluded.path, listed = excluded.listed,
    length = excluded.length, lastmod = excluded.lastmod, code = excluded.code,
    reason = excluded.reason, tries = excluded.tries, due = excluded.due,
    generation = excluded.generation, elsewhere = excluded.elsewhere,
    first = CASE WHEN task = excluded.task THEN first ELSE excluded.first END,
    first_at = CASE WHEN task = excluded.task THEN first_at ELSE excluded.first_at END,
    task = excluded.task
"""


class SqliteMirrorState(MirrorLogs):
    """State of a mirror in a SQLite file, or in memory for the path ``:memory:``."""

    def __init__(
        self, path: Path | str, *, read_only: bool = False, immutable: bool = False
    ) -> None:
        super().__init__(path, STATE_FORMAT, read_only=read_only, immutable=immutable)
        self._counted: tuple[int, int] | None = None  # rows written until then, and copies
        try:
            with self.errors:
                self._writer = None if read_only else change_log.ChangeLogWriter(self)
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """Read the whole file and check its structure."""
        with self.errors:
            verdict = self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise self.errors.damage(" ".join(str(verdict).split()))

    def copies(self) -> Iterator[Copy]:
        """Yield the copies in rising URI order; rows may be written meanwhile."""
        last = ""
        for rows in self._pages(Copy, "SELECT * FROM copy WHERE uri > ? ORDER BY uri LIMIT ?"):
            uris = [last, *map(itemgetter(0), rows)]
            if not all(map(lt, uris, uris[1:])):
                raise self.errors.damage("its copies are out of order")
            yield from rows
            last = rows[-1].uri

    def _pages(self, kind: type[R], query: str, *values: object) -> Iterator[list[R]]:
        after: object = ""
        while rows := self.rows(kind, query, (*values, after, _PAGE)):
            yield rows
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def copy(self, uri: str) -> Copy | None:
        """Return the copy of a URI, or ``None``."""
        return self.row(Copy, "SELECT * FROM copy WHERE uri = ?", (uri,))

    def copy_by_digest(self, digest: str, length: int) -> Copy | None:
        """Return a large copy with this first digest, or ``None``."""
        return self.row(Copy, _FIND_COPY, (digest, f"{digest}!", length))

    def count(self) -> int:
        """Return the number of copies."""
        written = self.connection.total_changes
        if self._writer is None or self._counted is None or self._counted[0] != written:
            self._counted = written, self.value(int, "SELECT count(*) FROM copy") or 0
        return self._counted[1]

    def count_and_size(self) -> tuple[int, int, int]:
        """Return the number of copies, their bytes, and how many more are incoming."""
        counted, bytes_, incoming = self.row(tuple[int, int, int], _COUNT_AND_SIZE) or (0, 0, 0)
        return counted - incoming, bytes_, incoming

    def count_unhashed(self) -> UnhashedCounts:
        """Count the copies that no listed hash proves."""
        counts = self.row(
            UnhashedCounts,
            "SELECT count(*), count(lastmod), (SELECT count(*) FROM unconfirmed)"
            " FROM copy WHERE listed = ''",
        )
        return counts or UnhashedCounts(0, 0, 0)

    def unhashed(self, after: str, limit: int, *, dated: bool) -> Sequence[Copy]:
        """Return the first copies after a URI that no listed hash proves, and without a task."""
        query = _UNHASHED.format("AND lastmod IS NOT NULL" if dated else "")
        return self.rows(Copy, query, (after, limit))

    def unconfirmed_since(self, uri: str) -> int | None:
        """Return when the Source said "not modified" though the date moved."""
        return self.value(Microseconds, "SELECT since FROM unconfirmed WHERE uri = ?", (uri,))

    def path_conflicts(
        self, base: str, paths: Sequence[str], key: PathKey | None
    ) -> Iterator[tuple[str, str]]:
        """Yield the URIs and paths that conflict with new paths."""
        if key is None:
            yield from find_path_conflicts(self, base, paths)
        else:
            copies = ((copy.uri, copy.path) for copy in self.copies())
            tasks = ((row.uri, row.path) for row in self.pending(PendingTask.FETCH))
            yield from conflicting_paths(chain(copies, tasks), paths, key)

    def pending(self, task: PendingTask) -> Iterator[Pending]:
        """Yield the pending rows of a task in rising URI order; safe while rows are written."""
        query = "SELECT * FROM pending WHERE task = ? AND uri > ? ORDER BY uri LIMIT ?"
        return chain.from_iterable(self._pages(Pending, query, task))

    def pending_of(self, uri: str) -> Pending | None:
        """Return the pending row of a URI, or ``None``."""
        return self.row(Pending, "SELECT * FROM pending WHERE uri = ?", (uri,))

    def pending_with_copy(self, task: PendingTask, codes: Sequence[str] = ()) -> int:
        """Count a task's rows whose URI has a copy; those of some reasons, or all."""
        counted = f"{_PENDING_WITH_COPY} AND NOT {_INCOMING}"
        if codes:
            counted += f" AND code IN ({','.join('?' * len(codes))})"
        return self.value(int, counted, (task, *codes)) or 0

    def count_doubtful(self) -> tuple[int, int]:
        """Return how many copies with a task or a changed file a listed hash proved, and not."""
        return self.row(tuple[int, int], _COUNT_DOUBTFUL) or (0, 0)

    def suspect_tasks(self) -> Iterator[Pending]:
        """Yield the pending rows of copies whose files were found altered or missing, by URI."""
        return chain.from_iterable(self._pages(Pending, _SUSPECT_TASKS))

    def pending_after(self, task: PendingTask, moment: int) -> tuple[int, int]:
        """Return how many of a task's rows, tried before, are due after a moment; and the first."""
        query = "SELECT count(*), coalesce(min(due), 0) FROM pending"
        query += " WHERE task = ? AND due > ? AND tries > 0"
        return self.row(tuple[int, Microseconds], query, (task, moment)) or (0, 0)

    def pending_counts(self) -> PendingCounts:
        """Count all pending rows, by their tasks and codes."""
        query = "SELECT task, code, count(*) FROM pending GROUP BY task, code"
        rows = self.rows(tuple[PendingTask, str, int], query)
        return PendingCounts({(task, code): count for task, code, count in rows})

    def document(self, uri: str, from_: int | None = None) -> ProcessedDocument | None:
        """Return the state of a processed document: of one ``from``, or the one read last."""
        if from_ is None:
            query = f"{change_log.DOCUMENTS} WHERE uri = ? ORDER BY read DESC LIMIT 1"
            return self.row(ProcessedDocument, query, (uri,))
        query = f"{change_log.DOCUMENTS} WHERE uri = ? AND from_ = ?"
        return self.row(ProcessedDocument, query, (uri, from_))

    def refused(self) -> Sequence[RefusedRow]:
        """Return the stored refused entries (a bounded number)."""
        return self.rows(RefusedRow, "SELECT uri, code, reason FROM refused ORDER BY uri")

    def trash(self, *, removed_before: int) -> Iterator[TrashRow]:
        """Yield the rows of the trash before a moment, by place; safe while rows are written."""
        query = "SELECT * FROM trash WHERE removed < ? AND place > ? ORDER BY place LIMIT ?"
        return chain.from_iterable(self._pages(TrashRow, query, removed_before))

    def has_trash(self) -> bool:
        """True if the trash has a row."""
        return self.value(int, "SELECT 1 FROM trash LIMIT 1") is not None

    def trash_at(self, place: str) -> TrashRow | None:
        """Return the row of one place in the trash, or ``None``."""
        return self.row(TrashRow, "SELECT * FROM trash WHERE place = ?", (place,))

    def trash_of(self, uri: str) -> TrashRow | None:
        """Return the row of the last copy of a URI in the trash, or ``None``."""
        query = "SELECT * FROM trash WHERE uri = ? ORDER BY removed DESC LIMIT 1"
        return self.row(TrashRow, query, (uri,))

    def last_run(self) -> RunRow | None:
        """Return the newest run, or ``None``."""
        query = "SELECT * FROM run ORDER BY rowid DESC LIMIT 1"  # its time may be of a wrong clock
        return self.row(RunRow, query)

    def add_proofs(self, uris: Sequence[str], moment: int) -> None:
        """Store that copies were proven."""
        rows = [(uri, moment) for uri in uris]
        with self.writing() as db:
            db.executemany("INSERT OR REPLACE INTO proof VALUES (?, ?)", rows)

    def proof_of(self, uri: str) -> int | None:
        """Return when an audit proved a copy last."""
        return self.value(Microseconds, "SELECT proven FROM proof WHERE uri = ?", (uri,))

    def confirm(self, uris: Sequence[str]) -> None:
        """Store that the Source served the bytes of copies, whatever their dates are."""
        with self.writing() as db:
            db.executemany("DELETE FROM unconfirmed WHERE uri = ?", [(uri,) for uri in uris])

    def commit(self, step: StateTransaction) -> None:
        """Store a step durably: all of it, or nothing. Rows without a change are not written."""
        notes = {key: value for key, value in (step.notes or {}).items() if self.note(key) != value}
        if not notes and replace(step, notes=None, now=0) == _NOTHING:
            return
        settled = [(uri,) for uri in step.completed]
        settled += [(copy.uri,) for copy in step.installed]
        settled += [(uri,) for uri in step.removed]
        with self.writing() as db:
            if self._writer is not None:
                self._writer.write(step)
            change_log.write_entries(self, step)
            db.executemany(_PUT_COPY, [*step.suspect, *step.installed])
            db.executemany("DELETE FROM copy WHERE uri = ?", [(u,) for u in step.removed])
            _put_unconfirmed(db, step)
            if settled and db.execute("SELECT 1 FROM pending LIMIT 1").fetchone():
                db.executemany("DELETE FROM pending WHERE uri = ?", settled)
            db.executemany(_PUT_PENDING, step.pending)
            if step.outdated:  # this reads all rows: not for each of many steps
                db.execute("DELETE FROM pending WHERE generation < ?", (step.outdated,))
            change_log.write_links(db, step)
            if step.only_documents:
                db.execute("DELETE FROM document")
            sqlite_file.write_notes(db, notes)
            db.executemany("INSERT OR REPLACE INTO trash VALUES (?,?,?,?,?,?)", step.trashed)
            db.executemany("DELETE FROM trash WHERE place = ?", [(p,) for p in step.purged])
            if step.documents:
                self._put_documents(step.documents)

    def remember(self, key: str, value: str) -> None:
        """Store one note."""
        self.commit(StateTransaction(notes={key: value}))

    def replace_refused(self, refused: Sequence[RefusedRow], now: int) -> None:
        """Replace the stored refused entries."""
        with self.writing() as db:
            db.execute("DELETE FROM refused")
            db.executemany(
                "INSERT OR REPLACE INTO refused VALUES (?,?,?,?)", [(*row, now) for row in refused]
            )

    def add_run(self, row: RunRow) -> None:
        """Store a run; only the newest 1,000 stay, and the first of those that failed in a row."""
        with self.writing() as db:
            db.execute("INSERT OR REPLACE INTO run VALUES (?,?,?,?,?,?)", row)
            (newest,) = db.execute("SELECT max(rowid) FROM run").fetchone()
            (first,) = db.execute(change_log.FIRST_FAILED).fetchone()
            old = "DELETE FROM run WHERE rowid <= ? AND rowid IS NOT ?"
            db.execute(old, (newest - MAX_RUNS, first))
        if self._writer is not None:
            self._writer.end_run()

    def correct_trash(self, now: int) -> None:
        """Date what was removed while the clock was ahead as removed now: else it would stay."""
        if self.value(int, "SELECT 1 FROM trash WHERE removed > ? LIMIT 1", (now,)):
            with self.writing() as db:
                db.execute("UPDATE trash SET removed = ?1 WHERE removed > ?1", (now,))

    def delete_old_changes(self, now: int) -> None:
        """Delete the changes that are older than 90 days."""
        last = change_log.last_old_change(self, now)
        if self.value(int, "SELECT seq FROM change WHERE seq < ? LIMIT 1", (last,)):
            with self.writing() as db:
                db.execute("DELETE FROM change WHERE seq < ?", (last,))

    def _put_documents(self, documents: Sequence[ProcessedDocument]) -> None:
        db = self.connection
        tick = self.value(int, "SELECT coalesce(max(read), 0) FROM document") or 0
        db.executemany(
            "INSERT OR REPLACE INTO document VALUES (?,?,?,?,?,?,?,?)",
            [(*seen, tick + n) for n, seen in enumerate(documents, 1)],
        )
        # A list that was reset or replaced is never read again: only the newest rows matter.
        oldest = tick + len(documents) - _MAX_DOCUMENTS
        db.execute("DELETE FROM document WHERE read <= ?", (oldest,))


def _put_unconfirmed(db: sqlite_file.Connection, step: StateTransaction) -> None:
    fetched = [(copy.uri,) for copy in step.installed] + [(uri,) for uri in step.removed]
    if fetched and db.execute("SELECT 1 FROM unconfirmed LIMIT 1").fetchone():
        db.executemany("DELETE FROM unconfirmed WHERE uri = ?", fetched)
    rows = [(uri, step.now) for uri in step.unconfirmed]
    db.executemany("INSERT OR REPLACE INTO unconfirmed VALUES (?,?)", rows)


class StateSnapshot(SqliteMirrorState):
    """A read-only state, in one transaction from its opening to its closing.

    A pull may run meanwhile and is not visible. The write-ahead log grows until this is closed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, read_only=True)
        with self.errors:
            sqlite_file.begin_snapshot(self.connection)
