CREATE TABLE resource (
    uri TEXT PRIMARY KEY,
    lastmod_us INTEGER, length INTEGER, hash TEXT NOT NULL,
    media_type TEXT NOT NULL, more TEXT NOT NULL, fingerprint TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, change TEXT NOT NULL,
    datetime_us INTEGER NOT NULL UNIQUE, uri TEXT NOT NULL,
    lastmod_us INTEGER, length INTEGER, hash TEXT NOT NULL,
    media_type TEXT NOT NULL, more TEXT NOT NULL
);
CREATE TABLE moment (one INTEGER PRIMARY KEY CHECK (one = 1), latest_us INTEGER NOT NULL);
{note_table}
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
WHEN NEW.datetime_us <= (SELECT max(datetime_us) FROM change WHERE datetime_us {all_times}) BEGIN
    SELECT RAISE(ABORT, 'each change is later than all before it');
END;
CREATE VIEW post AS
    SELECT change, uri, lastmod_us, length, hash, media_type, more FROM change WHERE 0;
CREATE TRIGGER post_one INSTEAD OF INSERT ON post BEGIN
    SELECT RAISE(ABORT, 'change is created, updated or deleted') WHERE NEW.change IS NULL
        OR NEW.change NOT IN ('created', 'updated', 'deleted');
    SELECT RAISE(ABORT, 'a value cannot be published') WHERE NOT ifnull(
    typeof(NEW.uri) = 'text'
    AND (NEW.uri LIKE 'http://_%' OR NEW.uri LIKE 'https://_%')
    AND NEW.uri NOT GLOB '*[' || char(1) || '- ' || char(127) || '-' || char(159) || ']*'
    AND (NEW.lastmod_us IS NULL OR typeof(NEW.lastmod_us) = 'integer'
        AND NEW.lastmod_us {all_times})
    AND (NEW.length IS NULL OR typeof(NEW.length) = 'integer' AND NEW.length >= 0)
    AND (ifnull(NEW.hash, '') = '' OR typeof(NEW.hash) = 'text' AND NEW.hash LIKE '%:%')
    AND typeof(ifnull(NEW.media_type, '')) = 'text' AND typeof(ifnull(NEW.more, '')) = 'text'
, 0);
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
