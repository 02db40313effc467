"""The records and the directory of a ZIP (APPNOTE 4.3), read without trust.

All checks of offsets and counts come before anything is unpacked, and every count is compared with
the bytes that are really present before anything is made from it. What is accepted has one reading
only: members one after the other from the first byte on, then the directory, then its end. Nothing
follows that but the NULs with which some programs fill up a block.
"""

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from struct import Struct
from typing import Any, BinaryIO, Final, NamedTuple

from resourcesync.documents.packages.members import member_evidence
from resourcesync.documents.packages.safety import PackageLimits, over_budget
from resourcesync.errors import PackageError, TruncatedPackageError

LOCAL: Final = Struct("<4s5H3L2H")
"""Signature, version, flags, method, time, date, CRC, packed, size, bytes of name and extra."""
CENTRAL: Final = Struct("<4s6H3L5H2L")
"""Signature, made by, version, flags, method, time, date, CRC, packed, size, bytes of name, extra
and comment, disk, internal and external attributes, offset."""
END: Final = Struct("<4s4H2LH")
"""Signature, disk, disk of the directory, entries here, entries, bytes, offset, comment."""
END64: Final = Struct("<4sQ2H2L4Q")
"""Signature, bytes that follow, made by, version, disk, disk of the directory, entries here,
entries, bytes, offset."""
LOCATOR: Final = Struct("<4sLQL")
"""Signature, disk of the ZIP64 record, its offset, disks."""

LOCAL_MARK: Final = b"PK\3\4"
CENTRAL_MARK: Final = b"PK\1\2"
END_MARK: Final = b"PK\5\6"
END64_MARK: Final = b"PK\6\6"
LOCATOR_MARK: Final = b"PK\6\7"
DESCRIPTOR_MARK: Final = b"PK\7\x08"

FULL32: Final = 0xFFFFFFFF
"""The value of a field whose number is in the ZIP64 record."""
ZIP64: Final = 1
"""The extra field for what needs more than 32 bits."""
UNICODE_PATH: Final = 0x7075
"""The extra field of Info-ZIP that gives a member another name, for readers that know it."""

STORED: Final = 0
DEFLATED: Final = 8
ENCRYPTED: Final = 0x2041  # plain, strong, or with masked headers
DESCRIBED: Final = 0x8  # CRC and sizes follow the data
UTF8: Final = 0x800


_MAX_COMMENT: Final = 65_535
_METHODS: Final = frozenset({STORED, DEFLATED})
_OTHER_METHODS: Final = {
    9: "Deflate64",
    12: "bzip2",
    14: "LZMA",
    93: "Zstandard",
    95: "xz",
    98: "PPMd",
}
"""Methods that programs write today (APPNOTE 4.4.5)."""
_LOCAL_SIZE: Final = 30
_LINK: Final = 0o120000
_KIND: Final = 0o170000
_NAME_AT: Final = 5  # after a version and the CRC of the plain name


class DirectoryBounds(NamedTuple):
    """Place of the directory, and the number of its records."""

    offset: int
    size: int
    records: int
    disks: tuple[int, ...] = ()


class CentralRecord(NamedTuple):
    """The record of one member in the directory.

    ``name`` is from the root of the package. ``fault`` is the code of why its bytes cannot be used.
    ``header`` is the local header with the same values; empty where they
    cannot be equal.
    """

    name: str
    raw: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    fault: str
    header: bytes = b""


# A directory may have 100,000 of them, and this is made without Python code.
_make_record: Final[Callable[[tuple[Any, ...]], CentralRecord]] = partial(
    tuple.__new__, CentralRecord
)


def package_error(code: str, message: str, member: str = "") -> PackageError:
    """Return the error for a package that is not sound."""
    return PackageError(message, evidence=member_evidence(member), code=code)


def read_bounds(file: BinaryIO, size: int) -> DirectoryBounds:
    """Find the directory from the end of the file."""
    start = max(0, size - END.size - _MAX_COMMENT)
    file.seek(start)
    tail = file.read(size - start)
    at = _end_of_directory(tail)
    _, *disks, here, count, length, offset, _ = END.unpack_from(tail, at)
    end = start + at
    found = DirectoryBounds(offset, length, count, (*disks, count - here))
    if end >= LOCATOR.size:
        file.seek(end - LOCATOR.size)
        locator = file.read(LOCATOR.size)
        if locator.startswith(LOCATOR_MARK):
            found, end = _read_zip64(file, locator, found, end - LOCATOR.size)
    if any(found.disks):
        raise package_error("zip-disks", "The package is one of several disks")
    if found.offset + found.size > end:
        raise package_error("zip-overlap", "The directory reaches over its end")
    if found.offset + found.size < end:
        raise package_error("zip-junk", "The package has bytes that belong to nothing")
    return found


def _end_of_directory(tail: bytes) -> int:
    ends: list[int] = []
    at = tail.find(END_MARK)
    while at >= 0:
        comment, rest = tail[at + 20 : at + END.size], tail[at + END.size :]
        is_filled_up = not any(comment) and not rest.strip(b"\0")
        if is_filled_up or int.from_bytes(comment, "little") == len(rest):
            ends.append(at)
        at = tail.find(END_MARK, at + 1)
    if not ends or ends[0] + END.size > len(tail):
        raise TruncatedPackageError("The package does not end where a ZIP ends")
    if len(ends) > 1 or tail.find(END_MARK, ends[0] + 1) >= 0:
        raise package_error("zip-ambiguous", "The package can be read as two different ones")
    return ends[0]


def _read_zip64(
    file: BinaryIO, locator: bytes, narrow: DirectoryBounds, end: int
) -> tuple[DirectoryBounds, int]:
    _, disk, at, disks = LOCATOR.unpack(locator)
    if at + END64.size != end:
        raise package_error("zip-junk", "The ZIP64 record is not where its locator stands")
    file.seek(at)
    mark, length, _, _, *record_disks, here, count, size, offset = END64.unpack(
        file.read(END64.size)
    )
    if mark != END64_MARK or length != END64.size - 12:
        raise package_error("zip-mismatch", "The ZIP64 record is not one")
    wide = DirectoryBounds(offset, size, count, (disk, disks - 1, *record_disks, count - here))
    pairs = zip(narrow[:3], wide[:3], (FULL32, FULL32, 0xFFFF), strict=True)
    if any(short not in (full, long) for short, long, full in pairs):
        raise package_error("zip-mismatch", "The ZIP64 record contradicts the end record")
    return wide, at


def read_records(
    file: BinaryIO, bounds: DirectoryBounds, size: int, limits: PackageLimits
) -> list[CentralRecord]:
    """Return the records of the directory, in its order."""
    if bounds.records > limits.members or bounds.size > limits.directory:
        raise PackageError(
            "The package has too many members",
            evidence=(
                ("limit", f"{limits.members:,} members, {limits.directory:,} bytes of directory"),
                ("got", f"{bounds.records:,} members, {bounds.size:,} bytes"),
            ),
            code="zip-limit",
        )
    if bounds.records * CENTRAL.size > bounds.size:
        raise package_error("zip-mismatch", "The directory is too small for its records")
    file.seek(bounds.offset)
    records = list(_records(file.read(bounds.size), bounds.records, limits))
    _check_places(records, bounds.offset)
    budget = limits.budget(size)
    if sum(record.size for record in records) > budget:
        raise over_budget(budget, code="zip-ratio")
    return records


def _records(data: bytes, count: int, limits: PackageLimits) -> Iterator[CentralRecord]:
    at = 0
    for _ in range(count):
        start = at + CENTRAL.size
        if start > len(data) or not data.startswith(CENTRAL_MARK, at):
            raise package_error("zip-mismatch", "The directory has fewer records than it declares")
        (
            _, _, _, flags, method, _, _, crc, packed, size, length, more, comment,
            disk, _, mode, offset,
        ) = CENTRAL.unpack_from(data, at)  # fmt: skip
        name_end = start + length
        end = name_end + more + comment
        if end > len(data):
            raise package_error("zip-mismatch", "A record reaches over the end of the directory")
        raw = data[start:name_end]
        name = _name(raw, flags, limits.name)
        header = b"" if more else LOCAL_MARK + data[at + 6 : at + 32] + raw
        extra = data[name_end : name_end + more]
        wide = check_extra(extra, name) if extra else None
        if FULL32 in (size, packed, offset):
            size, packed, offset = with_zip64_values(wide, (size, packed, offset), name)
        fault = _fault(flags, method, mode)
        record = _make_record((name, raw, flags, method, crc, packed, size, offset, fault, header))
        if disk or packed != size or name[-1:] == "/":
            _check_record(record, disk)
        yield record
        at = end
    if at != len(data):
        raise package_error("zip-mismatch", "The directory has bytes beyond its records")


def _fault(flags: int, method: int, mode: int) -> str:
    if flags & ENCRYPTED:
        return "zip-encrypted"
    if method not in _METHODS:
        return "zip-method"
    return "zip-link" if (mode >> 16) & _KIND == _LINK else ""


def packing_of(record: CentralRecord) -> str:
    """Return how a member is compressed, if that cannot be read; else nothing."""
    if record.fault != "zip-method":
        return ""
    name = _OTHER_METHODS.get(record.method, "")
    return f"method {record.method}{', ' if name else ''}{name}; only store and Deflate are read"


def _check_record(record: CentralRecord, disk: int) -> None:
    name = record.name
    if disk:
        raise package_error("zip-disks", "The package is one of several disks", name)
    differ = record.method == STORED and record.packed != record.size
    if differ and record.fault != "zip-encrypted":
        raise package_error("zip-size", "A stored member has two different sizes", name)
    if name.endswith("/") and record.size:
        raise package_error("zip-mismatch", "A folder has bytes in it", name)


def _name(raw: bytes, flags: int, longest: int) -> str:
    if not raw or len(raw) > longest or b"\0" in raw:
        raise package_error("zip-name", "A name is empty, too long, or has a NUL in it")
    try:
        # Without the flag the standard means code page 437, but most writers mean UTF-8.
        return _from_root(raw.decode())
    except UnicodeDecodeError as error:
        if flags & UTF8:
            raise package_error("zip-name", "A name is declared as UTF-8 and is not") from error
        return _from_root(raw.decode("cp437"))


def _from_root(name: str) -> str:
    """Return a name without the ``/`` or ``./`` that a few writers give it; as in a tar."""
    return name.removeprefix("./").removeprefix("/") or name


def check_extra(extra: bytes, name: str) -> bytes | None:
    """Check the extra fields of a header or a record; return that for ZIP64, if there is one.

    Other readers may read them differently.
    """
    wide: bytes | None = None
    at = 0
    while at + 4 <= len(extra):
        kind = int.from_bytes(extra[at : at + 2], "little")
        length = extra[at + 2] | extra[at + 3] << 8
        body = extra[at + 4 : at + 4 + length]
        if len(body) < length or (kind == ZIP64 and wide is not None):
            raise package_error("zip-mismatch", "The extra fields do not add up", name)
        other = body[_NAME_AT:].removeprefix(b"./").removeprefix(b"/")
        if kind == UNICODE_PATH and other != name.encode():
            raise package_error("zip-name", "An extra field gives another name", name)
        wide = body if kind == ZIP64 else wide
        at += 4 + length
    if any(extra[at:]):  # zeros fill them up to a round number, where a writer aligns
        raise package_error("zip-mismatch", "The extra fields do not add up", name)
    return wide


def with_zip64_values(
    body: bytes | None, values: tuple[int, ...], member: str = ""
) -> tuple[int, ...]:
    """Return the values, with those that are full replaced from the ZIP64 extra field."""
    taken: list[int] = []
    for value in values:
        if value == FULL32:
            if body is None or len(body) < 8:  # noqa: PLR2004 - one 64-bit number
                raise package_error("zip-mismatch", "A ZIP64 number is missing", member)
            taken.append(int.from_bytes(body[:8], "little"))
            body = body[8:]
        else:
            taken.append(value)
    return tuple(taken)


def _check_places(records: list[CentralRecord], end: int) -> None:
    place, before = 0, ""
    for record in sorted(records, key=attrgetter("offset")):
        if record.offset < place:
            raise PackageError(
                "Two members of the package share bytes",
                evidence=(
                    *member_evidence(record.name),
                    *((("with", before[:1024]),) if before else ()),
                ),
                code="zip-overlap",
            )
        place, before = record.offset + _LOCAL_SIZE + len(record.raw) + record.packed, record.name
    if place > end:
        raise package_error("zip-overlap", "A member reaches into the directory", before)


def may_be_truncated_zip(start: bytes) -> bool:
    """True if a file that starts so may be a ZIP that was cut short."""
    return LOCAL_MARK.startswith(start[:4]) or END_MARK.startswith(start[:4])
