"""Content codings of documents: gzip, and zstd if a library is installed (RFC 9110 §8.4, §12.5.3).

A document is compressed once for each of its states, and cached: a list is requested far more often
than it changes. The cache is bounded, and so is the number of concurrent compressions. Starlette's
``GZipMiddleware`` compresses each response, also where gzip is refused, and leaves it the tag of
the plain bytes.
"""

import asyncio
import importlib
import re
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Final, Protocol, final

import msgspec
from anyio import to_thread
from starlette.responses import Response

from resourcesync.server.asgi import Headers, HttpRequest
from resourcesync.server.files import FileState, OpenFile
from resourcesync.server.representations import ResponseValidators

_SMALLEST: Final = 512
"""Size of a document below which a coding saves nothing: it fits into one packet either way."""
_LARGEST: Final = 64 * 1024 * 1024
"""Size above that of any document: 50 MB (sitemaps.org)."""
_LARGEST_PLAIN: Final = 1024 * 1024
_CACHE_BYTES: Final = 32 * 1024 * 1024
_CONCURRENT: Final = 2
_PIECE: Final = 1024 * 1024
_GZIP_LEVEL: Final = 6
_GZIP_WINDOW: Final = 31
_ZSTD_LEVEL: Final = 6
_MOST_CODINGS: Final = 16

_CODING: Final = re.compile(
    r"[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(?:;[ \t]*[qQ]=([01](?:\.[0-9]{0,3})?))?[ \t]*"
)


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class Coding(msgspec.Struct, frozen=True, kw_only=True):
    """A content coding.

    Attributes:
        name: Its name in ``Content-Encoding``; empty for the plain bytes.
        mark: Suffix of its entity tags; another release of the library may give other bytes, so the
            release is part of it.
        start: Makes a compressor.
    """

    name: str
    mark: str
    start: Callable[[], _Compressor]

    @property
    def headers(self) -> Headers:
        """Return the header fields of the coding."""
        return ((b"content-encoding", self.name.encode("ascii")),) if self.name else ()

    def validators_for(self, validators: ResponseValidators) -> ResponseValidators:
        """Return the validators of the document in this coding: a strong tag of its own."""
        if not self.name:
            return validators
        return msgspec.structs.replace(validators, etag=f'{validators.etag[:-1]}-{self.mark}"')


@final
class _IdentityCompressor:
    """Compresses nothing."""

    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


_PLAIN: Final = Coding(name="", mark="", start=_IdentityCompressor)
"""The plain bytes, cached like the others: an unchanged list needs no disk access."""


@lru_cache(maxsize=1)
def codings() -> tuple[Coding, ...]:
    """Return the available codings, the best first."""
    gzip = Coding(
        name="gzip",
        mark=f"gzip{zlib.ZLIB_RUNTIME_VERSION}",
        start=lambda: zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW),
    )
    zstd = _find_zstd()
    if zstd is None:
        return (gzip,)
    best = Coding(
        name="zstd",
        mark=f"zstd{zstd.zstd_version}",
        start=lambda: zstd.ZstdCompressor(level=_ZSTD_LEVEL),
    )
    return (best, gzip)


def _find_zstd() -> Any:
    # Python's own from 3.14 on, and its backport: the same names.
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


@lru_cache(maxsize=64)
def choose(field: str) -> Coding | None:
    """Return our coding that ``Accept-Encoding`` prefers; ``None`` for the plain bytes.

    Of several with the same weight, the best of ours. Reading ends at the first malformed coding.
    """
    weights: dict[str, float] = {}
    for part in field.split(",", _MOST_CODINGS)[:_MOST_CODINGS]:
        found = _CODING.fullmatch(part)
        if found is None:
            break
        weights[found[1].lower()] = min(float(found[2] or 1), 1.0)
    best = max(codings(), key=lambda coding: _weight(weights, coding.name))
    weight = _weight(weights, best.name)
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else None


def _weight(weights: dict[str, float], name: str) -> float:
    return weights.get(name, weights.get("*", 0.0))


async def compress(request: HttpRequest, response: Response) -> Response:
    """Return a response in the coding that its client prefers; the same if none saves anything.

    For bytes that are made for one request: nothing is cached.
    """
    field = request.fields.get("accept-encoding", "")
    coding = choose(field) if field and len(response.body) >= _SMALLEST else None
    response.headers["vary"] = "accept-encoding"
    if coding is None or request.is_head:
        return response
    response.body = await to_thread.run_sync(_compress_all, bytes(response.body), coding)
    response.headers["content-encoding"] = coding.name
    response.headers["content-length"] = str(len(response.body))
    return response


def _compress_all(body: bytes, coding: Coding) -> bytes:
    compressor = coding.start()
    return compressor.compress(body) + compressor.flush()


@final
class Encoder:
    """Compressor of documents with a cache of the most recently used."""

    def __init__(self, *, kept: int = _CACHE_BYTES) -> None:
        self._most = kept
        self._size = 0
        self._bodies: OrderedDict[_Key, bytes] = OrderedDict()
        self._running: dict[_Key, asyncio.Task[bytes | None]] = {}
        self._slots = asyncio.Semaphore(_CONCURRENT)

    @property
    def cached_bytes(self) -> int:
        """Return the number of bytes in the cache."""
        return self._size

    def choose(self, field: str, size: int, validators: ResponseValidators) -> Coding | None:
        """Return the coding for a document of ``size`` bytes; ``None`` to send it from the disk.

        A state without an entity tag is not cached: the next one could not be distinguished from
        it.
        """
        if not validators.etag:
            return None
        coding = choose(field) if field and _SMALLEST <= size <= _LARGEST else None
        return coding or (_PLAIN if size <= _LARGEST_PLAIN else None)

    async def encode(
        self, opened: OpenFile, condition: FileState, coding: Coding, where: Hashable
    ) -> bytes | None:
        """Return a document in ``coding``; ``None`` when it is no longer as ``condition``."""
        key = (where, condition, coding.name)
        body = self._bodies.get(key)
        if body is not None:
            self._bodies.move_to_end(key)
            return body
        task = self._running.get(key)
        if task is None:
            # A task and a file of its own: the first client may leave before it is done.
            task = asyncio.create_task(self._compress(key, opened.duplicate(), coding))
            self._running[key] = task
            task.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(task)

    async def _compress(self, key: "_Key", opened: OpenFile, coding: Coding) -> bytes | None:
        _, condition, _ = key
        with opened:
            async with self._slots:
                body = await to_thread.run_sync(_compress, opened, condition.size, coding)
            if body is None or opened.stat() != condition:
                return None
        self._cache_body(key, body)
        return body

    def _end(self, key: "_Key", task: asyncio.Task[bytes | None]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # waiting clients get it; there may be none left

    def _cache_body(self, key: "_Key", body: bytes) -> None:
        if len(body) > self._most // 4:
            return
        self._bodies[key] = body
        self._size += len(body)
        while self._size > self._most:
            _, dropped = self._bodies.popitem(last=False)
            self._size -= len(dropped)


_Key = tuple[Hashable, FileState, str]


def _compress(opened: OpenFile, size: int, coding: Coding) -> bytes | None:
    compressor = coding.start()
    parts: list[bytes] = []
    for start in range(0, size, _PIECE):
        length = min(_PIECE, size - start)
        piece = opened.read(start, length)
        if len(piece) != length:
            return None
        parts.append(compressor.compress(piece))
    return b"".join((*parts, compressor.flush()))
