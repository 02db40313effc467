"""The ``Originals`` port on the objects of a bucket."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from mimetypes import MimeTypes
from posixpath import normpath
from typing import BinaryIO, Final
from urllib.parse import quote, unquote

from msgspec.structs import replace

from resourcesync.errors import ConfigurationError, OriginalChangedError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Resource
from resourcesync.model.own_names import MAX_URI, UNESCAPED, uri_fault
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.ports.originals import Omission, Original, Originals, OriginalsOptions
from resourcesync.sqlite_file import TEMPORARY_ERRORS, connect_temporary
from resourcesync_s3 import store
from resourcesync_s3.bucket import Bucket, BucketObject

_PATH: Final = f"/{UNESCAPED}"
_REPLACED: Final = "\ufffd"
"""In a key: a server may write it for characters that XML cannot have."""
_KNOWS: Final = "SELECT 1 FROM listed WHERE uri = ?"
_MAX_OMISSIONS: Final = 10_000
_BLOCK: Final = 1 << 20
_SOME: Final = 1_000
_AT_ONCE: Final = 16
_MD5: Final = re.compile(r'"([0-9a-f]{32})"')
_GENERIC_TYPES: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_types: Final = MimeTypes(())
_TABLE: Final = """
CREATE TABLE listed (uri TEXT PRIMARY KEY, version TEXT, length INTEGER, modified INTEGER)
WITHOUT ROWID
"""


class BucketOriginals(Originals):
    """The objects below a prefix, each published at the base URI plus its percent-encoded key.

    Of keys that would be one path in a URI, such as ``/a`` and ``a``, the one without odd names is
    published; a key that has no URI is left out and told.

    An object is read if its ``ETag``, its length or its date changed, and only then.
    """

    def __init__(self, bucket: Bucket, options: OriginalsOptions, pool: ThreadPoolExecutor) -> None:
        self._bucket = bucket
        self._pool = pool
        self._begun: dict[Original, Future[tuple[Resource, str]]] = {}
        self._base = options.base_uri
        self._algorithms = options.algorithms
        self._omissions: list[Omission] = []
        unknown = sorted(set(options.values) - {"etag"})
        if unknown or options.values.get("etag", "md5") != "md5":
            raise ConfigurationError(
                f"originals in a bucket have no option {(unknown or ['etag'])[0]}=…",
                hint="the only one is etag=md5",
            )
        self._trusts_etag = "etag" in options.values and options.algorithms == ("md5",)

    def omissions(self) -> Sequence[Omission]:
        """Return what the last scan omitted; the first 10,000."""
        return tuple(self._omissions)

    def scan(self) -> Iterator[Original]:
        """Yield every object in rising URI order, once all are listed; nothing is read.

        They are sorted on a local disk: keys have another order than URIs.
        """
        self._omissions = []
        with TEMPORARY_ERRORS, closing(connect_temporary(_TABLE)) as db:
            db.execute("BEGIN")
            some: list[tuple[str, str, int, int]] = []
            for found in self._bucket.list("", self._omit):
                row = self._row(found)
                if row is not None:
                    some.append(row)
                if len(some) >= _SOME:
                    db.executemany("INSERT OR REPLACE INTO listed VALUES (?,?,?,?)", some)
                    some = []
            db.executemany("INSERT OR REPLACE INTO listed VALUES (?,?,?,?)", some)
            self._omissions = [
                self._beside(odd, lambda uri: db.execute(_KNOWS, (uri,)).fetchone() is not None)
                for odd in self._omissions
            ]
            for uri, version, length, modified in db.execute("SELECT * FROM listed ORDER BY uri"):
                moment = from_microseconds(modified)
                yield Original(
                    uri,
                    _fingerprint(version, length, moment),
                    length,
                    moment.replace(microsecond=0),
                )

    def _row(self, found: BucketObject) -> tuple[str, str, int, int] | None:
        path = quote(found.key, safe=_PATH)
        fault = uri_fault(path, MAX_URI - len(self._base))
        if not fault and _REPLACED in found.key and self._bucket.head(found.key) is None:
            fault = "its key is none that the server can name"
        if fault:
            self._omit(found.key, fault)
            return None
        return self._base + path, found.version, found.length, to_microseconds(found.modified)

    def _beside(self, odd: Omission, is_published: Callable[[str], bool]) -> Omission:
        """Return an omission with the published key that means the same resource, if any."""
        plain = normpath(f"/{odd.name}").strip("/")
        if plain == odd.name or not is_published(self._uri(plain)):
            return odd
        return replace(odd, instead=plain)

    def _omit(self, key: str, reason: str) -> None:
        if len(self._omissions) < _MAX_OMISSIONS:
            name = key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            self._omissions.append(Omission(name=name, reason=reason))

    def prefetch(self, originals: Sequence[Original]) -> None:
        """Prefetch these, several at a time: they are measured next."""
        self._begun = {
            original: self._pool.submit(self._measure, original) for original in originals
        }

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read an object once; return the resource with its digests, and its fingerprint."""
        begun = self._begun.pop(original, None)
        return self._measure(original) if begun is None else begun.result()

    def _measure(self, original: Original) -> tuple[Resource, str]:
        version = original.fingerprint.partition(" ")[0]
        md5 = _MD5.fullmatch(version)
        key = self._key(original.uri)
        if self._trusts_etag and md5 is not None:
            kind = _type_of(key, "")
            return self._resource(original, (Digest("md5", md5[1]),), kind), original.fingerprint
        got = None if key is None else self._bucket.get(key, version or None)
        if got is None:
            raise OriginalChangedError(f"{original.uri} is no longer what was listed")
        with got.stream as stream:
            length, digests = self._digests(stream)
        if length != original.length:
            raise OriginalChangedError(f"{original.uri} changed after it was listed")
        kind = _type_of(key, got.attributes.get("Content-Type", ""))
        return self._resource(original, digests, kind), original.fingerprint

    def _resource(self, original: Original, digests: tuple[Digest, ...], kind: str) -> Resource:
        return Resource(
            uri=original.uri,
            lastmod=original.lastmod,
            length=original.length,
            digests=digests,
            media_type=kind,
        )

    def _digests(self, stream: BinaryIO) -> tuple[int, tuple[Digest, ...]]:
        named = [(name, hashlib.new(name.replace("-", ""))) for name in self._algorithms]
        length = 0
        while block := stream.read(_BLOCK):
            length += len(block)
            for _, hasher in named:
                hasher.update(block)
        return length, tuple(Digest(name, hasher.hexdigest()) for name, hasher in named)

    def open(self, uri: str) -> BinaryIO | None:
        """Open an object for reading; ``None`` if the URI has none."""
        key = self._key(uri)
        return None if key is None else self._bucket.open(key)

    def _uri(self, key: str) -> str:
        return self._base + quote(key, safe=_PATH)

    def _key(self, uri: str) -> str | None:
        """Return the key of a URI; ``None`` if the URI is not in normal form."""
        key = unquote(uri.removeprefix(self._base)) if uri.startswith(self._base) else ""
        return key if key and self._uri(key) == uri else None


def _fingerprint(version: str, length: int, modified: datetime) -> str:
    """Return a text that changes with the bytes; empty if the server gives no version."""
    return f"{version} {length} {to_microseconds(modified)}" if version else ""


def _type_of(key: str | None, told: str) -> str:
    """Return the media type from the server, or else by the key's extension."""
    kind = told.partition(";")[0].strip().lower()
    if kind in _GENERIC_TYPES:
        kind = _types.guess_type(key or "", strict=True)[0] or ""
    return kind


@contextmanager
def open_originals(options: OriginalsOptions) -> Iterator[BucketOriginals]:
    """Open the originals at ``s3://BUCKET/PREFIX``."""
    bucket = Bucket(options.address, patience=store.PATIENCE)
    pool = ThreadPoolExecutor(_AT_ONCE, "originals")
    try:
        yield BucketOriginals(bucket, options, pool)
    finally:
        pool.shutdown(cancel_futures=True)
