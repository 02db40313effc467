"""Packages that are nearly right: ZIP and tar with single fields that lie."""

import gzip
import hashlib
import io
import lzma
import struct
import tarfile
import zlib
from collections.abc import Sequence
from random import Random
from typing import Final
from xml.sax.saxutils import quoteattr

from fuzz.randomness import probably
from resourcesync.documents.packages.reader import ManifestMember, open_package
from resourcesync.errors import DocumentError, PackageError, VerificationError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS

URI: Final = "https://source.example/package"
_NAMES: Final = ("a.txt", "res/b", "\u6c34.txt", "manifest.xml", "res/", "A.TXT")
_ODD_NAMES: Final = (
    "../../evil",
    "/etc/evil",
    "..\\evil",
    "C:/evil",
    "",
    "a\0b",
    "./a.txt",
    "a.txt/b",
    "MANIFEST.XML",
    "x" * 5000,
)
_EXTREMES: Final = (0, 1, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)

Files = list[tuple[str, bytes]]


def files(random: Random) -> Files:
    """Return members with their bytes, a manifest of most of them first."""
    made: Files = []
    for _ in range(random.choice((0, 1, 2, 5))):
        name = random.choice(_ODD_NAMES if probably(random, 12) else _NAMES)
        made.append((name, random.choice((b"", b"x", b"abc" * 200, random.randbytes(40)))))
    manifest = _manifest(random, made)
    made.insert(0 if not probably(random, 5) else len(made), ("manifest.xml", manifest))
    if probably(random, 25):
        made.pop(random.randrange(len(made)))
    if probably(random, 25):
        made.append(random.choice(made) if made else ("a", b""))
    return made


def _manifest(random: Random, listed: Files) -> bytes:
    kind = random.choice(("resourcedump-manifest", "resourcedump-manifest", "changedump-manifest"))
    change = ' change="created"' if kind.startswith("change") else ""
    entries: list[str] = []
    for name, data in listed:
        digest = hashlib.sha256(data).hexdigest()
        length = len(data) + probably(random, 30)
        path = quoteattr(("" if probably(random, 8) else "/") + name.replace("\0", "0"))
        entries.append(
            f"<url><loc>http://example.com/{len(entries)}</loc><rs:md{change} path={path}"
            f' length="{length}" hash="sha-256:{digest}"/></url>'
        )
    if probably(random, 40):
        kind = "resourcelist"
    return (
        f'<urlset xmlns="{SITEMAP_NS}" xmlns:rs="{RS_NS}">'
        f'<rs:md capability="{kind}"/>{"".join(entries)}</urlset>'
    ).encode()


class _Liar:
    """Tells numbers, and once in a while another one."""

    def __init__(self, random: Random, one_in: int) -> None:
        self._random = random
        self._one_in = one_in

    def happens(self) -> bool:
        """Return whether to lie now."""
        return probably(self._random, self._one_in)

    def __call__(self, value: int, most: int) -> int:
        random = self._random
        if not self.happens():
            return value
        lies = (*_EXTREMES, value + 1, value - 1, value ^ 1, random.randrange(most + 1))
        return max(0, min(most, random.choice(lies)))

    def numbers(self, *values: int, most: int) -> Sequence[int]:
        """Return several numbers of one size."""
        return [self(value, most) for value in values]


def zipped(random: Random, members: Files) -> bytes:
    """Return a ZIP of these members; in two of three some numbers are lies."""
    return zipped_with(random, members, lies=random.choice((30, 150, 10**9)))


def zipped_with(random: Random, members: Files, *, lies: int) -> bytes:
    """Return a ZIP of these members, in which one number in ``lies`` is one."""
    lie = _Liar(random, lies)
    body, directory = bytearray(), bytearray()
    for name, data in members:
        raw = name.encode("utf-8")
        method = 12 if lie.happens() else random.choice((0, 8))
        packed = data if method == 0 else _deflated(data)
        flags = 0x800 if not raw.isascii() else random.choice((0, 0, 0x800, 0x8))
        sizes = (zlib.crc32(data), len(packed), len(data))
        late = bool(flags & 8)
        offset = len(body)
        shown = (0, 0, 0) if late else sizes
        short = lie.numbers(20, flags, method, 0, 33, most=0xFFFF)
        body += struct.pack("<4s5H", b"PK\3\4", *short)
        body += struct.pack("<3L", *lie.numbers(*shown, most=0xFFFFFFFF))
        body += struct.pack("<2H", *lie.numbers(len(raw), 0, most=0xFFFF)) + raw + packed
        if late:
            body += b"PK\7\x08" + struct.pack("<3L", *lie.numbers(*sizes, most=0xFFFFFFFF))
        short = lie.numbers(20, 20, flags, method, 0, 33, most=0xFFFF)
        directory += struct.pack("<4s6H", b"PK\1\2", *short)
        directory += struct.pack("<3L", *lie.numbers(*sizes, most=0xFFFFFFFF))
        directory += struct.pack("<5H", *lie.numbers(len(raw), 0, 0, 0, 0, most=0xFFFF))
        mode = 0o120777 << 16 if lie.happens() else 0  # a symbolic link
        directory += struct.pack("<2L", *lie.numbers(mode, offset, most=0xFFFFFFFF)) + raw
    count = len(members)
    end = struct.pack("<4s4H", b"PK\5\6", *lie.numbers(0, 0, count, count, most=0xFFFF))
    end += struct.pack("<2L", *lie.numbers(len(directory), len(body), most=0xFFFFFFFF))
    comment = b"PK\5\6" * 6 if lie.happens() else b""
    return bytes(body + directory + end) + struct.pack("<H", len(comment)) + comment


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


def tarred(random: Random, members: Files) -> bytes:
    """Return a tar of these members, packed or not."""
    plain = io.BytesIO()
    form = random.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=plain, mode="w", format=form) as archive:
        for name, data in members:
            told = tarfile.TarInfo(name.replace("\0", "0"))
            told.size = len(data)
            if probably(random, 30):
                told.type = random.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE))
                told.size, told.linkname = 0, "/etc/passwd"
            try:
                archive.addfile(told, io.BytesIO(data))
            except ValueError:  # a name that this form of tar cannot have
                continue
    data = plain.getvalue()
    packer = random.choice((None, None, gzip.compress, lzma.compress))
    return data if packer is None else packer(data)


def read_package(data: bytes) -> str:
    """Read a package: its manifest, and every member that it promises."""
    file = io.BytesIO(data)
    told: list[str] = []
    try:
        package = open_package(file, uri=URI)
        told += [_read_member(member) for member in package.members()]
        told += [repr(name) for name in package.unlisted]
    except (PackageError, DocumentError) as error:
        return f"{error.code} {type(error).__name__} {error} {told}"
    return f"read {told}"


def _read_member(member: ManifestMember) -> str:
    if member.is_deletion:
        return "deletion"
    try:
        data = b"".join(member.chunks())
    except (PackageError, VerificationError) as error:
        return f"{error.code} {error}"
    entry = member.entry
    resource = entry.resource if isinstance(entry, Change) else entry
    assert isinstance(resource, Resource)
    assert resource.length in {None, len(data)}, "another length than the manifest's"
    for digest in resource.digests:
        if digest.algorithm == "sha-256" and digest.is_usable:
            assert digest.value == hashlib.sha256(data).hexdigest(), "other bytes"
    return f"bytes {len(data)}"
