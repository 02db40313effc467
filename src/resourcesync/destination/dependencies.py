"""Dependencies of a Destination."""

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO, Protocol

import msgspec

from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.ports import CancelToken, Clock, Copies, Fetcher, Reporter

if TYPE_CHECKING:
    from resourcesync.ports.patches import PatchFormat


class FindingWriter(Protocol):
    """A writer of the findings of one audit, from which a repair reads them."""

    def add(self, fields: Mapping[str, object]) -> None:
        """Write one finding: its kind, URI, path and reason."""

    def set_name(self, audit: str, moment: str) -> None:
        """Set the audit's id and its time, as ``20261121020004``; without it nothing is stored."""


class StoredParts(Protocol):
    """Parts of the index that was read last, as they were sent, by their SHA-256 in hex.

    They only save requests: what is lost, damaged or cannot be stored is requested again.
    """

    def open(self, digest: str) -> BinaryIO | None:
        """Return the bytes with this SHA-256, to be closed after use."""

    def add(self, digest: str, stream: BinaryIO) -> None:
        """Store the bytes of a stream, which have this SHA-256."""

    def retain(self, digests: Container[str]) -> None:
        """Remove all others."""


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of a Destination.

    ``source`` is the given address (``None``: that of the last pull). ``scratch`` opens an unnamed
    temporary file on the mirror's disk, ``purge`` removes one file of the trash for good,
    ``drop_parts`` the partial downloads that a later run could continue. ``traffic`` returns
    requests sent and bytes received, ``room`` the free bytes, ``certificate_until`` the end of the
    first TLS certificate of the servers of the lists. ``is_expected``: a first pull that fails is
    recorded. ``workers`` fetch the resources of a plan. ``resource_fetcher`` is the network without
    the measurement of clocks. ``stored_parts`` returns the parts of the Resource List read last.
    """

    folder: str
    source: str | None = None
    fetcher: Fetcher
    copies: Copies
    state: SqliteMirrorState
    clock: Clock
    cancel: CancelToken
    report: Reporter
    scratch: Callable[[], BinaryIO]
    check_folder: Callable[[], None]
    purge: Callable[[str], None]
    drop_parts: Callable[[], None] = lambda: None
    is_case_sensitive: bool = True
    traffic: Callable[[], tuple[int, int]] = lambda: (0, 0)
    certificate_until: Callable[[], datetime | None] = lambda: None
    room: Callable[[], int | None] = lambda: None
    patches: "Callable[[], Mapping[str, PatchFormat]]" = dict
    is_expected: bool = False
    workers: Fetcher | None = None
    findings: Callable[[], AbstractContextManager[FindingWriter | None]] = nullcontext
    resource_fetcher: Fetcher | None = None
    stored_parts: Callable[[], StoredParts | None] = lambda: None
