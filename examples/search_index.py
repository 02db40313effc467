"""Keep a search index (SQLite FTS5) equal to a mirror: python search_index.py MIRROR INDEX.db"""

import hashlib
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS page (id INTEGER PRIMARY KEY, uri TEXT UNIQUE, hash TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text);
CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY CHECK (id = 1), position TEXT);
"""
EMPTY = "BEGIN; DELETE FROM page; DELETE FROM words; DELETE FROM progress; COMMIT"


def update(mirror: str, db: sqlite3.Connection) -> int:
    """Apply what changed in a mirror since the last time; return 0, or the exit code of changes."""
    db.executescript(SCHEMA)
    position = db.execute("SELECT position FROM progress").fetchone()
    words = [sys.executable, "-m", "resourcesync", "changes", mirror, "--json", "--touched"]
    command = [*words, "--since", *(position or ["start"])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for number, line in enumerate(process.stdout or ()):
            event = json.loads(line)
            if event["type"] == "change":
                apply(Path(mirror), db, event)
            if event["type"] == "error" and not (position and event["exit"] == 7):
                sys.stderr.write(f"{event['message']}: {event['hint']}\n")
            if "position" in event:  # in one transaction with what it stands for
                db.execute("REPLACE INTO progress VALUES (1, ?)", (event["position"],))
            if number % 500 == 0:
                db.commit()
    db.commit()
    if process.returncode == 7 and position:  # changes lost: restored, or read too late
        db.executescript(EMPTY)
        return update(mirror, db)
    return process.returncode


def apply(mirror: Path, db: sqlite3.Connection, event: dict[str, str]) -> None:
    """Apply one change; applying it again changes nothing."""
    uri = event.get("known_as", event["uri"])  # stays the same after a move
    digests = event.get("hash", "")
    page = db.execute("SELECT id, hash FROM page WHERE uri = ?", (uri,)).fetchone()
    content = b"" if event["change"] == "deleted" else read(mirror / event["path"], digests)
    if content is None or (page and page[1] == digests):
        return  # a later line has what the file has now; or these bytes are indexed
    if page:
        db.execute("DELETE FROM words WHERE rowid = ?", page[:1])
        db.execute("DELETE FROM page WHERE id = ?", page[:1])
    if event["change"] != "deleted":
        row = db.execute("INSERT INTO page (uri, hash) VALUES (?, ?)", (uri, digests)).lastrowid
        text = content.decode("utf-8", "replace")  # put your parser of HTML or PDF here
        db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, text))


def read(path: Path, digests: str) -> bytes | None:
    """Return the bytes of a file if they have this digest."""
    content = path.read_bytes() if path.is_file() else b""
    return content if f"sha-256:{hashlib.sha256(content).hexdigest()}" in digests.split() else None


if __name__ == "__main__":
    with closing(sqlite3.connect(sys.argv[2])) as connection, connection:
        sys.exit(update(sys.argv[1], connection))
