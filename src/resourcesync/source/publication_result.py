"""The options of one publication, and its result."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from resourcesync.ports.catalogue import Omission
from resourcesync.settings.publication import PublicationSettings
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publisher import Publication
from resourcesync.source.scan import ScanReport
from resourcesync.source.versions.version_retention import NOTHING_RETAINED, RetentionCounts

if TYPE_CHECKING:
    from resourcesync.source.dumps.dump_publication import DumpRequest
    from resourcesync.source.dumps.dump_publisher import DumpOutcome
    from resourcesync.source.notifications import Notified


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationResult:
    """The result of a publication.

    Attributes:
        settings: The settings in force.
        scan: The result of the scan.
        publication: The result of writing; nothing in a dry run.
        omissions: The first files that exist and cannot be published.
        dry_run: True if nothing was written on purpose.
        dumped: The result of the dumps, if requested.
        retained: The versions that were stored now.
        notified: The result of notifying the hubs.
        foreign_origins: The first origins of resources, other than the Source's own; reported the
            first time.
    """

    settings: PublicationSettings
    scan: ScanReport
    publication: Publication
    dumped: "DumpOutcome | None" = None
    retained: RetentionCounts = NOTHING_RETAINED
    omissions: tuple[Omission, ...] = ()
    dry_run: bool = False
    notified: "Notified | None" = None
    foreign_origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRequest:
    """The options of one run, which are not stored.

    Attributes:
        step: The step; by default what is due.
        dry_run: Scan and hash, write nothing.
        allow_empty: Publish a tree without files: everything is deleted then.
        dumps: The dumps to write too.
    """

    step: PublicationStep = PublicationStep.DUE
    dry_run: bool = False
    allow_empty: bool = False
    dumps: "DumpRequest | None" = None
