"""The lines of a manifest (BagIt 1.0, RFC 8493)."""

from typing import Final

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
