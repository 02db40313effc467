"""XML Patches, done in memory."""

import io

from resourcesync.documents.patches.xml_patch import apply


def patched(document: bytes, patch: bytes, limit: int = 1 << 20) -> bytes:
    """Return what a patch makes of a document."""
    result = io.BytesIO()
    apply(io.BytesIO(document), io.BytesIO(patch), result, limit)
    return result.getvalue()
