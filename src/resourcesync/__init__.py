"""ResourceSync (ANSI/NISO Z39.99) and plain sitemaps: publish a Source, synchronize a mirror.

Importing this package costs nothing: each name is imported from its module on first use. Type
checkers read ``__init__.pyi``.
"""

import sys

TYPE_CHECKING = False  # as in ``typing``, which costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


def export_lazily(
    package: str, homes: "Mapping[str, str]"
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Return ``__getattr__`` and ``__dir__`` for a package (PEP 562).

    Each name has a home: ``MODULE``, ``MODULE:OTHER_NAME``, or ``MODULE:`` for the module itself.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, is_module, own = homes[name].partition(":")
        from importlib import import_module  # noqa: PLC0415 - importing the package costs nothing

        module = import_module(f"resourcesync.{home}")
        value: object = module if is_module and not own else getattr(module, own or name)
        vars(sys.modules[package])[name] = value
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names


__all__ = sorted([*_HOMES, "__version__"])  # noqa: PLE0605
__getattr__, __dir__ = export_lazily(__name__, _HOMES)
