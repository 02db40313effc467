{note_table}
CREATE TABLE copy (
    uri TEXT PRIMARY KEY, path TEXT NOT NULL, length INTEGER NOT NULL, digests TEXT NOT NULL,
    listed TEXT NOT NULL, lastmod INTEGER, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
    signature TEXT NOT NULL, fixity TEXT NOT NULL, installed INTEGER NOT NULL,
    evidence INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX copy_digests ON copy (digests) WHERE length >= 16384;
CREATE INDEX copy_path ON copy (path) WHERE {path_not_in_uri};
CREATE INDEX copy_suspect ON copy (uri) WHERE signature IN ('altered', 'missing');
CREATE INDEX copy_unhashed ON copy (uri, lastmod) WHERE listed = '';
CREATE TABLE unconfirmed (uri TEXT PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE proof (uri TEXT PRIMARY KEY, proven INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pending (
    uri TEXT PRIMARY KEY, loc TEXT NOT NULL, path TEXT NOT NULL, task TEXT NOT NULL,
    listed TEXT NOT NULL, length INTEGER, lastmod INTEGER, code TEXT NOT NULL,
    reason TEXT NOT NULL, tries INTEGER NOT NULL, due INTEGER NOT NULL, first INTEGER NOT NULL,
    first_at INTEGER NOT NULL, generation INTEGER NOT NULL, elsewhere TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX pending_path ON pending (path) WHERE {path_not_in_uri};
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
CREATE TABLE change (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, count INTEGER NOT NULL, changes TEXT NOT NULL
);
