"""Patches: their application and their computation (§14.4)."""

from collections.abc import Callable
from typing import BinaryIO

import msgspec

Patcher = Callable[[BinaryIO, BinaryIO, BinaryIO, int], None]
"""Called with the version before, the patch, the sink of the result, and its most bytes.

The version before and the patch can be read and sought. It raises when the patch does not fit; it
need not prove that the result is right, which the caller does by digest.
"""


class PatchFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format of patches.

    Attributes:
        load: Returns the function that applies them; it may be slow, and may raise a
            ConfigurationError.
        largest: Bytes of the largest version that can be patched; ``None`` for no such bound.
    """

    load: Callable[[], Patcher]
    largest: int | None = None


PatchComputer = Callable[[BinaryIO, BinaryIO, BinaryIO, int], None]
"""Called with the version before, the new version, the sink of the patch, and its most bytes.

It raises when there is no patch that small. It need not prove that the patch is right, which the
caller does by applying it.
"""


class PatchMaker(msgspec.Struct, frozen=True, kw_only=True):
    """A maker of patches of one format.

    Attributes:
        media_type: The format of the patches.
        load: Returns the function that computes them; it may be slow, and may raise a
            ConfigurationError.
        supports: Returns true if it is for resources of a media type.
        largest: Bytes of the largest version that can be compared; ``None`` for no such bound.
    """

    media_type: str
    load: Callable[[], PatchComputer]
    supports: Callable[[str], bool]
    largest: int | None = None
