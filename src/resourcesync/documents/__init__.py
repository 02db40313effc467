"""Documents and packages as streams: XML, JSON and ZIP to values and back; nothing is opened here.

The names below are public; the modules are not. Each name is imported at its first use;
``__init__.pyi`` declares them for type checkers.
"""

from resourcesync import export_lazily as _lazily

_HOMES = {
    "Capability": "model.vocabulary",
    "CapabilityEntry": "model.entries",
    "Change": "model.entries",
    "ChangeKind": "model.vocabulary",
    "Dialect": "model.vocabulary",
    "Digest": "model.digests",
    "Document": "documents.reader",
    "DocumentChange": "model.entries",
    "Entry": "model.entries",
    "Header": "model.entries",
    "Limits": "documents.reader",
    "Link": "model.entries",
    "Package": "model.entries",
    "Part": "model.entries",
    "RefusedEntry": "model.entries",
    "Relation": "model.vocabulary",
    "Resource": "model.entries",
    "Tolerated": "documents.reader",
    "format_digests": "model.digests",
    "format_time": "model.timestamps:format_w3c",
    "parse_digests": "model.digests",
    "parse_time": "model.timestamps:parse_w3c",
    "read": "documents.reader",
    "write": "documents.checked_writer",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = _lazily(__name__, _HOMES)
