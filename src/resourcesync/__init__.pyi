import collections.abc

from resourcesync.app.keyword_types import MirrorOptions as MirrorOptions
from resourcesync.app.keyword_types import PublisherOptions as PublisherOptions
from resourcesync.app.mirror import Event as Event
from resourcesync.app.mirror import Mirror as Mirror
from resourcesync.app.mirror_changes import MirrorChange as MirrorChange
from resourcesync.app.mirror_changes import MirroredResource as MirroredResource
from resourcesync.app.publisher import Catalogue as Catalogue
from resourcesync.app.publisher import Publisher as Publisher
from resourcesync.app.source import Source as Source
from resourcesync.app.source import discover as discover
from resourcesync.app.source import offered_sets as offered_sets
from resourcesync.app.validation import validate as validate
from resourcesync.destination.audits.reports import AuditFinding as AuditFinding
from resourcesync.destination.audits.reports import AuditReport as AuditReport
from resourcesync.destination.audits.reports import FindingKind as FindingKind
from resourcesync.destination.audits.sampling import AuditRolling as AuditRolling
from resourcesync.destination.reports import FailedRun as FailedRun
from resourcesync.destination.reports import Failing as Failing
from resourcesync.destination.reports import MirrorState as MirrorState
from resourcesync.destination.reports import MirrorStatus as MirrorStatus
from resourcesync.destination.reports import Mode as Mode
from resourcesync.destination.reports import RunReport as RunReport
from resourcesync.discovery.sets import OfferedSet as OfferedSet
from resourcesync.discovery.sets import SourceLists as SourceLists
from resourcesync.documents.checked_writer import write as write
from resourcesync.documents.reader import Document as Document
from resourcesync.documents.reader import read as read
from resourcesync.errors import ResourceSyncError as ResourceSyncError
from resourcesync.model.digests import Digest as Digest
from resourcesync.model.entries import Change as Change
from resourcesync.model.entries import Header as Header
from resourcesync.model.entries import Link as Link
from resourcesync.model.entries import Resource as Resource
from resourcesync.model.vocabulary import Capability as Capability
from resourcesync.model.vocabulary import ChangeKind as ChangeKind
from resourcesync.ports.accounts import Posted as Posted
from resourcesync.settings.mirror import Credentials as Credentials
from resourcesync.settings.mirror import Network as Network
from resourcesync.source.document_writer import WrittenDocument as WrittenDocument
from resourcesync.source.publication_options import Published as Published
from resourcesync.source.scan_for_changes import LeftFile as LeftFile
from resourcesync.validator.rule import Level as Level
from resourcesync.validator.rule import Rule as Rule
from resourcesync.validator.rule import RuleFinding as RuleFinding
from resourcesync.validator.rule import Severity as Severity

__version__: str

def export_lazily(
    package: str, homes: collections.abc.Mapping[str, str]
) -> tuple[collections.abc.Callable[[str], object], collections.abc.Callable[[], list[str]]]: ...
