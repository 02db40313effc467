"""The options of a publication, as its parts need them; the request and result of one run."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from resourcesync.ports import Reporter
from resourcesync.ports.originals import Omission
from resourcesync.source.document_writer import WrittenDocument
from resourcesync.source.publication_settings import PublicationSettings
from resourcesync.source.publisher import Publication
from resourcesync.source.scan_for_changes import LeftFile, ScanReport
from resourcesync.source.stored_plan import PublicationStep
from resourcesync.source.versions.version_retention import NOTHING_RETAINED, RetentionCounts

if TYPE_CHECKING:
    from resourcesync.source.dumps.dump_publisher import DumpOutcome, DumpRequest
    from resourcesync.source.notifications import Notified

_log = logging.getLogger(__name__)


class LeftAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address that a tree had before another one, and the names of the dumps listed there."""

    url: str
    dumps: tuple[str, ...] = ()


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a publication; its fields are those of ``run.end`` in ``--json``.

    Attributes:
        url: The address that the folder is published for.
        first: True if nothing had been published from this folder before.
        dry_run: True if nothing was written on purpose.
        resources: Files that are published, or resources of a catalogue.
        bytes: Bytes of the files; 0 for a catalogue, which has none.
        hashed: Files that were read.
        created, updated, deleted: Changes that are listed now and were not before; of a first
            publication, and in a dry run, what is new, has new bytes and is gone.
        touched: Files with other metadata and the same bytes.
        read: What was read of another system, such as records and requests.
        changing, unreadable: Files that changed while they were read, or cannot be read: their
            former entries stay.
        left: The first 100 of those.
        omitted: Files that exist and cannot be published.
        mended: Rows of the catalogue that could not be published as another program wrote them.
            Each is logged as a warning.
        versions, patches: Stored versions of files, and patches between them.
        written: The documents that were written, in this order.
        removed: Names of removed documents, which are no longer offered.
        seconds: Duration.
    """

    url: str
    first: bool = False
    dry_run: bool = False
    resources: int = 0
    bytes: int = 0
    hashed: int = 0
    created: int = 0
    updated: int = 0
    deleted: int = 0
    touched: int = 0
    read: Mapping[str, int] = {}
    changing: int = 0
    unreadable: int = 0
    left: tuple[LeftFile, ...] = ()
    omitted: int = 0
    mended: int = 0
    versions: int = 0
    patches: int = 0
    written: tuple[WrittenDocument, ...] = ()
    removed: tuple[str, ...] = ()
    seconds: float = 0.0


class PublicationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a publication.

    ``omissions`` are the first files that exist and cannot be published, ``omitted_for`` the number
    of all of them, folders too, by reasons; neither has those that the owner excluded.
    ``unmatched`` globs are those that are new and that no file matches; all of them in a dry run.
    ``dropped`` ones were replaced, each with the name of its setting. ``foreign_origins`` are the
    first origins of resources other than the Source's own. ``root`` is the folder that places in
    the settings are relative to.
    """

    settings: PublicationSettings
    root: Path = Path()
    scan: ScanReport
    publication: Publication
    dumped: "DumpOutcome | None" = None
    retained: RetentionCounts = NOTHING_RETAINED  # versions that were stored now
    omissions: tuple[Omission, ...] = ()
    omitted_for: Mapping[str, int] = {}
    dry_run: bool = False
    notified: "Notified | None" = None
    left: LeftAddress | None = None  # the address before, if it was another one
    unmatched: tuple[str, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    robots_line: str = ""  # that the owner's robots.txt lacks
    former_out: str = ""  # the place of the documents before, if it was another one
    foreign_origins: tuple[str, ...] = ()
    read: Mapping[str, int] = {}
    mended: int = 0  # rows of the catalogue that could not be published as they were
    seconds: float = 0.0

    @property
    def documents_written(self) -> tuple[WrittenDocument, ...]:
        """Return the written documents, those of dumps last."""
        return (*self.publication.written, *(self.dumped.written if self.dumped else ()))

    def report(self) -> Published:
        """Return the result for programs and their users."""
        scan, made = self.scan, self.publication
        written = {document.name for document in self.documents_written}  # in place of removed ones
        # The first publication lists no change, but each resource is new to its readers.
        resources = scan.files - scan.unlisted
        new = resources if made.first else made.created
        return Published(
            url=self.settings.url,
            first=made.first,
            dry_run=self.dry_run,
            resources=resources,
            bytes=scan.bytes,
            hashed=scan.hashed,
            created=new,
            updated=made.updated,
            deleted=made.deleted,
            touched=scan.touched,
            read=self.read,
            changing=scan.changing,
            unreadable=scan.unreadable,
            left=scan.left,
            omitted=scan.omitted,
            mended=self.mended,
            versions=self.retained.versions,
            patches=self.retained.patches,
            written=made.written,
            removed=tuple(name for name in made.removed if name not in written),
            seconds=self.seconds,
        )


def _log_warning(event: str, fields: Mapping[str, object]) -> None:
    _log.warning("%s: %s", event, fields["message"])


class PublishRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one run, which are not stored.

    ``report`` receives a warning for each row of the catalogue that cannot be published, before it
    is mended. By default it is logged.
    """

    step: PublicationStep = PublicationStep.DUE
    dry_run: bool = False  # scan and hash, write nothing
    allow_empty: bool = False  # publish a tree without files: everything is deleted then
    dumps: "DumpRequest | None" = None
    report: Reporter = _log_warning
