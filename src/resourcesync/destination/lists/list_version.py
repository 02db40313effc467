"""Versions of a Resource List, as they are stored in a mirror's state."""

from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.model.timestamps import Microseconds

_DAY: Final = 24 * 3_600_000_000


class ListVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Version of a Resource List, of its index, or of a part of it.

    ``at`` is the latest moment that it states. ``over`` is the end of the interval in which the
    index dates a part. ``parts`` are those that the index does not prove to be unchanged; ``None``:
    unknown.
    """

    uri: str = ""
    digest: str = ""
    etag: str = ""
    last_modified: str = ""
    at: Microseconds | None = None
    over: Microseconds | None = None
    parts: tuple["ListVersion", ...] | None = None

    def without_old_dates(self, read_at: int | None, now: int) -> "ListVersion":
        """Return the version without the validators that are no longer believed.

        See `is_believed`.
        """
        parts = self.parts and tuple(part.without_old_dates(read_at, now) for part in self.parts)
        version = replace(self, parts=parts)
        return (
            version if is_believed(self.etag, read_at, now) else replace(version, last_modified="")
        )


def is_believed(etag: str, read_at: int | None, now: int) -> bool:
    """True if "not modified" is believed of a list.

    A ``Last-Modified`` may be that of a part of what the list is made of, so without an ``ETag`` a
    list is read without a condition once a day.
    """
    return etag != "" or (read_at is not None and 0 <= now - read_at < _DAY)
