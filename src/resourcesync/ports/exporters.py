"""Exporters: plug-ins of ``resourcesync.exporters``, with their input and output.

An exporter is a function from `MirrorSnapshot` and `ExportOptions` to `ExportFile` values.
It opens no file and writes none: it only returns which bytes go where. So a test needs no disk.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import BinaryIO, NamedTuple, Protocol

import msgspec

from resourcesync.ports.mirror import Copy


class MirrorSnapshot(Protocol):
    """The copies of a mirror at one moment, isolated from any pull."""

    @property
    def source(self) -> str:
        """The Source's address, as the operator gave it."""

    @property
    def capability_list(self) -> str:
        """The Capability List of the set; the Source's address where there is none."""

    @property
    def as_of(self) -> datetime | None:
        """The Source's time up to which the mirror is complete, UTC; ``None`` if unknown."""

    @property
    def now(self) -> datetime:
        """Start of the export, UTC."""

    def copies(self) -> Iterator[Copy]:
        """Yield the copies in rising URI order; may be called several times.

        With `ExportOptions.versions`, several may have one URI, in the order of ``installed``.
        """

    def content(self, copy: Copy) -> Iterator[bytes]:
        """Yield the bytes of a copy, at most 1 MiB at a time; call in the order of ``copies``.

        If they are not those of the mirror's state, the export ends and leaves nothing.
        """

    def media_type(self, copy: Copy) -> str:
        """Return the media type by the address; ``application/octet-stream`` if unknown."""

    def scratch(self) -> BinaryIO:
        """Open a nameless temporary file; the caller closes it."""


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an export.

    Attributes:
        name: The name of the chosen place; its ending tells an exporter whether one file is wanted.
        max_package: The most bytes of content in one package.
        url: Future address of the folder; empty when it is not served.
        organization: Organization that publishes the copies; empty for none.
        since: Only copies that came since, UTC; the holdings have no others then. ``None``: all.
        versions: True for all stored versions, also of deleted resources. An exporter that can
            write only one copy of a URI must refuse it.
    """

    name: str
    max_package: int
    url: str = ""
    organization: str = ""
    since: datetime | None = None
    versions: bool = False


class ExportFile(NamedTuple):
    """One file of an export.

    Attributes:
        path: Its place below the chosen one, with ``/``; empty when that itself is the file, which
            is then the only one.
        content: Its bytes, in pieces.
    """

    path: str
    content: Iterable[bytes]


class Exporter(Protocol):
    """A function that yields the files of an export."""

    def __call__(self, holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
        """Yield the files in the order they are written; each is taken before the next.

        Raises:
            ConfigurationError: The options cannot work.
        """
