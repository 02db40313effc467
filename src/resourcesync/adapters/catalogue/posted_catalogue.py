"""A catalogue to which other programs report their resources; no folder is scanned."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from resourcesync.adapters.catalogue.database import CATALOGUE_FORMAT
from resourcesync.adapters.catalogue.rows import from_row, to_row
from resourcesync.adapters.catalogue.sqlite_catalogue import (
    FORGOTTEN_NOTE,
    FileRecording,
    FileSnapshot,
    find_resource,
)
from resourcesync.errors import ChangesLostError, ConfigurationError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.catalogue import MIN_ALLOWED_LOSS, LossLimit, Posted
from resourcesync.sqlite_file import SqliteFile, open_snapshot, write_notes

_BATCH: Final = 2_000
_ACCOUNT: Final = """
CREATE TEMP TABLE account (
    uri TEXT NOT NULL, lastmod_us INTEGER, length INTEGER, hash TEXT NOT NULL,
    media_type TEXT NOT NULL, more TEXT NOT NULL
)
"""
_DUPLICATE: Final = "SELECT uri FROM account GROUP BY uri HAVING count(*) > 1 ORDER BY uri LIMIT 1"
_ANY: Final = "SELECT 1 FROM account LIMIT 1"
_FILL: Final = """
INSERT INTO resource SELECT uri, lastmod_us, length, hash, media_type, more, '' FROM account
ORDER BY uri
"""
_DIFFERENCES: Final = """
CREATE TEMP TABLE difference AS
SELECT CASE
        WHEN known.uri IS NULL THEN 'created'
        WHEN account.hash <> known.hash OR account.length IS NOT known.length THEN 'updated'
        WHEN account.hash = '' AND account.lastmod_us IS NOT known.lastmod_us THEN 'updated'
        -- A mirror learns of other links or another type by the Change List alone (ADR 0011).
        WHEN account.media_type <> known.media_type OR account.more <> known.more THEN 'updated'
        ELSE 'touched'
    END AS kind, account.*
FROM account LEFT JOIN main.resource AS known USING (uri)
WHERE known.uri IS NULL OR account.lastmod_us IS NOT known.lastmod_us
    OR account.length IS NOT known.length OR account.hash <> known.hash
    OR account.media_type <> known.media_type OR account.more <> known.more
"""
_GONE: Final = """
INSERT INTO difference (kind, uri, hash, media_type, more)
SELECT 'deleted', uri, '', '', '' FROM main.resource
WHERE uri NOT IN (SELECT uri FROM account)
"""


class PostedCatalogue:
    """A catalogue that accepts changes from other programs.

    Several programs may write at a time, also during a publish: each transaction waits for the
    one before it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = SqliteFile(path, CATALOGUE_FORMAT)
        self._connection = self._file.connection

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def note(self, key: str) -> str | None:
        """Return a note of the publisher, or ``None``."""
        return self._file.note(key)

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Store notes of the publisher, and nothing else."""
        self._file.write_notes(notes)

    def count(self) -> int:
        """Return the number of resources."""
        found: int = self._connection.execute("SELECT count(*) FROM main.resource").fetchone()[0]
        return found

    def post(
        self,
        changes: Iterable[Change],
        now: datetime,
        *,
        notes: Mapping[str, str] | None = None,
        keeps_times: bool = False,
        loss: LossLimit | None = None,
    ) -> Posted:
        """Record changes of some resources: the rows and the changes, all or nothing.

        A repeated report is recorded again, but never wrongly: a creation of a known resource is an
        update, an update of an unknown one a creation, and an unknown one cannot be deleted. The
        catalogue gives each change its time.
        """
        counts: Counter[str] = Counter()
        with self._recording(now, notes) as recording:
            recent: dict[str, bool] = {}
            for change in changes:
                uri = change.uri
                is_known = recent[uri] if uri in recent else self._has_resource(uri)
                if keeps_times and change.time is not None:
                    recording.dated(change.time)
                if change.kind is not ChangeKind.DELETED:
                    kind = ChangeKind.UPDATED if is_known else ChangeKind.CREATED
                    record = recording.updated if is_known else recording.created
                    record(change.resource, "")
                elif is_known:
                    kind = ChangeKind.DELETED
                    recording.deleted(change.resource)
                else:
                    continue
                recent[uri] = kind is not ChangeKind.DELETED
                counts[kind.value] += 1
                if len(recent) >= _BATCH:
                    recording.flush()
                    recent.clear()
            gone = counts["deleted"] - counts["created"]
            if loss is not None and gone > 0 and loss.gone + gone > loss.limit:
                raise _many_gone(loss.gone + gone, loss.resources)
        return Posted(**counts)

    def fill(
        self,
        resources: Iterable[Resource],
        now: datetime,
        *,
        is_all: bool = True,
        notes: Mapping[str, str] | None = None,
        most_gone: float = 1.0,
        allow_empty: bool = False,
    ) -> Posted:
        """Record the resources as they are, all or nothing; order does not matter.

        The first time no changes are logged: the Resource List will have all resources.
        """
        with self._recording(now, notes) as recording, self._temporary_table(resources):
            twice = self._connection.execute(_DUPLICATE).fetchone()
            if twice is not None:
                raise ConfigurationError(
                    f"{twice[0]} occurs twice",
                    evidence=(("kept", "what was recorded before"),),
                    hint="give each resource once",
                )
            if recording.is_first:
                return Posted(created=self._connection.execute(_FILL).rowcount)
            self._connection.execute(_DIFFERENCES)
            if is_all:
                gone = self._connection.execute(_GONE).rowcount
                if gone and not (allow_empty or self._connection.execute(_ANY).fetchone()):
                    raise _many_gone(gone, self.count())
                self._check_gone(gone, most_gone)
            return self._record_differences(recording)

    def resources(self, start: str = "", end: str | None = None) -> Iterator[Resource]:
        """Yield the resources in rising URI order, those from ``start`` up to before ``end``."""
        with self._snapshot() as snapshot:
            if snapshot is not None:
                yield from snapshot.resources(start, end)

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(number, change)`` in order of time, those after number ``after``."""
        forgotten = self._file.read_note(FORGOTTEN_NOTE, int) or 0
        if 0 < after < forgotten:
            raise ChangesLostError(
                f"the changes up to number {forgotten} are deleted from the log",
                evidence=(("asked", f"after number {after}"),),
                hint="read all resources again, then go on from the last change there is",
            )
        with self._snapshot() as snapshot:
            if snapshot is not None:
                yield from snapshot.changes(after)

    def find(self, uri: str) -> Resource | None:
        """Return the recorded resource; ``None`` if there is none."""
        return find_resource(self._connection, uri)

    def _has_resource(self, uri: str) -> bool:
        query = "SELECT 1 FROM resource WHERE uri = ?"
        return self._connection.execute(query, (uri,)).fetchone() is not None

    @contextmanager
    def _snapshot(self) -> Iterator[FileSnapshot | None]:
        """Open a snapshot; ``None`` if nothing was recorded yet."""
        with open_snapshot(self._path, CATALOGUE_FORMAT) as connection:
            is_begun = connection.execute("SELECT 1 FROM moment").fetchone()
            yield None if is_begun is None else FileSnapshot(connection)

    def _check_gone(self, gone: int, most: float) -> None:
        """Refuse that most resources are deleted at once: the input may be incomplete."""
        if gone <= MIN_ALLOWED_LOSS:
            return
        known = self.count()
        if gone <= known * most:
            return
        raise _many_gone(gone, known)

    @contextmanager
    def _recording(
        self, now: datetime, notes: Mapping[str, str] | None = None
    ) -> Iterator[FileRecording]:
        with self._file.writing() as connection:
            recording = FileRecording(connection, to_microseconds(now))
            yield recording
            recording.finish()
            if notes:
                write_notes(connection, notes)

    @contextmanager
    def _temporary_table(self, resources: Iterable[Resource]) -> Iterator[None]:
        """Store the resources in a temporary table, which is on disk when it is large."""
        self._connection.execute(_ACCOUNT)
        self._connection.executemany(
            "INSERT INTO account VALUES (?,?,?,?,?,?)", map(to_row, resources)
        )
        self._connection.execute("CREATE INDEX temp.account_uri ON account (uri)")
        yield  # an error rolls back, with this table
        self._connection.execute("DROP TABLE IF EXISTS temp.difference")
        self._connection.execute("DROP TABLE temp.account")

    def _record_differences(self, recording: FileRecording) -> Posted:
        counts: Counter[str] = Counter()
        records = {
            "created": recording.created,
            "updated": recording.updated,
            "touched": recording.touched,
        }
        for kind, *row in self._connection.execute("SELECT * FROM difference ORDER BY uri"):
            resource = from_row(tuple(row))
            if kind == "deleted":
                recording.deleted(resource)
            else:
                records[kind](resource, "")
            counts[kind] += 1
        return Posted(**counts)


def _many_gone(gone: int, known: int) -> ConfigurationError:
    return ConfigurationError(
        f"{gone:,} of {known:,} resources would be gone",
        evidence=(("kept", "what was recorded before"),),
        hint="check that the input is complete; if this is intended, allow it: --allow-empty",
        code="many-gone",
    )
