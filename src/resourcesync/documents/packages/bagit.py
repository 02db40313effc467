"""The tag files of a bag (BagIt 1.0, RFC 8493)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

DECLARATION: Final = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
"""The file ``bagit.txt`` (§2.1.1)."""

PAYLOAD: Final = "data/"
"""The folder of a bag's content (§2.1.2)."""

_ENCODED: Final = str.maketrans({"%": "%25", "\n": "%0A", "\r": "%0D"})


def encode_path(path: str) -> str:
    """Return a path as manifests write it: line ends and percent signs encoded (§2.1.3)."""
    return path.translate(_ENCODED)


def manifest_line(digest: str, path: str) -> str:
    """Return the line of a file in a manifest (§2.1.3).

    Args:
        digest: Its digest in hexadecimal.
        path: Its place in the bag, such as ``data/a.txt``.
    """
    return f"{digest}  {encode_path(path)}\n"


def bag_info(elements: Iterable[tuple[str, str]]) -> bytes:
    """Return the file ``bag-info.txt`` (§2.2.2); elements without a value are left out.

    A value stays on one line: line ends in it become blanks.
    """
    lines = [f"{label}: {' '.join(value.split())}\n" for label, value in elements if value.strip()]
    return "".join(lines).encode()


def day(moment: datetime) -> str:
    """Return the day of a moment as ``Bagging-Date`` writes it (§2.2.2)."""
    return moment.strftime("%Y-%m-%d")
