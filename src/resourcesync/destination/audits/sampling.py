"""Sample of an audit: the copies that it verifies, at random or longest ago first."""

import zlib
from collections.abc import Iterator
from itertools import islice
from math import ceil
from typing import Final

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy

_HASH_RANGE: Final = 1 << 32


class AuditRolling(msgspec.Struct, frozen=True, kw_only=True):
    """Selection of the copies to verify.

    Attributes:
        share: Share of the copies, more than 0 and at most 1.
        oldest_first: Those verified longest ago; else a random sample.
        seconds: Time limit; ``None``: none.

    Raises:
        ConfigurationError: A value is none of these.
    """

    share: float = 1.0
    oldest_first: bool = False
    seconds: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(
                f"share={self.share!r:.200} must be a number above 0 and at most 1", hint="use 0.1"
            )
        if self.seconds is not None and self.seconds < 0:
            raise ConfigurationError(f"seconds={self.seconds!r:.200} must not be less than 0")


def chosen_copies(state: SqliteMirrorState, rolling: AuditRolling, run: str) -> Iterator[Copy]:
    """Yield the copies that a run of an audit verifies."""
    if not rolling.oldest_first:
        limit = int(rolling.share * _HASH_RANGE)
        for copy in state.copies():
            if zlib.crc32(f"{run} {copy.uri}".encode()) < limit:
                yield copy
        return
    number = ceil(state.count() * rolling.share)
    for uri, _ in islice(state.oldest_proofs(), number):
        found = state.copy(uri)
        if found is not None:
            yield found
