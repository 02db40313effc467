"""Packages whose manifest is an index of manifests, as 0.5 has them."""

from collections.abc import Mapping, Sequence

from tests.support.documents.packages import Forged, forge, tarball
from tests.support.documents.text import document

RESOURCES_MD = '<rs:md capability="resourcedump-manifest" modified="2026-01-01T00:00:00Z"/>'
CHANGES_MD = '<rs:md capability="changedump-manifest" modified="2026-01-01T01:00:00Z"/>'


def index_of(paths: Sequence[str], md: str = RESOURCES_MD) -> bytes:
    """A manifest that lists manifests in the package."""
    parts = (f'<sitemap><loc>{path}</loc><rs:md path="{path}"/></sitemap>' for path in paths)
    return document(*parts, root="sitemapindex", md=md)


def nested(
    parts: Mapping[str, bytes],
    members: Mapping[str, bytes],
    *,
    md: str = RESOURCES_MD,
    mode: str = "",
    index: bytes = b"",
) -> bytes:
    """A package with a manifest of manifests.

    Args:
        parts: The manifests by their paths, in the order of the index.
        members: All else, by name.
        md: The root's ``rs:md`` of the index.
        mode: That of a tar, such as ``w:xz``; empty makes a ZIP.
        index: The first manifest, if it is another than that of the parts.
    """
    files = [("manifest.xml", index or index_of(list(parts), md))]
    files += [(path.lstrip("/"), body) for path, body in parts.items()]
    files += members.items()
    if mode:
        return tarball(*files, mode=mode)
    return forge(*(Forged(name.encode(), body, method=8) for name, body in files))
