"""What one package may cost at most."""

from dataclasses import dataclass, field
from typing import Final

from resourcesync.documents.reading import Limits
from resourcesync.errors import PackageError

__all__ = ["DEFAULT_LIMITS", "PackageLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageLimits:
    """Bounds of one package; they keep memory, time and bytes bounded for any input.

    What is unpacked may be ``free`` bytes and ``ratio`` times the size of the package, and never
    more than ``unpacked``. This holds for what the package declares, and for what is read from it
    in one pass, so listing one member many times gains nothing.

    Attributes:
        members: Members of one package, the manifest and folders included.
        directory: Bytes of the central directory of a ZIP.
        name: Bytes of one member's name.
        unpacked: Bytes of all members together, unpacked.
        free: Bytes that may be unpacked however small the package is.
        ratio: Unpacked bytes per byte of the package, beyond ``free``.
        decoder: Bytes of memory for unpacking xz.
        rewinds: How often a compressed tar may be unpacked from its start again because its
            members stand in another order than its manifest.
        manifest: What the manifest may cost as a document.
    """

    members: int = 100_000
    directory: int = 32 * 2**20
    name: int = 4096
    unpacked: int = 2**40
    free: int = 128 * 2**20
    ratio: int = 200
    decoder: int = 128 * 2**20
    rewinds: int = 16
    manifest: Limits = field(default_factory=Limits)

    def budget(self, size: int) -> int:
        """Return how many bytes a package of ``size`` bytes may unpack to."""
        return min(self.unpacked, self.free + self.ratio * size)


DEFAULT_LIMITS: Final = PackageLimits()


def over_budget(budget: int, *, uri: str, code: str) -> PackageError:
    """Return the error for a package that would unpack to more than ``budget`` bytes."""
    return PackageError(
        "The package unpacks to more than its size can justify",
        uri=uri,
        evidence=(("limit", f"{budget:,} bytes unpacked"),),
        code=code,
    )
