"""A ZIP package: every header is compared with the directory before any member is read."""

import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import BinaryIO, Final, final

from resourcesync.documents.packages import zip_directory
from resourcesync.documents.packages.members import PackedMember, member_evidence
from resourcesync.documents.packages.safety import PackageLimits
from resourcesync.errors import PackageError, PackedMemberError, TruncatedPackageError
from resourcesync.model.content_codings import RAW, CodingError, Decoder, ExcessBytesError

_BLOCK: Final = 65_536
_LEVEL_FLAGS: Final = 0x6  # only the compression level


@final
class ZipContainer:
    """An open ZIP."""

    kind = "zip"
    is_sequential = False

    def __init__(self, file: BinaryIO, size: int, limits: PackageLimits) -> None:
        self._file = file
        self.budget = limits.budget(size)
        bounds = zip_directory.read_bounds(file, size)
        records = zip_directory.read_records(file, bounds, size, limits)
        starts = self._check_headers(records, bounds)
        kept = [index for index, record in enumerate(records) if record.name[-1:] != "/"]
        self._records = [records[index] for index in kept]
        self._starts = [starts[index] for index in kept]
        self.members: Sequence[PackedMember] = [
            PackedMember(record.name, record.size, record.fault, zip_directory.packing_of(record))
            for record in self._records
        ]

    def _check_headers(
        self, records: list[zip_directory.CentralRecord], bounds: zip_directory.DirectoryBounds
    ) -> list[int]:
        order = sorted(range(len(records)), key=lambda index: records[index].offset)
        starts = [0] * len(records)
        place = 0
        for index, after in pairwise((*order, None)):
            assert index is not None
            record = records[index]
            if record.offset != place:
                raise self._bad("zip-junk", "Bytes before a member belong to nothing", record)
            place = bounds.offset if after is None else records[after].offset
            starts[index] = self._usual_start(record, place) or self._check_header(record, place)
        if place != bounds.offset:
            raise zip_directory.package_error(
                "zip-junk", "Bytes before the directory belong to nothing"
            )
        return starts

    def _usual_start(self, record: zip_directory.CentralRecord, end: int) -> int:
        start = end - record.packed
        if record.offset + len(record.header) != start:
            return 0
        self._file.seek(record.offset)
        return start if self._file.read(len(record.header)) == record.header else 0

    def _check_header(self, record: zip_directory.CentralRecord, end: int) -> int:
        self._file.seek(record.offset)
        header = self._file.read(zip_directory.LOCAL.size + len(record.raw))
        if len(header) < zip_directory.LOCAL.size or header[:4] != zip_directory.LOCAL_MARK:
            raise self._bad("zip-mismatch", "No member is where the directory says", record)
        _, _, flags, method, _, _, crc, packed, size, name, extra = zip_directory.LOCAL.unpack_from(
            header
        )
        if (
            name != len(record.raw)
            or header[zip_directory.LOCAL.size :] != record.raw
            or (flags ^ record.flags) & ~_LEVEL_FLAGS
            or method != record.method
        ):
            raise self._bad("zip-mismatch", "Header and directory disagree about a member", record)
        start: int = record.offset + zip_directory.LOCAL.size + name + extra
        if start + record.packed > end:
            raise self._bad("zip-overlap", "A member shares bytes with what follows it", record)
        wide = zip_directory.check_extra(self._file.read(extra), record.name)
        if zip_directory.FULL32 in (packed, size) and not flags & zip_directory.DESCRIBED:
            size, packed = zip_directory.with_zip64_values(wide, (size, packed))
        told = (crc, packed, size)
        known = (record.crc, record.packed, record.size)
        gap = end - start - record.packed
        if told == known and gap == 0:
            return start
        if not flags & zip_directory.DESCRIBED:
            raise self._mismatch(record) if told != known else self._junk(record)
        if any(t not in (0, zip_directory.FULL32, k) for t, k in zip(told, known, strict=True)):
            raise self._mismatch(record)
        self._check_descriptor(record, start + record.packed, gap)
        return start

    def _check_descriptor(self, record: zip_directory.CentralRecord, at: int, gap: int) -> None:
        forms = [
            mark
            + record.crc.to_bytes(4, "little")
            + record.packed.to_bytes(width, "little")
            + record.size.to_bytes(width, "little")
            for width in (
                (4, 8) if max(record.packed, record.size) <= zip_directory.FULL32 else (8,)
            )
            for mark in (zip_directory.DESCRIPTOR_MARK, b"")
        ]
        if gap not in map(len, forms):
            raise self._junk(record)
        self._file.seek(at)
        if self._file.read(gap) not in forms:
            error = self._mismatch(record)
            error.hint = "some programs stream packages with wrong sizes: pack it with another one"
            raise error

    def _mismatch(self, record: zip_directory.CentralRecord) -> PackageError:
        return self._bad("zip-mismatch", "Header and directory disagree about a member", record)

    def _junk(self, record: zip_directory.CentralRecord) -> PackageError:
        return self._bad("zip-junk", "Bytes after a member belong to nothing", record)

    def _bad(self, code: str, message: str, record: zip_directory.CentralRecord) -> PackageError:
        return zip_directory.package_error(code, message, record.name)

    def read(self, index: int) -> Iterator[bytes]:
        """Yield the bytes of a member; see `PackageContainer.read`."""
        record = self._records[index]
        pieces = self._raw(self._starts[index], record)
        if record.method != zip_directory.STORED:
            pieces = self._inflated(pieces, record)
        crc = total = 0
        for piece in pieces:
            total += len(piece)
            if total > record.size:
                raise self._wrong("zip-size", "The member is longer than it says", record)
            crc = zlib.crc32(piece, crc)
            yield piece
        if total != record.size:
            raise self._wrong("zip-size", "The member is shorter than it says", record)
        if crc != record.crc:
            raise self._wrong("zip-crc", "The member is damaged: another CRC", record)

    def read_short(self, index: int) -> bytes | None:
        """Return the bytes of a short and sound member; see `PackageContainer.read_short`."""
        record = self._records[index]
        if max(record.packed, record.size) > _BLOCK:
            return None
        self._file.seek(self._starts[index])
        data = self._file.read(record.packed)
        if record.method != zip_directory.STORED:
            inflater = zlib.decompressobj(RAW)
            try:
                data = inflater.decompress(data, _BLOCK + 1)
            except zlib.error:
                return None
            if not inflater.eof or inflater.unused_data:
                return None
        return data if len(data) == record.size and zlib.crc32(data) == record.crc else None

    def _raw(self, start: int, record: zip_directory.CentralRecord) -> Iterator[bytes]:
        left = record.packed
        while left:
            self._file.seek(start)  # others may read from the same file in between
            piece = self._file.read(min(left, _BLOCK))
            if not piece:
                raise TruncatedPackageError("The package became shorter while it was read")
            start += len(piece)
            left -= len(piece)
            yield piece

    def _inflated(
        self, pieces: Iterator[bytes], record: zip_directory.CentralRecord
    ) -> Iterator[bytes]:
        decoder = Decoder(RAW)
        try:
            for piece in pieces:
                yield from decoder.feed(piece)
        except ExcessBytesError as error:
            raise self._wrong("zip-size", "The data goes on after its end", record) from error
        except CodingError as error:
            raise self._wrong("zip-data", "The data cannot be unpacked", record) from error
        if not decoder.complete:
            raise self._wrong("zip-size", "The data stops before its end", record)

    def _wrong(
        self, code: str, message: str, record: zip_directory.CentralRecord
    ) -> PackedMemberError:
        return PackedMemberError(message, evidence=member_evidence(record.name), code=code)
