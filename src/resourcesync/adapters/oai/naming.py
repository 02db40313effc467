"""Where the metadata of an item lies below the published folder. Pure."""

import hashlib
import re
from collections.abc import Container
from typing import Final
from urllib.parse import quote

FOLDER: Final = "resource"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._=+,@()-]")
_LONGEST: Final = 120
_MOST_PARTS: Final = 16
_BY_IDENTIFIER: Final = "~id"
_EMPTY: Final = "~-"


def file_name(prefix: str, suffix: str) -> str:
    """Return the name of the file of one format, such as ``oai_dc.xml``."""
    return f"{_safe(prefix)}{suffix}"


def path_of(identifier: str, name: str, namespace: str, names: Container[str]) -> str:
    """Return the place of an item's metadata in one format, as ``resource/10673/5/oai_dc.xml``.

    No two pairs of identifier and name have one place, and none lies below another's.

    Args:
        identifier: The item's identifier.
        name: The name of the file, one of ``names``.
        namespace: ``repositoryIdentifier`` of the provider, which is left out with ``oai:``.
        names: The names of the files of all formats.
    """
    begin = f"oai:{namespace}:"
    local = identifier.removeprefix(begin) if namespace else identifier
    parts = [_safe(part) for part in local.split("/")]
    if local in ("", identifier) or len(parts) > _MOST_PARTS:
        parts = [_BY_IDENTIFIER, _safe(identifier)]
    # Marked, so that no identifier has a folder where another one has a file.
    folder = "/".join(f"{part}~d" if part in names else part for part in parts)
    return f"{FOLDER}/{folder}/{name}"


def uri_of(base_uri: str, path: str) -> str:
    """Return the address of a place."""
    return base_uri + quote(path, safe="/~=+,@()-._")


def _safe(part: str) -> str:
    """Return a name that every file system takes and no other text leads to."""
    if not part:
        return _EMPTY
    found = _UNSAFE.sub(_escaped, part)
    if found.startswith("."):
        found = f"~2E{found[1:]}"
    if found.endswith("."):
        found = f"{found[:-1]}~2E"
    if len(found) > _LONGEST:
        digest = hashlib.sha256(part.encode()).hexdigest()
        found = f"{found[: _LONGEST - 70]}~~{digest}"
    return found


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"~{octet:02X}" for octet in match[0].encode("utf-8", "surrogatepass"))
