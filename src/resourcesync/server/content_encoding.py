"""Documents in gzip, for clients that accept it (RFC 9110 §8.4, §12.5.3).

A document is compressed once for each of its states, and cached: a list is requested far more often
than it changes. The cache is bounded, and so is the number of concurrent compressions. Starlette's
``GZipMiddleware`` compresses each response, also where gzip is refused, and leaves it the tag of
the plain bytes.
"""

import asyncio
import re
import zlib
from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache
from typing import Final, final

from anyio import to_thread
from msgspec.structs import replace
from starlette.responses import Response

from resourcesync.server.asgi import HttpRequest
from resourcesync.server.conditions_and_ranges import ResponseValidators
from resourcesync.server.files import FileState, OpenFile

GZIP_HEADERS: Final = ((b"content-encoding", b"gzip"),)

_SMALLEST: Final = 512
"""Size of a document below which gzip saves nothing: it fits into one packet either way."""
_LARGEST: Final = 64 * 1024 * 1024
"""Size above that of any document: 50 MB (sitemaps.org)."""
_LARGEST_PLAIN: Final = 1024 * 1024
_CACHE_BYTES: Final = 32 * 1024 * 1024
_CONCURRENT: Final = 2
_PIECE: Final = 1024 * 1024
_LEVEL: Final = 6
_WINDOW: Final = 31
_MOST_CODINGS: Final = 16
_CODING: Final = re.compile(
    r"[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(?:;[ \t]*[qQ]=([01](?:\.[0-9]{0,3})?))?[ \t]*"
)


@lru_cache(maxsize=64)
def accepts_gzip(field: str) -> bool:
    """True if ``Accept-Encoding`` prefers gzip to the plain bytes."""
    weights: dict[str, float] = {}
    for part in field.split(",", _MOST_CODINGS)[:_MOST_CODINGS]:
        found = _CODING.fullmatch(part)
        if found is None:
            break
        weights[found[1].lower()] = min(float(found[2] or 1), 1.0)
    weight = weights.get("gzip", weights.get("*", 0.0))
    return weight > 0 and weight >= weights.get("identity", 0.0)


def gzip_validators(validators: ResponseValidators) -> ResponseValidators:
    """Return the validators of a document in gzip: a strong tag of its own.

    Another release of zlib may give other bytes, so the release is part of it.
    """
    return replace(validators, etag=f'{validators.etag[:-1]}-gzip{zlib.ZLIB_RUNTIME_VERSION}"')


async def compress(request: HttpRequest, response: Response) -> Response:
    """Return a response in gzip if its client prefers that and it saves anything, else the same.

    For bytes that are made for one request: nothing is cached.
    """
    response.headers["vary"] = "accept-encoding"
    is_small = len(response.body) < _SMALLEST
    if is_small or request.is_head or not accepts_gzip(request.fields.get("accept-encoding", "")):
        return response
    response.body = await to_thread.run_sync(zlib.compress, bytes(response.body), _LEVEL, _WINDOW)
    response.headers["content-encoding"] = "gzip"
    response.headers["content-length"] = str(len(response.body))
    return response


_Key = tuple[Hashable, FileState, bool]


@final
class Encoder:
    """The documents that were requested last, in gzip or as they are."""

    def __init__(self, *, kept: int = _CACHE_BYTES) -> None:
        self._most = kept
        self.cached_bytes = 0
        self._bodies: OrderedDict[_Key, bytes] = OrderedDict()
        self._running: dict[_Key, asyncio.Task[bytes | None]] = {}
        self._slots = asyncio.Semaphore(_CONCURRENT)

    def is_gzipped(self, field: str, size: int, validators: ResponseValidators) -> bool | None:
        """True for a document in gzip, False for its plain bytes; ``None`` to send it from disk.

        A state without an entity tag is not cached: the next one could not be distinguished from
        it.
        """
        if not validators.etag:
            return None
        if field and _SMALLEST <= size <= _LARGEST and accepts_gzip(field):
            return True
        return False if size <= _LARGEST_PLAIN else None

    async def encode(
        self, opened: OpenFile, condition: FileState, where: Hashable, *, gzip: bool
    ) -> bytes | None:
        """Return the bytes of a document; ``None`` when it is no longer as ``condition``."""
        key = (where, condition, gzip)
        body = self._bodies.get(key)
        if body is not None:
            self._bodies.move_to_end(key)
            return body
        task = self._running.get(key)
        if task is None:
            # A task and a file of its own: the first client may leave before it is done.
            task = asyncio.create_task(self._encode(key, opened.duplicate()))
            self._running[key] = task
            task.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(task)

    async def _encode(self, key: _Key, opened: OpenFile) -> bytes | None:
        _, condition, gzip = key
        with opened:
            async with self._slots:
                body = await to_thread.run_sync(
                    lambda: read_document(opened, condition.size, gzip=gzip)
                )
            if body is None or opened.stat() != condition:
                return None
        self._cache(key, body)
        return body

    def _end(self, key: _Key, task: asyncio.Task[bytes | None]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # waiting clients get it; there may be none left

    def _cache(self, key: _Key, body: bytes) -> None:
        if len(body) > self._most // 4:
            return
        self._bodies[key] = body
        self.cached_bytes += len(body)
        while self.cached_bytes > self._most:
            _, dropped = self._bodies.popitem(last=False)
            self.cached_bytes -= len(dropped)


def read_document(opened: OpenFile, size: int, *, gzip: bool) -> bytes | None:
    """Return a whole document; ``None`` if it is shorter than it was."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW) if gzip else None
    parts: list[bytes] = []
    for start in range(0, size, _PIECE):
        length = min(_PIECE, size - start)
        piece = opened.read(start, length)
        if len(piece) != length:
            return None
        parts.append(piece if compressor is None else compressor.compress(piece))
    return b"".join(parts) + (b"" if compressor is None else compressor.flush())
