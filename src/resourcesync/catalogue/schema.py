"""The schema of a catalogue's file.

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
"""

from typing import Final

from resourcesync.sqlite_file import NOTE_TABLE, Durability, SqliteFormat

BAD_ROW: Final = "catalogue-row"
"""The code of errors that one row of a catalogue is the reason of."""
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
