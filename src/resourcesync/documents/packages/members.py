"""The members of an open package of any format: names, bytes, and limits on both."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from resourcesync.errors import Evidence, PackageError, PackedMemberError

_FAULTS = {
    "zip-encrypted": "The member is encrypted",
    "zip-method": "The member is compressed in a way that is not accepted",
    "zip-link": "The member is a symbolic link",
    "tar-link": "The member is a link, a device or a pipe",
    "tar-kind": "The member is of a kind that is not accepted",
}


class PackedMember(NamedTuple):
    """One member as the package declares it.

    ``name`` is looked up, never used as a path. ``fault`` is the code of why its bytes cannot be
    used, ``packing`` the way they are compressed, if that is why.
    """

    name: str
    size: int
    fault: str
    packing: str = ""


class PackageContainer(Protocol):
    """An open package of one format, whose structure was found sound.

    ``is_sequential``: going back to an earlier member is expensive. ``budget`` are the bytes that
    may be unpacked in one pass.
    """

    kind: str
    is_sequential: bool
    budget: int
    members: Sequence[PackedMember]  # without folders

    def read(self, index: int) -> Iterator[bytes]:
        """Yield the bytes of a member, exactly its ``size``, in pieces of at most 64 KiB."""

    def read_short(self, index: int) -> bytes | None:
        """Return the bytes of a member of at most 64 KiB that match the package's record of it.

        ``None`` means only: use `read`, for the bytes or the reason why there are none.
        """


@contextmanager
def errors_about(uri: str) -> Iterator[None]:
    """Give the errors of the block the address of the package that they are about."""
    try:
        yield
    except PackageError as error:
        error.uri = error.uri or uri
        raise


def member_error(member: PackedMember, *, uri: str) -> PackedMemberError:
    """Return the error for a member that has a fault."""
    return PackedMemberError(
        _FAULTS[member.fault] + (f": {member.packing}" if member.packing else ""),
        uri=uri,
        evidence=member_evidence(member.name),
        code=member.fault,
    )


def member_evidence(name: str) -> Evidence:
    """Return the name of a member as evidence."""
    return (("member", name[:1024]),) if name else ()


def find_manifest(members: Sequence[PackedMember], manifest: str) -> int:
    """Return the index of the manifest: the one at the root, in exact case."""
    near: list[str] = []
    for index, member in enumerate(members):
        if member.name == manifest:
            return index
        if len(near) < 3 and member.name[-len(manifest) :].lower() == manifest:  # noqa: PLR2004
            near.append(member.name[-200:])
    raise PackageError(
        f"The package has no {manifest} at its root",
        evidence=tuple(("found", name) for name in near),
        code="manifest-missing",
    )
