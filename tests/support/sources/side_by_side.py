"""The real resync 2.0.1 and our names of it, asked the same, and their answers as plain values."""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any, Final

import pytest

import resourcesync.compat.resync as ours
from resourcesync.model.timestamps import format_w3c, parse_w3c

needs_resync: Final = [
    pytest.mark.skipif(
        sys.version_info >= (3, 12),
        reason="resync 2.0.1 imports distutils, which Python 3.12 no longer has",
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("resync") is None, reason="resync 2.0.1 is not installed"
    ),
    # resync leaves files open, which is a warning where Python counts references.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""Marks of a test that asks the real resync."""

FIELDS: Final = (
    "uri", "timestamp", "length", "mime_type", "md5", "sha1", "sha256", "change", "path",
    "capability",
)  # fmt: skip


class Library:
    """One of the two: each name from the module in which resync has it.

    Args:
        package: ``resync``, or our package.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    def __repr__(self) -> str:
        return self.package

    def __getattr__(self, module: str) -> ModuleType:
        return importlib.import_module(f"{self.package}.{module}")


REAL: Final = Library("resync")
OURS: Final = Library(ours.__name__)


def moments(md: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a list, its times in one form, as ours always are."""
    return {
        name: format_w3c(parse_w3c(value)) if name.startswith("md_") and value else value
        for name, value in md.items()
        if value is not None
    }


def link_values(links: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return links, their times in one form."""
    return [
        {
            name: format_w3c(parse_w3c(value)) if name == "modified" else value
            for name, value in link.items()
            if name != "encoding"  # which resync does not read
        }
        for link in links or []
    ]


def resource_values(resource: Any) -> dict[str, Any]:
    """Return what a resource says."""
    found = {name: getattr(resource, name) for name in FIELDS}
    found["uri"] = found["uri"].strip()
    return {**found, "ln": link_values(resource.ln)}


def values(found: Any) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what a list says: header, links, entries."""
    return moments(found.md), link_values(found.ln), [resource_values(each) for each in found]
