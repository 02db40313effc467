"""Compute patches of resources that changed, and prove each by applying it (§14.4)."""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, Final, cast

from resourcesync.documents.patches.limits import BoundedSink
from resourcesync.errors import PatchError
from resourcesync.ports.patches import PatchComputer, Patcher, PatchFormat, PatchMaker

_log = logging.getLogger(__name__)
_MAX_IN_MEMORY: Final = 1 << 20
_CHUNK: Final = 1 << 18


class PatchGenerator:
    """Computes patches; what a plug-in makes is believed no more than what we make.

    Args:
        makers: Returns what computes them, the preferred first; asked once, when it is needed.
        formats: What applies them, by media type.
    """

    def __init__(
        self, makers: Callable[[], Sequence[PatchMaker]], formats: Mapping[str, PatchFormat]
    ) -> None:
        self._makers = cache(makers)
        self._formats = formats
        self._load = cache(self._loaded)

    def compute(
        self, before: BinaryIO, after: BinaryIO, *, media_type: str, largest: int, length: int
    ) -> tuple[str, IO[bytes]] | None:
        """Return the format and the bytes of a patch, which leads to these very bytes.

        Args:
            before: The version before.
            after: The new version.
            media_type: Its media type.
            largest: The bytes of the larger of the two.
            length: The bytes of the new version.

        Returns:
            ``None`` when there is no patch that is smaller than the new version.
        """
        kind = media_type.partition(";")[0].strip().lower()
        for maker in self._makers():
            if maker.media_type not in self._formats or not maker.supports(kind):
                continue
            if maker.largest is not None and largest > maker.largest:
                continue
            patch = cast("IO[bytes]", SpooledTemporaryFile(_MAX_IN_MEMORY))  # noqa: SIM115 - returned
            try:
                self._compute_proven(maker, before, after, patch, length)
            except Exception as error:  # noqa: BLE001 - a plug-in is foreign code
                patch.close()
                _log.debug("no %s: %.300s", maker.media_type, error)
                continue
            patch.seek(0)
            return maker.media_type, patch
        return None

    def _compute_proven(
        self, maker: PatchMaker, before: BinaryIO, after: BinaryIO, patch: IO[bytes], length: int
    ) -> None:
        """Write a patch and apply it.

        Raises:
            PatchError: It is not smaller, or does not lead to the new version.
        """
        _rewind(before, after)
        refusal = "the patch is not smaller than the new version"
        limited = cast("BinaryIO", BoundedSink(patch.write, length - 1, refusal))
        compute, apply = self._load(maker)
        compute(before, after, limited, length - 1)
        _rewind(before, patch)
        running = hashlib.sha256()
        result = BoundedSink(running.update, length, "the result is larger than the new version")
        apply(before, cast("BinaryIO", patch), cast("BinaryIO", result), length)
        _rewind(after)
        if running.hexdigest() != digest_of(after):
            raise PatchError("the patch does not lead to the new version")

    def _loaded(self, maker: PatchMaker) -> tuple[PatchComputer, Patcher]:
        return maker.load(), self._formats[maker.media_type].load()


def digest_of(stream: IO[bytes]) -> str:
    """Return the sha-256 of the rest of a stream, in hex."""
    running = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        running.update(chunk)
    return running.hexdigest()


def _rewind(*streams: IO[bytes]) -> None:
    for stream in streams:
        stream.seek(0)
