"""The tables of a mirror's state, and lookups of clashing paths."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from resourcesync.mirror_state.rows import PathKey
from resourcesync.sqlite_file import NOTE_TABLE, Durability, SqliteFile, SqliteFormat

APPLICATION_ID: Final = 0x52534D31  # "RSM1"

PATH_NOT_IN_URI: Final = "substr(uri, -length(path)) <> path"
"""The condition of the indexes of paths: only of a few rows is the path not the end of the URI."""
SCHEMA: Final = f"""
{NOTE_TABLE}
CREATE TABLE copy (
    uri TEXT PRIMARY KEY, path TEXT NOT NULL, length INTEGER NOT NULL, digests TEXT NOT NULL,
    listed TEXT NOT NULL, lastmod INTEGER, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
    signature TEXT NOT NULL, fixity TEXT NOT NULL, installed INTEGER NOT NULL,
    evidence INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX copy_digests ON copy (digests) WHERE length >= 16384;
CREATE INDEX copy_path ON copy (path) WHERE {PATH_NOT_IN_URI};
CREATE INDEX copy_unhashed ON copy (uri, lastmod) WHERE listed = '';
CREATE TABLE unconfirmed (uri TEXT PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE proof (uri TEXT PRIMARY KEY, proven INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pending (
    uri TEXT PRIMARY KEY, loc TEXT NOT NULL, path TEXT NOT NULL, task TEXT NOT NULL,
    listed TEXT NOT NULL, length INTEGER, lastmod INTEGER, code TEXT NOT NULL,
    reason TEXT NOT NULL, tries INTEGER NOT NULL, due INTEGER NOT NULL, first INTEGER NOT NULL,
    first_at INTEGER NOT NULL, generation INTEGER NOT NULL, elsewhere TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX pending_path ON pending (path) WHERE {PATH_NOT_IN_URI};
CREATE TABLE document (
    uri TEXT NOT NULL, from_ INTEGER NOT NULL, until INTEGER, entries INTEGER NOT NULL,
    prefix TEXT NOT NULL, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
    read INTEGER NOT NULL, PRIMARY KEY (uri, from_)
) WITHOUT ROWID;
CREATE TABLE refused (
    uri TEXT PRIMARY KEY, code TEXT NOT NULL, reason TEXT NOT NULL, seen INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE link (
    uri TEXT NOT NULL, via TEXT NOT NULL, generation INTEGER NOT NULL, PRIMARY KEY (uri, via)
) WITHOUT ROWID;
CREATE INDEX link_via ON link (via);
CREATE TABLE patched (
    uri TEXT PRIMARY KEY, time INTEGER NOT NULL, reason TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE entry (
    uri TEXT PRIMARY KEY, links TEXT NOT NULL, changed INTEGER NOT NULL,
    generation INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE trash (
    place TEXT PRIMARY KEY, uri TEXT NOT NULL, path TEXT NOT NULL, removed INTEGER NOT NULL,
    reason TEXT NOT NULL, digests TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE run (
    run TEXT PRIMARY KEY, started INTEGER NOT NULL, ended INTEGER NOT NULL, mode TEXT NOT NULL,
    outcome TEXT NOT NULL, counts TEXT NOT NULL
);
CREATE INDEX run_ended ON run (ended);
CREATE TABLE change (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, count INTEGER NOT NULL, changes TEXT NOT NULL
);
"""
"""All tables. Indexes of copies have conditions: they cost nothing in most mirrors."""

STATE_FORMAT: Final = SqliteFormat(
    noun="the state of a mirror",
    application_id=APPLICATION_ID,
    schema=SCHEMA,
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


def _folders_of(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, the outermost first."""
    at = path.find("/")
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)


def find_path_conflicts(
    file: SqliteFile, base: str, paths: Sequence[str]
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
