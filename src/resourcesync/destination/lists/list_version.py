"""Versions of a Resource List, as they are stored in a mirror's state."""

import msgspec


class ListVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Version of a Resource List, of its index, or of a part of it.

    Attributes:
        uri: Its address.
        digest: SHA-256 of its bytes.
        etag, last_modified: Validators for a conditional request.
        at: Latest moment that it states, microseconds; ``None`` if it states none.
        over: End of the interval in which the index dates a part, microseconds; ``None`` if it does
            not.
        parts: Parts that the index does not prove to be unchanged; ``None`` if unknown.
    """

    uri: str = ""
    digest: str = ""
    etag: str = ""
    last_modified: str = ""
    at: int | None = None
    over: int | None = None
    parts: tuple["ListVersion", ...] | None = None
