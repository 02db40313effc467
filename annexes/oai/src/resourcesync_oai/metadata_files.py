"""The metadata files of a repository below the published folder.

Metadata that is withdrawn is removed.
"""

import hashlib
import os
import re
from collections.abc import Container
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.parse import quote

from resourcesync.errors import StorageError, storage_error
from resourcesync.model.timestamps import to_microseconds
from resourcesync_oai.documents.records import parse_datestamp
from resourcesync_oai.repository_state import RepositoryState, Row

FOLDER: Final = "resource"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._=+,@()-]")
_LONGEST: Final = 120
_MOST_PARTS: Final = 16
_BY_IDENTIFIER: Final = "~id"
_EMPTY: Final = "~-"


def file_name(prefix: str, suffix: str) -> str:
    """Return the name of the file of one format, such as ``oai_dc.xml``."""
    return f"{_safe(prefix)}{suffix}"


def path_of(identifier: str, name: str, namespace: str, names: Container[str]) -> str:
    """Return the path of an item's metadata in one format, as ``resource/10673/5/oai_dc.xml``.

    No two pairs of identifier and name share a path, and none is below another's.
    """
    begin = f"oai:{namespace}:"
    local = identifier.removeprefix(begin) if namespace else identifier
    parts = [_safe(part) for part in local.split("/")]
    if local in ("", identifier) or len(parts) > _MOST_PARTS:
        parts = [_BY_IDENTIFIER, _safe(identifier)]
    # Marked, so no identifier has a folder where another has a file.
    folder = "/".join(f"{part}~d" if part in names else part for part in parts)
    return f"{FOLDER}/{folder}/{name}"


def uri_of(base_uri: str, path: str) -> str:
    """Return the URI of a path."""
    return base_uri + quote(path, safe="/~=+,@()-._")


def _safe(part: str) -> str:
    """Return a unique name that every file system accepts."""
    if not part:
        return _EMPTY
    found = _UNSAFE.sub(_escaped, part)
    if found.startswith("."):
        found = f"~2E{found[1:]}"
    if found.endswith("."):
        found = f"{found[:-1]}~2E"
    if len(found) > _LONGEST:
        digest = hashlib.sha256(part.encode()).hexdigest()
        found = f"{found[: _LONGEST - 70]}~~{digest}"
    return found


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"~{octet:02X}" for octet in match[0].encode("utf-8", "surrogatepass"))


_TEMPORARY: Final = ".rs-tmp-"
_MODE: Final = 0o644
_AT_ONCE: Final = 8


class MetadataFiles:
    """The metadata files; their state is in the repository's state."""

    def __init__(self, memory: RepositoryState, out: Path) -> None:
        self._memory, self._out = memory, out

    def write(self) -> None:
        """Write the pending files, each as a whole, durably."""
        query = "SELECT path, content, lastmod FROM document WHERE content IS NOT NULL LIMIT 200"
        while rows := self._memory.rows(query):
            try:
                self._write_all(rows)
            except OSError as error:
                raise _failed(self._out, error) from error
            with self._memory.writing() as connection:
                connection.executemany(
                    "UPDATE document SET content = NULL WHERE path = ?",
                    [(path,) for path, _, _ in rows],
                )

    def mark_missing(self) -> None:
        """Check that the files are there as they were written; mark others to be rewritten.

        Their content comes from the next full harvest.
        """
        query = """
            SELECT path, length FROM document
            WHERE path > ? AND is_wanted AND content IS NULL AND sha256 NOT LIKE '?%'
            ORDER BY path LIMIT 500
        """
        last = ""
        while rows := self._memory.rows(query, last):
            last = rows[-1][0]
            bad = [(path,) for path, length in rows if not self._exists(path, length)]
            if bad:
                with self._memory.writing() as connection:
                    connection.executemany(
                        "UPDATE document SET sha256 = '?' || sha256 WHERE path = ?", bad
                    )

    def remove(self, base_uri: str, recorded: int) -> None:
        """Remove the files whose withdrawal was published up to number ``recorded``."""
        rows = self._memory.rows("SELECT path FROM document WHERE NOT is_wanted ORDER BY path")
        for (path,) in rows:
            told = self._memory.rows("SELECT seq FROM told WHERE uri = ?", uri_of(base_uri, path))
            if told and told[0][0] > recorded:
                continue
            self._remove(path)
            with self._memory.writing() as connection:
                connection.execute("DELETE FROM document WHERE path = ?", (path,))

    def _exists(self, path: str, length: int) -> bool:
        try:
            return (self._out / path).stat(follow_symlinks=False).st_size == length
        except OSError:
            return False

    def _write_all(self, rows: list[Row]) -> None:
        """Write some files: first all bytes, then all names."""
        held: list[tuple[int, Path]] = []
        folders: set[Path] = set()
        try:
            for path, content, lastmod in rows:
                place = self._out / path
                place.parent.mkdir(parents=True, exist_ok=True)
                folders.update(self._out / folder for folder in Path(path).parents)
                held.append((_write_file(_temporary_path(place), content, lastmod), place))
            # Several at a time: the disk then commits its journal once for all of them.
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(os.fsync, [descriptor for descriptor, _ in held]))
                for _, place in held:
                    _temporary_path(place).replace(place)
                list(pool.map(_sync, folders))
        finally:
            for descriptor, _ in held:
                os.close(descriptor)

    def _remove(self, path: str) -> None:
        place = self._out / path
        try:
            place.unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise _failed(place, error) from error
        top = self._out / FOLDER
        for folder in place.parents:
            if folder == top:
                return
            try:
                folder.rmdir()
            except OSError:  # the folder has other files, or is gone
                return


def _temporary_path(place: Path) -> Path:
    digest = hashlib.sha256(place.name.encode()).hexdigest()[:32]
    return place.with_name(f"{_TEMPORARY}{digest}")


def _write_file(place: Path, content: bytes, lastmod: str) -> int:
    """Write a file with its published time, which web servers send too."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    descriptor = os.open(place, flags, _MODE)
    try:
        os.fchmod(descriptor, _MODE)  # whatever the umask: a web server must read it
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        told = parse_datestamp(lastmod)
        if told is not None:
            os.utime(descriptor, ns=(to_microseconds(told) * 1_000,) * 2)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(place: Path, error: OSError) -> StorageError:
    name = error.filename if isinstance(error.filename, str) else str(place)
    return storage_error(error, f"writing {name}", kept="the files that were written before")
