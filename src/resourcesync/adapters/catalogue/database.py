"""The catalogue's file: schema, opening, publish lock, and errors.

Tables, for those who read it with other tools (open it read-only):

- ``resource``: what is published, one row for each URI.
- ``change``: the changes, in order; ``datetime_us`` strictly rises with ``seq``.
- ``moment``: one row once something was recorded: the latest time that was assigned.
- ``note``: the publisher's bookkeeping.
- ``edit``: the URIs of resources that were written or removed since the last Resource List.
- ``post``: a view for other programs to report changes, one row for each change.
- ``version``: the versions of each resource whose bytes are stored; ``former_us`` is when another
  version, or a deletion, followed.
- ``content``: the contents of the version store, and how many rows of ``version`` need each.

Times are microseconds since 1970-01-01T00:00:00Z; ``hash`` is as in ``rs:md/@hash``.

The publish lock is advisory: one publisher at a time; the system releases it after a crash.
"""

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from resourcesync.errors import LockedError, StateError, StorageError
from resourcesync.model.timestamps import format_w3c
from resourcesync.own_files import LOCK, open_path
from resourcesync.ports import Clock
from resourcesync.ports.catalogue import BAD_ROW
from resourcesync.sqlite_file import NOTE_TABLE, Durability, SqliteFormat, note_of, open_snapshot

_APPLICATION_ID: Final = 0x52534331  # "RSC1"
_COLUMNS: Final = """
    lastmod_us INTEGER, length INTEGER, hash TEXT NOT NULL,
    media_type TEXT NOT NULL, more TEXT NOT NULL
"""
ALL_TIMES: Final = "BETWEEN -62135596800000000 AND 253402300799999999"
"""The condition of SQL for a number that is a time."""
_SOUND: Final = f"""
    typeof(NEW.uri) = 'text'
    AND (NEW.uri LIKE 'http://_%' OR NEW.uri LIKE 'https://_%')
    AND NEW.uri NOT GLOB '*[' || char(1) || '- ' || char(127) || '-' || char(159) || ']*'
    AND (NEW.lastmod_us IS NULL OR typeof(NEW.lastmod_us) = 'integer'
        AND NEW.lastmod_us {ALL_TIMES})
    AND (NEW.length IS NULL OR typeof(NEW.length) = 'integer' AND NEW.length >= 0)
    AND (ifnull(NEW.hash, '') = '' OR typeof(NEW.hash) = 'text' AND NEW.hash LIKE '%:%')
    AND typeof(ifnull(NEW.media_type, '')) = 'text' AND typeof(ifnull(NEW.more, '')) = 'text'
"""
SCHEMA: Final = f"""
CREATE TABLE resource (
    uri TEXT PRIMARY KEY, {_COLUMNS}, fingerprint TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, change TEXT NOT NULL,
    datetime_us INTEGER NOT NULL UNIQUE, uri TEXT NOT NULL, {_COLUMNS}
);
CREATE TABLE moment (one INTEGER PRIMARY KEY CHECK (one = 1), latest_us INTEGER NOT NULL);
{NOTE_TABLE}
CREATE TABLE edit (number INTEGER PRIMARY KEY AUTOINCREMENT, uri TEXT NOT NULL UNIQUE);
CREATE TRIGGER resource_set AFTER UPDATE ON resource BEGIN
    DELETE FROM edit WHERE uri IN (OLD.uri, NEW.uri);
    INSERT INTO edit (uri) VALUES (NEW.uri);
    INSERT INTO edit (uri) SELECT OLD.uri WHERE OLD.uri <> NEW.uri;
END;
CREATE TRIGGER resource_gone AFTER DELETE ON resource BEGIN
    DELETE FROM edit WHERE uri = OLD.uri;
    INSERT INTO edit (uri) VALUES (OLD.uri);
END;
CREATE TRIGGER change_rises BEFORE INSERT ON change
WHEN NEW.datetime_us <= (SELECT max(datetime_us) FROM change WHERE datetime_us {ALL_TIMES}) BEGIN
    SELECT RAISE(ABORT, 'each change is later than all before it');
END;
CREATE VIEW post AS
    SELECT change, uri, lastmod_us, length, hash, media_type, more FROM change WHERE 0;
CREATE TRIGGER post_one INSTEAD OF INSERT ON post BEGIN
    SELECT RAISE(ABORT, 'change is created, updated or deleted') WHERE NEW.change IS NULL
        OR NEW.change NOT IN ('created', 'updated', 'deleted');
    SELECT RAISE(ABORT, 'a value cannot be published') WHERE NOT ifnull({_SOUND}, 0);
    INSERT OR IGNORE INTO moment VALUES (1, 0);
    UPDATE moment SET latest_us = max(
        latest_us + 1, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000
    );
    INSERT INTO change (change, datetime_us, uri, lastmod_us, length, hash, media_type, more)
        SELECT iif(known.uri IS NULL, 'created', 'updated'), latest_us, NEW.uri,
            NEW.lastmod_us, NEW.length, ifnull(NEW.hash, ''), ifnull(NEW.media_type, ''),
            ifnull(NEW.more, '')
        FROM moment LEFT JOIN resource AS known ON known.uri = NEW.uri
        WHERE NEW.change <> 'deleted';
    INSERT INTO change (change, datetime_us, uri, hash, media_type, more)
        SELECT 'deleted', latest_us, known.uri, '', '', ''
        FROM moment JOIN resource AS known ON known.uri = NEW.uri
        WHERE NEW.change = 'deleted';
    DELETE FROM resource WHERE uri = NEW.uri;
    INSERT INTO resource
        SELECT NEW.uri, NEW.lastmod_us, NEW.length, ifnull(NEW.hash, ''),
            ifnull(NEW.media_type, ''), ifnull(NEW.more, ''), ''
        WHERE NEW.change <> 'deleted';
    DELETE FROM edit WHERE uri = NEW.uri;
    INSERT INTO edit (uri) VALUES (NEW.uri);
END;
CREATE TABLE version (
    uri TEXT NOT NULL, moment_us INTEGER NOT NULL, since_us INTEGER NOT NULL,
    length INTEGER NOT NULL, sha256 TEXT NOT NULL, media_type TEXT NOT NULL,
    patch_sha256 TEXT NOT NULL, patch_length INTEGER NOT NULL, patch_type TEXT NOT NULL,
    former_us INTEGER,
    PRIMARY KEY (uri, moment_us)
) WITHOUT ROWID;
CREATE INDEX version_former ON version (former_us, moment_us) WHERE former_us IS NOT NULL;
CREATE TABLE content (
    sha256 TEXT PRIMARY KEY, length INTEGER NOT NULL, uses INTEGER NOT NULL
) WITHOUT ROWID;
"""  # noqa: S608 - made of our own text alone
"""All tables, views and triggers."""

CATALOGUE_FORMAT: Final = SqliteFormat(
    noun="a catalogue of this package",
    application_id=_APPLICATION_ID,
    schema=SCHEMA,
    durability=Durability.SHARED,
    any_thread=True,
    retained="what was recorded and published before",
    repair="move {path} away, then begin anew with the address (step initialise)",
    bad_row=BAD_ROW,
)


_MOST: Final = 1_024


class PublishLock:
    """A lock from construction to ``close``, or to the end of the process in any way."""

    def __init__(self, path: Path, clock: Clock) -> None:
        try:
            self._descriptor = open_path(path, LOCK)
        except OSError as error:
            raise StorageError(f"cannot make the lock {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            content = os.pread(self._descriptor, _MOST, 0)
            os.close(self._descriptor)
            raise LockedError(
                f"another run is publishing this tree: {_describe(content)}",
                evidence=(("lock", str(path)), ("kept", "nothing was changed")),
                hint="wait for it to end",
            ) from error
        holder = {"pid": os.getpid(), "host": os.uname().nodename, "since": format_w3c(clock.now())}
        with suppress(OSError):  # on a full disk the lock holds without its note
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)

    def close(self) -> None:
        """Release the lock, also when a signal arrives just now."""
        try:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
        finally:
            os.close(self._descriptor)


def _describe(content: bytes) -> str:
    try:
        known = json.loads(content)
        return f"process {known['pid']} on {known['host']} since {known['since']}"
    except (ValueError, KeyError, TypeError):
        return "it did not say which"


def read_note(path: Path, key: str) -> str | None:
    """Return a note of the catalogue in a file; ``None`` when there is no such note, or no file."""
    if not path.exists():
        return None
    if not os.access(path, os.R_OK):
        raise StorageError(f"cannot read {path}", hint="run as the user who publishes")
    try:
        return _read_note(path, key)
    except StateError:
        raise
    except StorageError:
        if path.with_name(path.name + "-wal").exists():
            raise
    # A place that is not writable: no process changes the file either.
    return _read_note(path, key, immutable=True)


def _read_note(path: Path, key: str, *, immutable: bool = False) -> str | None:
    with open_snapshot(path, CATALOGUE_FORMAT, immutable=immutable) as connection:
        return note_of(connection, key)
