"""The tables of a mirror's state, version by version, and lookups of clashing paths.

A file of an older version is migrated when it is opened for writing: each script leads from one
``PRAGMA user_version`` to the next. A released script is never changed.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from resourcesync.ports.mirror import folders_of
from resourcesync.sqlite_file import NOTE_TABLE, Connection, Durability, SqliteFormat

APPLICATION_ID: Final = 0x52534D31  # "RSM1"

_FIRST: Final = f"""
{NOTE_TABLE}
CREATE TABLE copy (
    uri TEXT PRIMARY KEY, path TEXT NOT NULL, length INTEGER NOT NULL, digests TEXT NOT NULL,
    listed TEXT NOT NULL, lastmod INTEGER, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
    signature TEXT NOT NULL, fixity TEXT NOT NULL, installed INTEGER NOT NULL,
    evidence INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE pending (
    uri TEXT PRIMARY KEY, loc TEXT NOT NULL, path TEXT NOT NULL, task TEXT NOT NULL,
    listed TEXT NOT NULL, length INTEGER, lastmod INTEGER, code TEXT NOT NULL,
    reason TEXT NOT NULL, tries INTEGER NOT NULL, due INTEGER NOT NULL, first INTEGER NOT NULL,
    first_at INTEGER NOT NULL, generation INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE document (
    uri TEXT NOT NULL, from_ INTEGER NOT NULL, until INTEGER, entries INTEGER NOT NULL,
    prefix TEXT NOT NULL, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
    read INTEGER NOT NULL, PRIMARY KEY (uri, from_)
) WITHOUT ROWID;
CREATE TABLE refused (
    uri TEXT PRIMARY KEY, code TEXT NOT NULL, reason TEXT NOT NULL, seen INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE trash (
    place TEXT PRIMARY KEY, uri TEXT NOT NULL, path TEXT NOT NULL, removed INTEGER NOT NULL,
    reason TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE run (
    run TEXT PRIMARY KEY, started INTEGER NOT NULL, ended INTEGER NOT NULL, mode TEXT NOT NULL,
    outcome TEXT NOT NULL, counts TEXT NOT NULL
);
"""

_CHANGES: Final = """
CREATE TABLE change (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, count INTEGER NOT NULL, changes TEXT NOT NULL
);
CREATE TABLE proof (uri TEXT PRIMARY KEY, proven INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO note SELECT 'in-doubt', json_group_object(uri, json_array(0, ''))
FROM copy WHERE length < 0;
"""

# Small copies, which are most, cost nothing here.
_PLACES: Final = """
ALTER TABLE pending ADD COLUMN elsewhere TEXT NOT NULL DEFAULT '';
CREATE INDEX copy_digests ON copy (digests) WHERE length >= 16384;
"""

# Links: copies that exist only because listed entries link to them. Patches: the last of each.
_LINKS: Final = """
CREATE TABLE link (
    uri TEXT NOT NULL, via TEXT NOT NULL, generation INTEGER NOT NULL, PRIMARY KEY (uri, via)
) WITHOUT ROWID;
CREATE INDEX link_via ON link (via);
CREATE TABLE patched (
    uri TEXT PRIMARY KEY, time INTEGER NOT NULL, reason TEXT NOT NULL
) WITHOUT ROWID;
"""

# The Source's dates of changes, and an index for the last runs.
_DATES: Final = """
ALTER TABLE change ADD COLUMN dated TEXT NOT NULL DEFAULT '[]';
CREATE INDEX run_ended ON run (ended);
"""

# The links of listed entries, for programs that republish the copies.
_ENTRIES: Final = """
CREATE TABLE entry (
    uri TEXT PRIMARY KEY, links TEXT NOT NULL, changed INTEGER NOT NULL,
    generation INTEGER NOT NULL
) WITHOUT ROWID;
"""

# Older versions stored dates and validators that a later change may share: see
# ``model.timestamps.end_of_lastmod`` and ``ports.fetcher.validators_of``.
_PROVING: Final = """
UPDATE copy SET lastmod = NULL WHERE listed = '' AND lastmod >= 0 AND installed < lastmod +
    CASE WHEN lastmod % 86400000000 = 0 THEN 129600000000
        WHEN lastmod % 60000000 = 0 THEN 60000000 ELSE 1000000 END;
INSERT OR REPLACE INTO note SELECT 'unsure', '1'
WHERE EXISTS (SELECT * FROM copy WHERE listed = '' AND lastmod IS NULL);
UPDATE document SET etag = '', last_modified = '';
"""

# Copies whose path is not the end of their URI, in most mirrors few, can be found by it; the
# condition names the index.
PATH_NOT_IN_URI: Final = "substr(uri, -length(path)) <> path"
_PATHS: Final = f"""
CREATE INDEX IF NOT EXISTS copy_path ON copy (path) WHERE {PATH_NOT_IN_URI};
CREATE INDEX IF NOT EXISTS pending_path ON pending (path) WHERE {PATH_NOT_IN_URI};
"""

# Copies that no listed hash proves, which in many mirrors are none, for the walk of the rechecks;
# and those of which the Source said "not modified" though their date moved.
_RECHECKS: Final = """
CREATE INDEX IF NOT EXISTS copy_unhashed ON copy (uri, lastmod) WHERE listed = '';
CREATE TABLE IF NOT EXISTS unconfirmed (uri TEXT PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;
"""

# The content of a file in the trash when it was moved there: only that is restored.
_TRASH: Final = "ALTER TABLE trash ADD COLUMN digests TEXT NOT NULL DEFAULT '';"

MIGRATIONS: Final = (
    *(_FIRST, _CHANGES, _PLACES, _LINKS, _DATES, _ENTRIES, _PROVING),
    _TRASH,
    _PATHS,
    _RECHECKS,
)
LINKS_SINCE: Final = MIGRATIONS.index(_LINKS) + 1
DATES_SINCE: Final = MIGRATIONS.index(_DATES) + 1
ENTRIES_SINCE: Final = MIGRATIONS.index(_ENTRIES) + 1


STATE_FORMAT: Final = SqliteFormat(
    noun="the state of a mirror",
    application_id=APPLICATION_ID,
    migrations=MIGRATIONS,
    durability=Durability.SHARED,
    is_private=False,
    retained="all copies, and the last complete step",
    repair="move {path} away and pull again: good copies are kept, not fetched",
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


def find_path_conflicts(
    db: Connection, base: str, paths: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the URIs and paths of rows that conflict with new paths; see ``path_conflicts``."""
    folders = {folder for path in paths for folder in folders_of(path)}
    for query, named in ((_SAME_PATH, {*paths, *folders}), (_LOWER_PATHS, set(paths))):
        for path in sorted(named):
            yield from db.execute(query, {"uri": f"{base}{path}", "path": path}).fetchall()
