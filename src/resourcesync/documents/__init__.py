"""Bytes to values and back: XML and ZIP, streaming; nothing is opened here.

The names below are public; the modules are not. Each is fetched from its home when it is first
used; what type checkers see stands in ``__init__.pyi``.
"""

__all__ = [
    "Capability",
    "CapabilityEntry",
    "Change",
    "ChangeKind",
    "Dialect",
    "Digest",
    "Document",
    "DocumentChange",
    "Entry",
    "Header",
    "Limits",
    "Link",
    "Package",
    "Part",
    "RefusedEntry",
    "Relation",
    "Resource",
    "Tolerated",
    "format_digests",
    "format_time",
    "parse_digests",
    "parse_time",
    "read",
    "write",
]

_HOMES = {
    "Capability": "model.vocabulary",
    "CapabilityEntry": "model.capabilities",
    "Change": "model.resources",
    "ChangeKind": "model.vocabulary",
    "Dialect": "model.vocabulary",
    "Digest": "model.digests",
    "Document": "documents.reading",
    "DocumentChange": "model.capabilities",
    "Entry": "model.capabilities",
    "Header": "model.capabilities",
    "Limits": "documents.reading",
    "Link": "model.links",
    "Package": "model.capabilities",
    "Part": "model.capabilities",
    "RefusedEntry": "model.capabilities",
    "Relation": "model.vocabulary",
    "Resource": "model.resources",
    "Tolerated": "documents.reading",
    "format_digests": "model.digests",
    "format_time": "model.timestamps:format_w3c",
    "parse_digests": "model.digests",
    "parse_time": "model.timestamps:parse_w3c",
    "read": "documents.front",
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
