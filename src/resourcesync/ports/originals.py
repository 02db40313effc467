"""The originals of a Source: their list, their bytes, and their events."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice, repeat
from typing import BinaryIO, Final, NamedTuple, Protocol, overload

import msgspec

from resourcesync.model.entries import Link, Resource, ResourceRun
from resourcesync.model.timestamps import from_seconds

_RUN: Final = 1_000
_SECOND: Final = 1_000_000_000


class Original(NamedTuple):
    """The metadata of one original, without its bytes.

    A named tuple, since every scan makes one for every original.

    Attributes:
        uri: Its URI.
        fingerprint: Equal fingerprints mean equal bytes (for a file: size, mtime, inode, ctime);
            empty when the backend cannot promise that.
        length: Bytes.
        lastmod: Last-Modified, UTC, whole seconds.
        media_type: ``type``.
    """

    uri: str
    fingerprint: str
    length: int
    lastmod: datetime
    media_type: str = ""


class Omission(msgspec.Struct, frozen=True, kw_only=True):
    """A name in the tree that is not published, and the reason (a symlink out of it, a socket).

    Attributes:
        instead: Another name that means the same resource, and is published; empty for none.
        hint: What the operator can do about it.
    """

    name: str
    reason: str
    hint: str = ""
    instead: str = ""


# A run can make a value for each of millions of originals, so it makes them without Python code.
_original: Final[Callable[[tuple[str, str, int, datetime, str]], Original]] = partial(
    tuple.__new__, Original
)


class OriginalRun(Sequence[Original]):
    """Consecutive originals as columns, which become values only on request; of no media type.

    Args:
        uris: URI of each, in rising order.
        fingerprints: Fingerprint of each; empty where the backend cannot promise that.
        lengths: Bytes of each.
        modified: Last-Modified of each, nanoseconds since 1970.
    """

    __slots__ = ("fingerprints", "lengths", "modified", "uris")

    def __init__(
        self,
        *,
        uris: Sequence[str],
        fingerprints: Sequence[str],
        lengths: Sequence[int],
        modified: Sequence[int],
    ) -> None:
        self.uris = uris
        self.fingerprints = fingerprints
        self.lengths = lengths
        self.modified = modified

    @property
    def lastmods(self) -> Sequence[datetime]:
        """Last-Modified of each, UTC."""
        return [from_seconds(time // _SECOND) for time in self.modified]

    def select(self, places: Sequence[int]) -> "OriginalRun":
        """Return the originals at some places, in rising order."""
        return OriginalRun(
            uris=[self.uris[at] for at in places],
            fingerprints=[self.fingerprints[at] for at in places],
            lengths=[self.lengths[at] for at in places],
            modified=[self.modified[at] for at in places],
        )

    def __len__(self) -> int:
        return len(self.uris)

    def __iter__(self) -> Iterator[Original]:
        columns = (self.uris, self.fingerprints, self.lengths, self.lastmods, repeat(""))
        return map(_original, zip(*columns, strict=False))

    @overload
    def __getitem__(self, at: int) -> Original: ...

    @overload
    def __getitem__(self, at: slice) -> "OriginalRun": ...

    def __getitem__(self, at: int | slice) -> "Original | OriginalRun":
        if isinstance(at, slice):
            return self.select(range(len(self))[at])
        (original,) = self.select((at,))
        return original


class MeasuredRun(NamedTuple):
    """Originals that were read together.

    Attributes:
        resources: Those that are as they were listed, with the digests of their bytes.
        fingerprints: The fingerprint of each of these.
        rest: All others, to be measured one by one: an error, or a change, concerns one alone.
    """

    resources: ResourceRun
    fingerprints: Sequence[str]
    rest: Sequence[Original]


_NO_RESOURCES: Final = ResourceRun(uris=(), lastmods=(), lengths=(), hashes=(), media_types=())


class Originals(Protocol):
    """The resources as the Source has them. Derive from it: the last four methods are optional."""

    def scan(self) -> Iterator[Original]:
        """Yield every original in rising URI order, without reading their bytes.

        None is yielded before all are listed.

        Raises:
            StorageError: The originals cannot be listed; a scan that failed is not a shorter scan.
        """

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read the bytes once; return the resource with its digests, and its fingerprint.

        Raises:
            OriginalChangedError: It changed or vanished since; leave it for the next run.
            StorageError: It cannot be read.
        """

    def open(self, uri: str) -> BinaryIO | None:
        """Open an original; ``None`` when there is none.

        Raises:
            StorageError: It exists, but cannot be read.
        """

    def omissions(self) -> Sequence[Omission]:
        """Return the files that the last scan omitted."""

    def runs(self) -> Iterator[Sequence[Original]]:
        """Yield what ``scan`` yields, some hundred at a time; no run is empty."""
        listing = self.scan()
        while run := list(islice(listing, _RUN)):
            yield run

    def measure_run(self, run: Sequence[Original]) -> MeasuredRun:
        """Read originals of the run that was listed last, as far as they are quicker read together.

        Raises:
            StorageError: They cannot be read, for a reason that concerns all of them.
        """
        return MeasuredRun(_NO_RESOURCES, (), run)

    def prefetch(self, originals: Sequence[Original]) -> None:
        """Begin to read these, at most 64: each is measured next, in this order."""
        del originals

    def check_gone(self, uri: str) -> None:
        """Raise a ``StorageError`` if an original is no longer listed, but may still be there."""
        del uri


class WrappedOriginals(Originals):
    """Originals whose resources get something more when they are measured."""

    def __init__(self, originals: Originals) -> None:
        self._originals = originals

    def scan(self) -> Iterator[Original]:
        """Yield every original."""
        return self._originals.scan()

    def runs(self) -> Iterator[Sequence[Original]]:
        """Yield the same, some hundred at a time."""
        return self._originals.runs()

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read the bytes of an original."""
        return self._originals.measure(original)

    def open(self, uri: str) -> BinaryIO | None:
        """Open an original; ``None`` when there is none."""
        return self._originals.open(uri)

    def omissions(self) -> Sequence[Omission]:
        """Return what the last scan omitted."""
        return self._originals.omissions()

    def prefetch(self, originals: Sequence[Original]) -> None:
        """Begin to read originals."""
        self._originals.prefetch(originals)

    def check_gone(self, uri: str) -> None:
        """Raise an error if an original may still be there."""
        self._originals.check_gone(uri)


class ResourceContents(Protocol):
    """The bytes of the resources, as far as they are still available."""

    def contains(self, resource: Resource) -> bool:
        """True if the bytes of a former version are stored."""

    def open(self, resource: Resource) -> BinaryIO | None:
        """Open the bytes that a resource had; ``None`` when they are gone.

        They may be those of a later version: who reads them compares length and digests.

        Raises:
            StorageError: They exist, and cannot be read.
        """

    def open_patch(self, patch: Link) -> BinaryIO | None:
        """Open a patch that leads to a version from the one before; ``None`` if it is not stored.

        Raises:
            StorageError: It exists, and cannot be read.
        """

    def measure(self, uri: str) -> Resource | None:
        """Read the present resource of a URI; ``None`` if it is gone.

        Raises:
            OriginalChangedError: It changed all the time while it was read.
            StorageError: It cannot be read.
        """


class OriginalsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options to open originals with.

    Attributes:
        address: Their address, as the operator wrote it: ``SCHEME:`` and more, no secret in it.
        base_uri: The address of the published Source, with a slash at its end. What is
            at the address has this URI; the rest follows below it.
        algorithms: Digests to compute of each, the strongest first, such as ``sha-256``.
        values: The operator's options by their keys.
    """

    address: str
    base_uri: str
    algorithms: tuple[str, ...] = ("sha-256",)
    values: Mapping[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"OriginalsOptions(address={self.address!r}, base_uri={self.base_uri!r})"
