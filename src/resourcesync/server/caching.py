"""The ``Cache-Control`` of what is served: what never changes, what may, and what is secret."""

import re
from collections.abc import Mapping
from typing import Final

NO_CACHE: Final = {"cache-control": "no-cache"}
FOREVER: Final = {"cache-control": "max-age=31536000, immutable"}
NO_STORE: Final = {"cache-control": "no-store"}

# A numbered Change List may still be open, and grow; a numbered Resource List never changes, nor
# does a package.
_IMMUTABLE: Final = re.compile(
    rb"resourcelist-.+-[0-9]{4,}\.xml|(?:resource|change)list_.+Z(?:-[0-9]+)?\.xml"
    rb"|(?:resource|change)dump-.+(?:\.zip|-manifest\.xml)",
    re.DOTALL,
)


def document_caching(name: bytes) -> Mapping[str, str]:
    """Return the ``Cache-Control`` of a ResourceSync document or package with this name."""
    return FOREVER if _IMMUTABLE.fullmatch(name) else NO_CACHE
