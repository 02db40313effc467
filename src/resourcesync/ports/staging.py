"""Bytes that workers stage, and the copies of the coordinator that take them over (ADR 0080)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest
from resourcesync.ports import StagedCopy


class TakingCopy(StagedCopy, Protocol):
    """A staged copy that can take over bytes which a worker staged."""

    @property
    def algorithms(self) -> Sequence[str]:
        """The requested digests."""

    def take(self, place: str, length: int, digests: tuple[Digest, ...]) -> None:
        """Take over staged bytes, in place of those so far; they are sealed.

        Args:
            place: Their place, as ``StagingArea.hand_over`` returned it.
            length: Their number.
            digests: The requested digests of them.

        Raises:
            StorageError: They are not there.
        """


class StagingArea(Protocol):
    """Where workers stage bytes for the machine that alone installs copies."""

    def stage(self, algorithms: Sequence[str]) -> StagedCopy:
        """Start a staged copy; digests are computed while the bytes pass."""

    def hand_over(
        self, batch: Sequence[tuple[StagedCopy, Mapping[str, str]]]
    ) -> list[str | StorageError]:
        """Make sealed bytes durable; return the place of each, or its error.

        Args:
            batch: The staged copies, and the header fields of their answers.
        """
