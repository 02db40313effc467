"""How the bytes of a member are compressed, and when that is not worth the while."""

import zlib
from functools import lru_cache
from typing import Final

from resourcesync.documents.packages.records import DEFLATED, STORED
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource

__all__ = ["Deflater", "compress_short", "is_compact", "is_noise"]

_LEVEL: Final = 6
_RAW: Final = -15  # zlib's word for deflate without a frame, with the window that ZIP has
_SMALLEST_WINDOW: Final = 10
_SAMPLE: Final = 64
_STEP: Final = 4_096
_VARIETY: Final = range(50, 64)
"""Different bytes among 64 of noise: 57 on average, and one time in 300 not in this range.

Letters of any script have fewer than 40, and a table that counts up has 64.
"""
_PACKED_TYPES: Final = frozenset(
    f"application/{name}"
    for name in (
        "epub+zip", "gzip", "java-archive", "pdf", "vnd.rar", "x-7z-compressed", "x-bzip2",
        "x-gzip", "x-rar-compressed", "x-xz", "zip", "zlib", "zstd",
    )
)  # fmt: skip
_PACKED_KINDS: Final = ("image/", "video/", "audio/", "application/vnd.openxmlformats-")
_LOOSE_TYPES: Final = frozenset({"image/svg+xml", "image/bmp", "image/tiff", "audio/wav"})


def is_compact(content: Resource | Link) -> bool:
    """Whether compressing it again would gain nothing."""
    return bool(content.encoding) or _is_compact_type(content.media_type)


@lru_cache(maxsize=256)
def _is_compact_type(media_type: str) -> bool:
    kind = media_type.partition(";")[0].strip().lower()
    return kind in _PACKED_TYPES or (kind.startswith(_PACKED_KINDS) and kind not in _LOOSE_TYPES)


def is_noise(data: bytes) -> bool:
    """Whether bytes look in all places like noise, which is what compressed data looks like.

    A tenth of the time that deflate takes to find the same, and nothing for what is ASCII; looked
    at are 64 bytes of each 4 KiB. Too short data is not judged.
    """
    if len(data) < 2 * _SAMPLE:
        return False
    first = (min(len(data), _STEP) - _SAMPLE) // 2
    for at in range(first, len(data) - _SAMPLE + 1, _STEP):
        sample = data[at : at + _SAMPLE]
        if sample.isascii() or len(set(sample)) not in _VARIETY:
            return False
    return True


def compress_short(data: bytes, *, compact: bool) -> tuple[int, bytes]:
    """Return the method for a short member, and its bytes in the package."""
    if compact or is_noise(data):
        return STORED, data
    deflated = _deflate(data)
    return (DEFLATED, deflated) if len(deflated) < len(data) else (STORED, data)


def _deflate(data: bytes) -> bytes:
    """Compress a short member; a window as small as the data does the same in a tenth of the time.

    What is saved is memory that deflate would clear, a quarter of a megabyte for each member.
    """
    window = min(max(len(data) - 1, 1).bit_length(), 15)
    window = max(window, _SMALLEST_WINDOW)
    memory = min(window - 6, zlib.DEF_MEM_LEVEL)
    deflater = zlib.compressobj(_LEVEL, DEFLATED, -window, memory)
    return deflater.compress(data) + deflater.flush()


class Deflater:
    """Compresses a long member piece by piece; pieces that look like noise go in as they are.

    Level 0 and not the method "stored": Java reads stored data only if its CRC comes first.

    Args:
        compact: Whether all of it goes in as it is.
    """

    def __init__(self, *, compact: bool) -> None:
        self._is_compact = compact
        self._level = 0
        self._deflater: zlib._Compress | None = None

    def compress(self, piece: bytes) -> bytes:
        """Return what can be told so far."""
        level = 0 if self._is_compact or is_noise(piece) else _LEVEL
        before, deflater = b"", self._deflater
        if deflater is None or level != self._level:
            if deflater is not None:
                before = deflater.flush(zlib.Z_FULL_FLUSH)  # what was begun ends on a whole byte
            deflater = zlib.compressobj(level, DEFLATED, _RAW)
            self._deflater, self._level = deflater, level
        return before + deflater.compress(piece)

    def flush(self) -> bytes:
        """Return the rest; there was a piece before it."""
        assert self._deflater is not None
        return self._deflater.flush()
