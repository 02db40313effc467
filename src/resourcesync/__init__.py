"""ResourceSync (ANSI/NISO Z39.99) and plain sitemaps: publish a Source, synchronize a mirror.

Importing this package costs nothing: each name is imported from its module on first use. Type
checkers read ``__init__.pyi``.
"""

from resourcesync.lazy_exports import export_lazily as _lazily

__version__ = "0.2.0"
"""Version of this package, such as ``1.2.3``."""

_HOMES = {
    "AuditFinding": "destination.audits.reports",
    "AuditReport": "destination.audits.reports",
    "AuditRolling": "destination.audits.sampling",
    "Capability": "model.vocabulary",
    "Catalogue": "app.publisher",
    "Change": "model.entries",
    "ChangeKind": "model.vocabulary",
    "Credentials": "settings.mirror",
    "Digest": "model.digests",
    "Document": "documents.reader",
    "Event": "app.mirror",
    "FailedRun": "destination.reports",
    "Failing": "destination.reports",
    "FindingKind": "destination.audits.reports",
    "Header": "model.entries",
    "LeftFile": "source.scan_for_changes",
    "Level": "validator.rule",
    "Link": "model.entries",
    "Mirror": "app.mirror",
    "MirrorChange": "app.mirror_changes",
    "MirrorOptions": "app.keywords",
    "MirrorState": "destination.reports",
    "MirrorStatus": "destination.reports",
    "MirroredResource": "app.mirror_changes",
    "Mode": "destination.reports",
    "Network": "settings.mirror",
    "OfferedSet": "discovery.sets",
    "Posted": "ports.accounts",
    "Published": "source.publication_options",
    "Publisher": "app.publisher",
    "PublisherOptions": "app.keywords",
    "Resource": "model.entries",
    "ResourceSyncError": "errors",
    "Rule": "validator.rule",
    "RuleFinding": "validator.rule",
    "RunReport": "destination.reports",
    "Severity": "validator.rule",
    "Source": "app.source",
    "SourceLists": "discovery.sets",
    "WrittenDocument": "source.document_writer",
    "discover": "app.source",
    "offered_sets": "app.source",
    "read": "documents.reader",
    "validate": "app.validation",
    "write": "documents.checked_writer",
}

__all__ = sorted([*_HOMES, "__version__"])  # noqa: PLE0605
__getattr__, __dir__ = _lazily(__name__, _HOMES)
