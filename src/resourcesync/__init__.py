"""ResourceSync (ANSI/NISO Z39.99) and plain sitemaps: publish a Source, keep a mirror in step.

Importing this costs nothing yet: each name is fetched from its home when it is first used. What
type checkers see stands beside it, in ``__init__.pyi``.
"""

__version__ = "0.1.0"
__all__ = [
    "AuditFinding",
    "AuditReport",
    "AuditRolling",
    "Capability",
    "Change",
    "ChangeKind",
    "Credentials",
    "Digest",
    "Document",
    "Event",
    "Failing",
    "FindingKind",
    "Header",
    "LeftFile",
    "Level",
    "Link",
    "Mirror",
    "MirrorChange",
    "MirrorChangeKind",
    "MirrorOptions",
    "MirrorState",
    "MirrorStatus",
    "Mode",
    "Network",
    "OfferedSet",
    "Plan",
    "PlannedAction",
    "Published",
    "Publisher",
    "PublisherOptions",
    "Resource",
    "ResourceSyncError",
    "Rule",
    "RuleFinding",
    "RunReport",
    "Severity",
    "Source",
    "SourceLists",
    "WrittenDocument",
    "__version__",
    "discover",
    "offered_sets",
    "read",
    "validate",
    "write",
]

_HOMES = {
    "AuditFinding": "destination.reports:Finding",
    "AuditReport": "destination.reports",
    "AuditRolling": "destination.proving:Rolling",
    "Capability": "model.vocabulary",
    "Change": "model.resources",
    "ChangeKind": "model.vocabulary",
    "Credentials": "wiring.credentials",
    "Digest": "model.digests",
    "Document": "documents.reading",
    "Event": "api.calls",
    "Failing": "destination.reports",
    "FindingKind": "destination.reports",
    "Header": "model.capabilities",
    "LeftFile": "source.scan:Left",
    "Level": "validator.rule",
    "Link": "model.links",
    "Mirror": "api.mirror",
    "MirrorChange": "api.handing_on",
    "MirrorChangeKind": "ports.changes:LoggedKind",
    "MirrorOptions": "api.settings",
    "MirrorState": "destination.reports",
    "MirrorStatus": "destination.reports",
    "Mode": "destination.reports",
    "Network": "wiring.mirrors",
    "OfferedSet": "discovery.sets",
    "Plan": "api.plans",
    "PlannedAction": "api.plans",
    "Published": "api.publisher",
    "Publisher": "api.publisher",
    "PublisherOptions": "api.settings",
    "Resource": "model.resources",
    "ResourceSyncError": "errors",
    "Rule": "validator.rule",
    "RuleFinding": "validator.findings:Finding",
    "RunReport": "destination.reports",
    "Severity": "validator.rule",
    "Source": "api.source",
    "SourceLists": "discovery.discover:Discovered",
    "WrittenDocument": "source.shelf:Written",
    "discover": "api.source",
    "offered_sets": "api.source",
    "read": "documents.front",
    "validate": "api.judging",
    "write": "documents.writing",
}


def __getattr__(name: str) -> object:
    """Return a public name; what it needs is imported when it is asked for the first time."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, _, own = _HOMES[name].partition(":")
    from importlib import import_module  # noqa: PLC0415 - importing the package costs nothing

    value: object = getattr(import_module(f"resourcesync.{home}"), own or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, asked for already or not."""
    return sorted({*globals(), *__all__})
