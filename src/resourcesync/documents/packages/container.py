"""The container of a package: named members, their bytes, and limits on both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from resourcesync.documents.reader import Limits
from resourcesync.errors import PackageError, PackedMemberError

_FAULTS = {
    "zip-encrypted": "The member is encrypted",
    "zip-method": "The member is compressed in a way that is not accepted",
    "zip-link": "The member is a symbolic link",
    "tar-link": "The member is a link, a device or a pipe",
    "tar-kind": "The member is of a kind that is not accepted",
}


class PackedMember(NamedTuple):
    """One member as the package declares it.

    Attributes:
        name: Its name; looked up, never used as a path.
        size: Its bytes, unpacked.
        fault: Code of the reason why its bytes cannot be used, or empty.
    """

    name: str
    size: int
    fault: str


class PackageContainer(Protocol):
    """An open package of one format, whose structure was found sound.

    Attributes:
        kind: ``zip`` or ``tar``.
        is_sequential: True if going back to an earlier member is expensive.
        budget: Bytes that may be unpacked from it in one pass.
    """

    kind: str
    is_sequential: bool
    budget: int

    @property
    def members(self) -> Sequence[PackedMember]:
        """The members, without folders."""

    def read(self, index: int) -> Iterator[bytes]:
        """Yield the bytes of a member, exactly its ``size``, in pieces of at most 64 KiB.

        Raises:
            PackedMemberError: They contradict the package's own record of them.
            TruncatedPackageError: The file ends before they do.
        """

    def read_short(self, index: int) -> bytes | None:
        """Return the bytes of a member of at most 64 KiB that match the package's record of it.

        ``None`` means only: use `read`, for the bytes or the reason why there are none.
        """


def member_error(member: PackedMember, *, uri: str) -> PackedMemberError:
    """Return the error for a member that has a fault."""
    return PackedMemberError(_FAULTS[member.fault], uri=uri, member=member.name, code=member.fault)


def find_manifest(members: Sequence[PackedMember], manifest: str, *, uri: str) -> int:
    """Return the index of the manifest: the one at the root, in exact case.

    Raises:
        PackageError: There is none.
    """
    near: list[str] = []
    for index, member in enumerate(members):
        if member.name == manifest:
            return index
        if len(near) < 3 and member.name[-len(manifest) :].lower() == manifest:  # noqa: PLR2004
            near.append(member.name[-200:])
    raise PackageError(
        f"The package has no {manifest} at its root",
        uri=uri,
        evidence=tuple(("found", name) for name in near),
        code="manifest-missing",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageLimits:
    """Limits of one package; they bound memory, time and bytes for any input.

    Unpacked bytes may be ``free`` plus ``ratio`` times the size of the package, and never
    more than ``unpacked``. This applies to what the package declares, and for what is read from it
    in one pass, so listing one member many times gains nothing.

    Attributes:
        members: Members of one package, the manifest and folders included.
        directory: Bytes of the central directory of a ZIP.
        name: Bytes of one member's name.
        unpacked: Bytes of all members together, unpacked.
        free: Bytes that may be unpacked however small the package is.
        ratio: Unpacked bytes per byte of the package, beyond ``free``.
        decoder: Bytes of memory for unpacking xz.
        rewinds: Number of times that a compressed tar may be unpacked from its start again because
            its members are in another order than its manifest.
        manifest: Bounds of the manifest as a document.
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
