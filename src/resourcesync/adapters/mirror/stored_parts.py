"""Parts of the Resource List read last, stored compressed so that they need no further request."""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO, Final

import msgspec

from resourcesync import own_files
from resourcesync.ports import StoredVersion

MAX_PARTS: Final = 1 << 30
"""The most bytes of compressed parts that one run stores."""
_VERSIONS: Final = "versions.json"
_MOST_VERSIONS: Final = 64 << 20
_CHUNK: Final = 1 << 18
_decode_versions = msgspec.json.Decoder(dict[str, StoredVersion]).decode


class PartFiles:
    """The files of ``.resourcesync/parts``: parts of the Resource List read last, compressed.

    They only save requests. So they are not synced, what is wrong with one of them is no error,
    and they are checked by their SHA-256. Their names are those of the bytes that were sent: a part
    whose entries stay gets no new file when its list is dated anew.
    """

    def __init__(self, own: Path, scratch: Callable[[], BinaryIO], most: int = MAX_PARTS) -> None:
        self._folder = own / "parts"
        self._scratch = scratch
        self._most = most
        self._names: dict[str, str] = {}
        self._dated: tuple[str, dict[str, str]] = ("", {})

    def open(self, digest: str, at: str = "") -> BinaryIO | None:
        """Return the bytes with this SHA-256, perhaps dated ``at``; ``None`` without them."""
        found, name = self._open(digest, digest), digest
        if found is None and at:
            if self._dated[0] != at:
                self._dated = at, self._dated_names(at)
            name = self._dated[1].get(digest, "")
            found = self._open(name, digest, at) if name else None
        if found is not None:
            self._names[digest] = name
        return found

    def _dated_names(self, at: str) -> dict[str, str]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError:
            return {}
        found = ((self._copy(name, at, lambda _: None), name) for name in names)
        return {digest: name for digest, name in found if digest}

    def _open(self, name: str, digest: str, at: str = "") -> BinaryIO | None:
        if not (self._folder / name).exists():
            return None
        found = self._scratch()
        try:
            copied = self._copy(name, at, found.write)
        except BaseException:
            found.close()
            raise
        if copied != digest:
            found.close()
            return None
        found.seek(0)
        return found

    def _copy(self, name: str, at: str, write: Callable[[bytes], object]) -> str:
        running, is_begun = hashlib.sha256(), False
        try:
            with os.fdopen(own_files.open_path(self._folder / name), "rb") as stream:
                for chunk in _decompressed(stream):
                    piece = chunk if is_begun or not at else _dated(chunk, at)
                    is_begun = True
                    running.update(piece)
                    write(piece)
        except (OSError, zlib.error):
            return ""  # it is damaged, or not there
        return running.hexdigest()

    def add(self, digest: str, stream: BinaryIO) -> None:
        """Store the bytes of a stream, which have this SHA-256, unless they are stored."""
        if digest in self._names:
            return
        try:
            with own_files.opened(own_files.open_folder(self._folder, 0o700)) as folder:
                with suppress(FileNotFoundError):
                    os.unlink(digest, dir_fd=folder)
                if self._most > 0:
                    with os.fdopen(
                        own_files.open_file(digest, folder, own_files.NEW), "wb"
                    ) as file:
                        self._most -= _compress(stream, file)
        except OSError:
            self._most = 0  # a file that was not written to its end is found by its name
        self._names[digest] = digest

    def versions(self) -> Mapping[str, StoredVersion]:
        """Return the validators of those that the server can vouch for, by URI."""
        try:
            return _decode_versions(own_files.read_file(self._folder / _VERSIONS, _MOST_VERSIONS))
        except (OSError, msgspec.MsgspecError):
            return {}

    def retain(self, digests: Collection[str], versions: Mapping[str, StoredVersion]) -> None:
        """Remove all others; store these validators."""
        kept = {self._names.get(digest, digest) for digest in digests}
        with suppress(OSError), own_files.opened(own_files.open_folder(self._folder)) as folder:
            with os.scandir(folder) as entries:
                others = [entry.name for entry in entries if entry.name not in kept]
            for name in others:
                os.unlink(name, dir_fd=folder)
            if versions:
                with os.fdopen(own_files.open_file(_VERSIONS, folder, own_files.NEW), "wb") as file:
                    file.write(msgspec.json.encode(versions))


def _dated(beginning: bytes, at: str) -> bytes:
    header, entries, rest = beginning.partition(b"<url>")
    return re.sub(rb' at="[^"]*"', f' at="{at}"'.encode(), header, count=1) + entries + rest


def _compress(stream: BinaryIO, file: IO[bytes]) -> int:
    compressor = zlib.compressobj(1)
    stream.seek(0)
    while chunk := stream.read(_CHUNK):
        file.write(compressor.compress(chunk))
    file.write(compressor.flush())
    return file.tell()


def _decompressed(stream: BinaryIO) -> Iterator[bytes]:
    decompressor = zlib.decompressobj()
    waiting = b""
    while waiting or (waiting := stream.read(_CHUNK)):
        yield decompressor.decompress(waiting, _CHUNK)
        waiting = decompressor.unconsumed_tail
    yield decompressor.flush()
