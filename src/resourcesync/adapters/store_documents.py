"""Documents of a Source in a store."""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Final, cast

from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest, digest_chunks
from resourcesync.ports.documents import TOP_LEVEL_PREFIX, split_name
from resourcesync.ports.stores import ObjectContent, Store, guard_store, read_blocks

_BLOCK: Final = 1 << 20
_KEPT: Final = "what was published before"
_IN_MEMORY: Final = 8 << 20
_TYPES: Final = {
    "": "application/xml; charset=utf-8",
    "xml": "application/xml; charset=utf-8",
    "zip": "application/zip",
    "html": "text/html; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "json": "application/json",
}
_PLAIN: Final = "application/octet-stream"
_CHANGING: Final = ("Cache-Control", "no-cache")
"""Documents change at their URI: caches must revalidate them."""
_FOLDERS: Final = (".well-known", "resourcesync")
"""The prefixes of document names."""


class StoredDocuments:
    """Documents below some prefixes of a store, for web clients.

    A document is written to a local file, checked, put as a whole with its digest, and read back.
    One process writes at a time: it has locked the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        """Put a whole document in place, durably and at once; return its bytes."""
        split_name(name, _FOLDERS)
        with _spooled() as spool:
            hasher, length = hashlib.sha256(), 0
            for chunk in chunks:
                hasher.update(chunk)
                length += spool.write(chunk)
            if check is not None:
                spool.seek(0)
                check(spool)
            digest = Digest("sha-256", hasher.hexdigest())
            headers = (("Content-Type", _type_of(name)), _CHANGING)
            self._put(name, ObjectContent(spool, length, (digest,), headers=headers))
            if check is not None:
                self._read_back(name, digest)
        return length

    def _put(self, name: str, content: ObjectContent) -> None:
        with guard_store(f"putting {name}", _KEPT):
            there = self._store.stat(name)
            content.stream.seek(0)
            version = self._store.put(name, content, None if there is None else there.version)
        if version is None:
            raise StorageError(
                f"another process writes {name}",
                evidence=(("kept", "what they wrote"),),
                hint="make sure that only one machine publishes there, then try again",
            )

    def _read_back(self, name: str, digest: Digest) -> None:
        with guard_store(f"reading {name} back", _KEPT):
            _, found = digest_chunks(read_blocks(self._store.open(name)), [digest.algorithm])
        if found != (digest,):
            raise StorageError(
                f"{name} reads back with other content",
                evidence=(("kept", "the documents that lead to it"),),
                hint="check for other writers, then try again",
                code="read-back",
            )

    def open(self, name: str) -> BinaryIO | None:
        """Open a document for reading, or return ``None`` when there is none."""
        split_name(name, _FOLDERS)
        with guard_store(f"reading {name}", _KEPT):
            stream = self._store.open(name)
            if stream is None:
                return None
            spool = _spooled()
            with stream:
                shutil.copyfileobj(stream, spool, _BLOCK)
            spool.seek(0)
            return spool

    def signature(self, name: str) -> str | None:
        """Return a text that changes whenever the document does; ``None`` if there is none."""
        split_name(name, _FOLDERS)
        with guard_store(f"looking at {name}", _KEPT):
            there = self._store.stat(name)
            return None if there is None else there.version

    def names(self) -> Iterator[str]:
        """Yield the names of the documents that exist, sorted."""
        for folder in _FOLDERS:
            with guard_store("listing the documents", _KEPT):
                found = sorted(self._store.keys(f"{folder}/"))
            yield from (name for name in found if name.rpartition("/")[0] == folder)
        with guard_store("listing the documents", _KEPT):
            found = sorted(self._store.keys(TOP_LEVEL_PREFIX))
        yield from (name for name in found if "/" not in name)

    def delete(self, name: str) -> None:
        """Remove a document; it is no error when there is none."""
        split_name(name, _FOLDERS)
        with guard_store(f"removing {name}", _KEPT):
            self._store.remove(name)


def _spooled() -> BinaryIO:
    return cast("BinaryIO", SpooledTemporaryFile(_IN_MEMORY))


def _type_of(name: str) -> str:
    file = name.rpartition("/")[2]
    return _TYPES.get(file.rpartition(".")[2] if "." in file else "", _PLAIN)
