"""Originals that are not files of a folder: plug-ins, their bytes, and their events."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, runtime_checkable

from resourcesync.model.links import Link
from resourcesync.model.resources import Resource
from resourcesync.ports.catalogue import Original, Originals


class OriginalReader(Protocol):
    """Originals whose bytes can be read."""

    def open(self, uri: str) -> BinaryIO | None:
        """Open an original; ``None`` when there is none.

        Raises:
            StorageError: It exists, but cannot be read.
        """

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read the bytes once; return the resource with its digests, and its fingerprint.

        Raises:
            OriginalChangedError: It changed or vanished during the read.
            StorageError: It cannot be read.
        """


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalsOptions:
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
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


class OpenOriginals(Originals, OriginalReader, Protocol):
    """Originals that can be listed and read.

    ``scan`` yields them in rising order of their URIs, which is rarely the order of a listing; and
    it yields none before all are listed, or raises when the listing breaks off.
    """


@runtime_checkable
class PrefetchingOriginals(Originals, Protocol):
    """Originals that can be read ahead; optional for a plug-in."""

    def prefetch(self, originals: Sequence[Original]) -> None:
        """Begin to read these, at most 64: each is measured next, in this order."""


OriginalsFactory = Callable[[OriginalsOptions], AbstractContextManager[OpenOriginals]]
"""Opens originals; the ``with`` block closes them."""


class Watcher(Protocol):
    """A watcher that gives hints, never facts: it may report too much, and it may miss changes."""

    def wait(self, seconds: float) -> bool:
        """Wait for a hint that something changed, no longer than ``seconds``.

        Returns:
            True if there was one since the last call; at once if it came before.

        Raises:
            StorageError: Nothing can be watched any more.
        """
