"""A bucket, or the part below a prefix: objects by keys, over obstore.

Endpoint, region and secrets are obstore's own: it reads the usual variables of AWS. Its errors
become errors of this package, with the server's code and without the rest of the message.

Only listings are read here: obstore knows paths, so it stops at a key such as ``a//b`` and takes
``/a`` for ``a``. It signs their addresses.
"""

import http.client
import os
import re
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from io import BufferedReader, RawIOBase
from threading import Event
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, cast
from urllib.error import HTTPError
from urllib.parse import quote, urlencode

import obstore
import obstore.store

from resourcesync.errors import ConfigurationError, StorageError
from resourcesync_s3.listing import read_page

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class ObjectReader(RawIOBase):
    """A reader of an object's bytes; fewer than announced are an error."""

    def __init__(
        self,
        chunks: Iterator[bytes],
        length: int,
        asking: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        self._chunks = chunks
        self._left = length
        self._guard = asking
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return true: it can be read."""
        return True

    def close(self) -> None:
        """Close the connection, also before the end."""
        self._chunks = iter(())
        super().close()

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read the next bytes into a buffer."""
        if not self._rest:
            with self._guard():
                self._rest = memoryview(next(self._chunks, b""))
            if not self._rest:
                if self._left:
                    raise StorageError(
                        f"an object ended {self._left:,} bytes before its end", code="store"
                    )
                return 0
        room = memoryview(buffer).cast("B")
        count = min(len(room), len(self._rest))
        room[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._left -= count
        return count


ABSENT: Final = ""
"""In place of a version: there is no object."""
_ADDRESS: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")
_PART: Final = 8 << 20
_MOST_PARTS: Final = 9_000
_AT_ONCE: Final = 4
_MOST_PAGE: Final = 64 << 20
_BUSY: Final = frozenset({0, 408, 429, 500, 502, 503, 504})
_CONTROLS: Final = re.compile(r"[\0-\x1f\x7f]")
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")
_SIGNED: Final = timedelta(minutes=15)
_YES: Final = frozenset({"1", "true", "on", "yes", "y", "t"})
_BUFFER: Final = 1 << 18
_SECONDS: Final = timedelta(seconds=120)
_PAUSES: Final = (0.1, 5.0)
_NO_LIMIT: Final = 1_000_000
_STATUS: Final = re.compile(r"status code: (\d{3})")
_LOST: Final = "HTTP error: "
"""In a message: the connection broke, so it is unknown what the server did."""
_RETRIED: Final = re.compile(r" in ([0-9.]+)(m?s), after (\d+) retries")
_ERROR_CODE: Final = re.compile(r"<Code>([A-Za-z0-9.]{1,100})</Code>")


class BucketObject(NamedTuple):
    """An object in a bucket."""

    key: str
    version: str
    length: int
    modified: datetime


class ObjectStream(NamedTuple):
    """An open object."""

    info: BucketObject
    attributes: Mapping[str, str]
    stream: BinaryIO


def key_fault(key: str) -> str:
    """Return why there is no object at a key for this package; empty for a usual key.

    Its path in a URI, and in obstore, would be that of another key, or of none.
    """
    names = key.split("/")
    if _SURROGATES.search(key):
        return "its key is not in UTF-8"
    if _CONTROLS.search(key):
        return "its key contains a control character"
    if not names[-1]:
        return "the mark of a folder: its key ends with a slash"
    if "" in names:
        return "its key has an empty name, as in a//b"
    if not {".", ".."}.isdisjoint(names):
        return "its key has a name . or .., which URIs do not keep"
    return ""


class Bucket:
    """The objects below a prefix of a bucket. Its methods may be called from several threads."""

    largest_copy: int = 5 << 30
    """The most bytes that a server copies in one request."""

    def __init__(
        self, address: str, *, patience: float, pauses: tuple[float, float] = _PAUSES
    ) -> None:
        self._obstore: Any = obstore
        self.name, self.prefix = split_address(address)
        self._patience, self._pauses = patience, pauses
        self._store = self._open_s3()
        self._if_absent = self._open_s3(copy_if_not_exists="header:If-None-Match:*")
        # Never sent: it only shows where obstore finds the bucket.
        nobody = dict.fromkeys(("access_key_id", "secret_access_key"), "-")
        signed = self._sign(self._open_s3(prefix="", **nobody))
        self._place = signed.partition("/-?")[0]
        skips = os.environ.get("AWS_SKIP_SIGNATURE", "")  # noqa: TID251 - obstore does not tell it
        self._is_anonymous = skips.lower() in _YES

    def _open_s3(self, **settings: str) -> Any:
        first, longest = (timedelta(seconds=pause) for pause in self._pauses)
        try:
            return self._obstore.store.S3Store(
                self.name,
                checksum_algorithm="SHA256",
                # Only an endpoint of http:// needs it; a total timeout would limit the size.
                client_options={
                    "allow_http": True,
                    "connect_timeout": timedelta(seconds=10),
                    "read_timeout": _SECONDS,
                    "timeout": timedelta(days=1),
                },
                retry_config={
                    "max_retries": _NO_LIMIT,
                    "backoff": {"init_backoff": first, "max_backoff": longest},
                    "retry_timeout": timedelta(seconds=self._patience),
                },
                **{"prefix": self.prefix, **settings},
            )
        except (ValueError, TypeError, self._obstore.exceptions.BaseError) as error:
            raise ConfigurationError(
                f"the bucket {self.name} cannot be opened: {_first_line(error)}",
                hint="see the variables AWS_ENDPOINT_URL, AWS_REGION and the others of AWS",
            ) from error

    def head(self, key: str) -> BucketObject | None:
        """Return the object at a key; ``None`` for none."""
        with self._guarded(f"looking at {key}"), suppress(FileNotFoundError):
            return _bucket_object(self._obstore.head(self._store, key))
        return None

    def attributes(self, key: str) -> tuple[BucketObject, Mapping[str, str]] | None:
        """Return the object at a key, and its stored header fields."""
        with self._guarded(f"looking at {key}"), suppress(FileNotFoundError):
            got = self._obstore.get(self._store, key, options={"head": True})
            return _bucket_object(got.meta), got.attributes
        return None

    def open(self, key: str, version: str | None = None) -> BinaryIO | None:
        """Open an object, one version to its end; ``None`` if there is none, or another one."""
        got = self.get(key, version)
        return None if got is None else got.stream

    def get(self, key: str, version: str | None = None) -> ObjectStream | None:
        """Open an object as ``open`` does; return also its metadata."""
        options = {} if version is None else {"if_match": version}
        with self._guarded(f"reading {key}"):
            try:
                got = self._obstore.get(self._store, key, options=options)
            except (FileNotFoundError, self._obstore.exceptions.PreconditionError):
                return None
        chunks = got.stream(min_chunk_size=_BUFFER)
        reader = ObjectReader(chunks, got.meta["size"], lambda: self._guarded(f"reading {key}"))
        stream = cast("BinaryIO", BufferedReader(reader, _BUFFER))
        return ObjectStream(_bucket_object(got.meta), got.attributes, stream)

    def read(self, key: str, most: int) -> tuple[BucketObject, bytes] | None:
        """Return a small object and its bytes; ``None`` for none."""
        with self._guarded(f"reading {key}"), suppress(FileNotFoundError):
            got = self._obstore.get(self._store, key)
            found = _bucket_object(got.meta)
            if found.length > most:
                raise StorageError(f"{key} has {found.length:,} bytes; at most {most:,} are read")
            return found, bytes(got.bytes())
        return None

    def list(
        self, prefix: str, odd: Callable[[str, str], object] = lambda _key, _fault: None
    ) -> Iterator[BucketObject]:
        """Yield the objects whose keys have a prefix, page by page, in the server's order."""
        above = f"{self.prefix}/" if self.prefix else ""
        token = ""
        while True:
            with self._guarded("listing the objects"):
                page = read_page(self._page(above + prefix, {"continuation-token": token}))
            for found in page.objects:
                key = found.key.removeprefix(above)
                if fault := key_fault(key):
                    odd(key or "/", fault)
                elif key.startswith(prefix):
                    yield BucketObject(key, *found[1:])
            if not page.next:
                return
            if page.next == token:
                raise StorageError(f"s3://{self.name} lists one page again and again", code="store")
            token = page.next

    def _page(self, prefix: str, more: Mapping[str, str]) -> bytes:
        """Return a page of the listing; parameters without a value are not sent."""
        query = {"list-type": "2", "encoding-type": "url", "prefix": prefix, **more}
        text = urlencode([pair for pair in query.items() if pair[1]], quote_via=quote)
        return cast("bytes", self._until_answered(lambda: _fetch(self._signed(text))))

    def _signed(self, query: str) -> str:
        """Return an address in the bucket, signed unless obstore signs nothing."""
        # The path, which obstore always adds, is the value of a parameter that nobody reads.
        address = f"{self._place}?{query}&x-path="
        if self._is_anonymous:
            return address
        return self._sign(
            self._open_s3(prefix="", endpoint=address, virtual_hosted_style_request="true")
        )

    def _sign(self, store: Any) -> str:
        return str(self._obstore.sign(store, "GET", "-", _SIGNED))

    def put(
        self,
        key: str,
        body: bytes,
        *,
        over: str | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> str | None:
        """Put a small object; return its version, ``None`` if another version was there.

        If an answer was lost, that version may be this object: the caller marks it.
        """
        modes = {None: "overwrite", ABSENT: "create"}
        mode = modes.get(over) or {"e_tag": over}
        exceptions = self._obstore.exceptions
        request = partial(
            self._obstore.put,
            self._store,
            key,
            body,
            mode=mode,
            attributes=dict(attributes or {}),
            use_multipart=False,
        )
        with self._guarded(f"putting {key}"):
            try:
                put = self._until_answered(request)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return None
            except FileNotFoundError as error:
                if over and _code_of(error) != "NoSuchBucket":
                    return None  # the answer of S3 if the version to replace is gone
                raise
        return self._version(key, put)

    def put_parts(
        self,
        key: str,
        blocks: Iterable[bytes],
        length: int,
        attributes: Mapping[str, str] | None = None,
    ) -> str:
        """Put a large object in parts, over any version; return its version.

        Readers see it when all parts are there. An error from ``blocks`` leaves nothing.
        """
        with self._guarded(f"putting {key}"):
            put = self._obstore.put(
                self._store,
                key,
                iter(blocks),
                attributes=dict(attributes or {}),
                use_multipart=True,
                chunk_size=max(_PART, -(-length // _MOST_PARTS)),
                max_concurrency=_AT_ONCE,
            )
        return self._version(key, put)

    def _version(self, key: str, put: Mapping[str, Any]) -> str:
        if put["e_tag"]:
            return str(put["e_tag"])
        found = self.head(key)
        if found is None:
            raise StorageError(f"{key} was put, and is not there")
        return found.version

    def copy(self, key: str, to: str, length: int, *, over: str | None) -> bool:
        """Copy an object within the bucket; false if source or target is not as expected."""
        if length > self.largest_copy:
            return self._copy_through(key, to, length, over)
        store = self._store if over is None else self._if_absent
        if over:
            store = self._open_s3(copy_if_not_exists=f"header:If-Match:{over}")
        exceptions = self._obstore.exceptions
        with self._guarded(f"copying {key} to {to}"):
            try:
                self._obstore.copy(store, key, to, overwrite=over is None)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileNotFoundError):
                if self.head(key) is None and self.head(to) is None:
                    self.check()
                return False
        return True

    def _copy_through(self, key: str, to: str, length: int, over: str | None) -> bool:
        """Copy through this machine, in parts; the server does not enforce the condition then."""
        there = self.head(to)
        if over is not None and over != (ABSENT if there is None else there.version):
            return False
        got = self.get(key)
        if got is None:
            return False
        with got.stream as stream:
            blocks = _read_in_thread(partial(stream.read, _PART))
            self.put_parts(to, blocks, length, got.attributes)
        return True

    def remove(self, key: str) -> None:
        """Remove an object; it is no error when there is none."""
        with self._guarded(f"removing {key}"), suppress(FileNotFoundError):
            self._until_answered(partial(self._obstore.delete, self._store, key))

    def check(self) -> None:
        """Check that the bucket exists and may be read."""
        with self._guarded("looking at the bucket"):
            self._page(self.prefix, {"max-keys": "1"})

    def _until_answered(self, request: Callable[[], Any]) -> Any:
        """Send a request until it is answered; obstore does not repeat it if a connection breaks.

        What follows a lost answer must be right whether the server executed the request or not.
        """
        pause, longest = self._pauses
        until = time.monotonic() + self._patience
        while True:
            try:
                return request()
            except (self._obstore.exceptions.BaseError, _ListingError) as error:
                if not _may_be_repeated(error) or time.monotonic() + pause >= until:
                    raise
            Event().wait(pause)
            pause = min(2 * pause, longest)

    @contextmanager
    def _guarded(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (
            self._obstore.exceptions.BaseError,
            FileNotFoundError,
            OSError,
            ValueError,
        ) as error:
            raise _translate_error(error, f"s3://{self.name}", doing) from error


def split_address(address: str) -> tuple[str, str]:
    """Return the bucket and the prefix of an address."""
    match = _ADDRESS.fullmatch(address)
    prefix = (match[2] or "").strip("/") if match else ""
    names = prefix.split("/") if prefix else []
    if match is None or any(name in {"", ".", ".."} for name in names) or set("?#%") & set(prefix):
        raise ConfigurationError(
            f"{address[:200]!r} is not a bucket address",
            hint="write s3://BUCKET/PREFIX; endpoint and secrets are in AWS_ENDPOINT_URL,"
            " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    return match[1], prefix


class _ListingError(OSError):
    """An answer that is an error, or none: then the status is 0."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"status code: {status}\n{said}" if status else f"{_LOST}{said}")
        self.status = status


def _fetch(address: str) -> bytes:
    """Return the answer to a listing."""
    try:
        # The address is obstore's own.
        with urllib.request.urlopen(address, timeout=_SECONDS.total_seconds()) as answer:  # noqa: S310
            data: bytes = answer.read(_MOST_PAGE)
            if answer.length:
                raise http.client.IncompleteRead(data, answer.length)
            return data
    except HTTPError as error:
        with error:
            raise _ListingError(
                error.code, error.read(_BUFFER).decode("utf-8", "replace")
            ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _ListingError(0, str(getattr(error, "reason", error))) from error


def _may_be_repeated(error: Exception) -> bool:
    """True if a connection broke, or if the server may answer a listing later."""
    if isinstance(error, _ListingError):
        return error.status in _BUSY
    return _LOST in _first_line(error)


def _read_in_thread(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Read blocks in a separate thread: obstore calls from one that it must not be called in."""
    with ThreadPoolExecutor(1, "reading") as pool:
        while block := pool.submit(read).result():
            yield block


def _bucket_object(meta: Mapping[str, Any]) -> BucketObject:
    return BucketObject(meta["path"], meta["e_tag"] or "", meta["size"], meta["last_modified"])


def _code_of(error: BaseException) -> str:
    said = _ERROR_CODE.search(str(error))
    return said[1] if said else ""


def _first_line(error: BaseException) -> str:
    """Return the first line of an error, without the address and the duration."""
    line = str(error).partition("\n")[0]
    return line.rpartition(" - ")[2][:300]


def _translate_error(error: Exception, place: str, doing: str) -> StorageError:
    """Translate an error; of the server's message only code and status are included."""
    code, status = _code_of(error), _STATUS.search(str(error))
    got = " ".join(filter(None, (status and status[1], code))) or _first_line(error)
    evidence = (("got", got), ("while", doing), ("kept", "all complete objects"))
    if code == "NoSuchBucket":
        return StorageError(
            f"there is no bucket {place}",
            evidence=evidence,
            hint="create the bucket, or fix the address and AWS_ENDPOINT_URL",
            code="no-bucket",
        )
    if (status and status[1] in {"401", "403"}) or _is_refusal(error):
        return StorageError(
            f"{place} refuses the request",
            evidence=evidence,
            hint="check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the permissions of that key",
            code="store-refused",
        )
    return StorageError(
        f"{place} failed while {doing}",
        evidence=(*evidence, *_tries(error)),
        hint="check that the store can be reached, then try again",
        code="store",
    )


def _tries(error: Exception) -> tuple[tuple[str, str], ...]:
    """Return the number of tries and their duration as evidence; nothing for one try."""
    match = _RETRIED.search(str(error))
    if match is None or match[3] == "0":
        return ()
    seconds = float(match[1]) / (1_000 if match[2] == "ms" else 1)
    return (("tried", f"{int(match[3]) + 1} times in {seconds:.1f} s"),)


def _is_refusal(error: Exception) -> bool:
    return type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}
