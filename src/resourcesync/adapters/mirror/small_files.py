"""Small files below ``.resourcesync``: findings of audits, positions of programs, parts of lists.

They are not in the mirror's state, which has one writer at a time: a program must be able to record
its position in the changes while a pull goes on for hours.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, Final

import msgspec

from resourcesync import own_files
from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.errors import ConfigurationError, StateError, quoted
from resourcesync.mirror_state.rows import ChangeLogPosition
from resourcesync.ports import StoredVersion

MAX_AUDITS: Final = 20
MAX_FINDINGS: Final = 100_000
MAX_PARTS: Final = 1 << 30
"""The most bytes of compressed parts that one run stores."""
_VERSIONS: Final = "versions.json"
_MOST_VERSIONS: Final = 64 << 20
_CHUNK: Final = 1 << 18
_AUDIT: Final = re.compile(r"[0-9]{20}-([0-9a-f]{12})\.ndjson")
"""Names sort by time, to the microsecond."""
_CONSUMER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST_BYTES: Final = 4096
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode
_decode_versions = msgspec.json.Decoder(dict[str, StoredVersion]).decode


class _Acknowledged(msgspec.Struct):
    acknowledged: int
    time: int


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


class AuditFiles:
    """The files of audit findings."""

    def __init__(self, own: Path) -> None:
        self._folder = own / "reports"

    @contextmanager
    def write_findings(self) -> Iterator["AuditFindingWriter"]:
        """Store the findings of one audit; without ``set_name`` they are discarded."""
        unnamed = self._folder / "unfinished"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(unnamed, _FLAGS, 0o600), "wb") as stream:
                kept = AuditFindingWriter(stream)
                yield kept
            if kept.name:
                unnamed.rename(self._folder / kept.name)
                for name in self._names()[:-MAX_AUDITS]:
                    (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise mirror_error(error, "storing the audit's findings") from error
        finally:
            with suppress(OSError):
                unnamed.unlink()

    def read_findings(self, audit: str) -> Iterator[Mapping[str, str]]:
        """Yield the findings of an audit: ``kind``, ``uri``, ``path`` and ``reason`` of each."""
        names = self._names()
        chosen = names[-1:] if audit == "last" else [n for n in names if _id(n) == audit]
        if not chosen:
            raise ConfigurationError(
                f"there is no audit {audit[:100]!r} of this mirror",
                evidence=(("here", ", ".join(map(_id, names)) or "none"),),
                hint="audit the mirror again, or name no audit: resourcesync audit MIRROR",
            )
        path = self._folder / chosen[0]
        try:
            with path.open("rb") as stream:
                for line in stream:
                    yield _decode(line)
        except OSError as error:
            raise mirror_error(error, f"reading {path}") from error
        except msgspec.MsgspecError as error:
            raise StateError(f"{path} is damaged", hint="audit the mirror again") from error

    def _names(self) -> list[str]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if _AUDIT.fullmatch(name))


class AuditFindingWriter:
    """A writer of the findings of one audit."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._count = 0
        self.name = ""

    def add(self, fields: Mapping[str, object]) -> None:
        """Write one finding; beyond 100,000 they are only counted elsewhere."""
        self._count += 1
        if self._count <= MAX_FINDINGS:
            row = {name: str(fields[name]) for name in ("kind", "uri", "path", "reason")}
            self._stream.write(_encode(row) + b"\n")

    def set_name(self, audit: str, moment: str) -> None:
        """Set the audit's id and its time, as ``20261121020004123456``; then it will be stored."""
        self.name = f"{moment}-{audit}.ndjson"


def _id(name: str) -> str:
    found = _AUDIT.fullmatch(name)
    return "" if found is None else found[1]


class ConsumerFiles:
    """The files of ``.resourcesync/consumers``."""

    def __init__(self, own: Path) -> None:
        self._folder = own / "consumers"

    def position(self, name: str) -> ChangeLogPosition | None:
        """Return the position that ``name`` acknowledged, or ``None``."""
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            text = own_files.read_file(path, _MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise mirror_error(error, f"reading {path}") from error
        try:
            stored = msgspec.json.decode(text, type=_Acknowledged)
            return ChangeLogPosition(stored.acknowledged, stored.time)
        except (msgspec.MsgspecError, ValueError) as error:
            raise StateError(
                f"{path} is damaged: the position of {name} is unknown",
                hint="start over: "
                f"resourcesync changes MIRROR --consumer {quoted(name, 'NAME')} --restart",
            ) from error

    def acknowledge(self, name: str, position: ChangeLogPosition) -> None:
        """Store durably that ``name`` has processed all changes up to ``position``."""
        stored = msgspec.json.encode(_Acknowledged(position.number, position.time))
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            own_files.replace_file(path, stored, folder_mode=0o700)
        except OSError as error:
            raise mirror_error(error, f"storing the position of {name}") from error


def _checked_name(name: str) -> str:
    if not _CONSUMER.fullmatch(name):
        raise ConfigurationError(
            f"{name[:100]!r} cannot be the name of a consumer",
            hint="use up to 64 letters, digits, - and _",
        )
    return name
