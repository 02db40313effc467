"""Stores of copies that are not folders (ADR 0046).

A store promises less than ``Copies``: bytes by keys, each replaced as a whole and only by a caller
that knows the present version. Staged bytes, the state of the mirror and its lock stay in a folder
of this machine.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import BinaryIO, Final, NamedTuple, Protocol, runtime_checkable

from resourcesync.errors import ResourceSyncError, StorageError
from resourcesync.model.digests import Digest

STORE_FAILED: Final = "store"
"""The code of an error of a store itself."""

_MOST_IN_FLIGHT: Final = 64
_BLOCK: Final = 1 << 20


class StoredObject(NamedTuple):
    """The object at a key.

    Attributes:
        version: Identifies these bytes among all that were or will be at the key, such as an
            ``ETag`` or a version's name; never empty.
        length: Bytes.
    """

    version: str
    length: int


class ObjectContent(NamedTuple):
    """Bytes to store.

    Attributes:
        stream: Reads them, from the first one on.
        length: Number of they are.
        digests: Their digests; a store that verifies uploads has its checksum here.
        lastmod: The Source's time of their last change, UTC; ``None`` if it gives none.
        headers: Fields to serve them with, such as ``Content-Type``, for a store that serves;
            others may ignore them.
    """

    stream: BinaryIO
    length: int
    digests: Sequence[Digest]
    lastmod: datetime | None = None
    headers: Sequence[tuple[str, str]] = ()


class Store(Protocol):
    """Bytes by keys: relative paths with ``/``, in NFC, of at most 1,000 bytes of UTF-8.

    Any method may raise anything: then the call counts as not done, and its effect is checked
    before it is repeated.
    """

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        """Store bytes, if the key still has the version they are to replace.

        All of them are stored durably when this returns; until then readers see the old version,
        also when it never returns. Comparison and replacement are one step, whoever else
        writes there.

        Args:
            key: The key.
            content: The bytes.
            replaces: The present version; ``None`` for none.

        Returns:
            The new version; ``None`` if another one was stored, which is unchanged.
        """

    def stat(self, key: str) -> StoredObject | None:
        """Return the object at a key, as the last ``put`` left it; ``None`` if there is none."""

    def open(self, key: str) -> BinaryIO | None:
        """Open the bytes at a key, those of one version to their end; ``None`` when none are."""

    def move(self, key: str, to: str, version: str) -> bool:
        """Move a version to a key where nothing is; ``False`` when it is not at ``key`` any more.

        Killed in between, it may leave the bytes at both keys, never at none.
        """

    def remove(self, key: str) -> None:
        """Remove a key for good; a missing one is no error."""

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield all keys with a prefix, in no order; those put before are among them."""

    max_in_flight: int
    """Number of calls at a time, from as many threads; at most 64 are made."""

    def lock(self, who: str, holder: str = "") -> AbstractContextManager[object]:
        """Exclude every other holder while the block runs, also on other machines.

        The lock of a dead holder must expire by itself, as a lease does.

        Args:
            who: Name of the holder, for the message to others.
            holder: Identity that the caller has locked, so that no other run of it lives: a lock
                that it left is reclaimed at once. Empty: none.

        Raises:
            LockedError: Another holder has the lock.
        """


@runtime_checkable
class StagingStore(Store, Protocol):
    """A store in which workers stage bytes for the holder of the lock; optional."""

    def stage(self, content: ObjectContent) -> str:
        """Store bytes durably at a key of their own, outside of all keys; return that key.

        No lock is needed. The next holder of the lock removes what nobody put.
        """

    def put_staged(self, key: str, place: str, length: int, replaces: str | None) -> str | None:
        """Store staged bytes as ``put`` does, without moving them through this machine.

        Args:
            key: The key.
            place: The key of the staged bytes, which stay there.
            length: Their number.
            replaces: The present version; ``None`` for none.
        """


def in_flight(store: Store) -> int:
    """Return how many operations of a store run at once."""
    return max(1, min(store.max_in_flight, _MOST_IN_FLIGHT))


def read_blocks(stream: BinaryIO | None) -> Iterator[bytes]:
    """Yield the bytes of what a store opened, and close it; nothing for ``None``."""
    if stream is not None:
        with stream:
            while block := stream.read(_BLOCK):
                yield block


@contextmanager
def guard_store(doing: str, kept: str = "all complete copies") -> Iterator[None]:
    """Run the block, and make any error of a store one of ours."""
    try:
        yield
    except ResourceSyncError:
        raise
    except Exception as error:
        raise StorageError(
            f"the store failed while {doing}: {type(error).__name__}: {error}"[:1_000],
            evidence=(("kept", kept),),
            hint="check that the store can be reached and written, then try again",
            code=STORE_FAILED,
        ) from error


StoreFactory = Callable[[str], Store]
"""Opens the store at an address, such as ``s3://bucket/prefix``; nothing is written yet."""
