"""Packages for tests: sound ones, and ZIP files forged field by field."""

import hashlib
import io
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from struct import Struct
from typing import Any

import pytest

from resourcesync.documents.packages.planning import content_of
from resourcesync.documents.packages.reader import PackageReader, open_package
from resourcesync.documents.packages.safety import DEFAULT_LIMITS, PackageLimits
from resourcesync.documents.packages.zip_directory import CENTRAL, END, LOCAL
from resourcesync.errors import PackageError, VerificationError
from resourcesync.model.digests import Digest, usable
from resourcesync.model.entries import Change, Header, Link, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind
from tests.support.documents.text import document
from tests.support.documents.written import facts

URI = "https://source.example/dump.zip"
MOMENT = datetime(2013, 1, 3, 9, tzinfo=UTC)
UP = Link(rel="up", href="https://source.example/capabilities.xml")
RESOURCES = Header(capability=Capability.RESOURCE_DUMP_MANIFEST, at=MOMENT, links=(UP,))
CHANGES = Header(capability=Capability.CHANGE_DUMP_MANIFEST, from_=MOMENT, links=(UP,))
MANIFEST_MD = '<rs:md capability="resourcedump-manifest" at="2013-01-03T09:00:00Z"/>'


def resource(uri: str, data: bytes, path: str = "", media_type: str = "text/plain") -> Resource:
    digest = Digest("sha-256", hashlib.sha256(data).hexdigest())
    return Resource(uri=uri, length=len(data), digests=(digest,), media_type=media_type, path=path)


def change(kind: ChangeKind, uri: str, data: bytes, path: str) -> Change:
    told = Resource(uri=uri) if kind is ChangeKind.DELETED else resource(uri, data, path)
    return Change(kind=kind, time=MOMENT, resource=told)


def listed(path: str, data: bytes | None = None, *, loc: str = "", more: str = "") -> str:
    proof = "" if data is None else facts(data)
    where = f' path="{path}"' if path else ""
    return f"<url><loc>{loc or 'http://h' + path}</loc><rs:md{where}{proof}{more}/></url>"


def manifest(*entries: str, md: str = MANIFEST_MD) -> bytes:
    return document(*entries, md=md)


@dataclass
class Forged:
    """One member of a forged ZIP; the mappings replace fields of its headers by their name."""

    name: bytes
    data: bytes = b""
    method: int = 0
    packed: bytes | None = None
    local: Mapping[str, int | bytes] = field(default_factory=dict)
    central: Mapping[str, int | bytes] = field(default_factory=dict)
    after: bytes = b""
    is_ghost: bool = False

    def stored(self) -> bytes:
        if self.packed is not None:
            return self.packed
        return zlib.compress(self.data, 9, -15) if self.method == 8 else self.data


LOCAL_FIELDS = (
    "mark", "version", "flags", "method", "time", "date", "crc", "packed", "size", "name", "extra",
)  # fmt: skip
CENTRAL_FIELDS = (
    "mark", "made", "version", "flags", "method", "time", "date", "crc", "packed", "size", "name",
    "extra", "comment", "disk", "inner", "mode", "offset",
)  # fmt: skip
END_FIELDS = ("mark", "disk", "start", "here", "count", "size", "offset", "comment")


def pack(layout: Struct, names: Sequence[str], values: Mapping[str, int | bytes]) -> bytes:
    return layout.pack(*(values.get(name, 0) for name in names))


def forge(*members: Forged, comment: bytes = b"", before: bytes = b"", **end: int | bytes) -> bytes:
    body = bytearray()
    directory = bytearray()
    for member in members:
        data = member.stored()
        told: dict[str, int | bytes] = {
            "version": 20,
            "method": member.method,
            "date": 0x21,
            "crc": zlib.crc32(member.data),
            "packed": len(data),
            "size": len(member.data),
        }
        local = {"mark": b"PK\3\4", "name": len(member.name), **told, **member.local}
        offset = len(body)
        raw = local.pop("raw", member.name)
        extra = local.pop("tail", b"")
        assert isinstance(raw, bytes)
        assert isinstance(extra, bytes)
        local.setdefault("extra", len(extra))
        if not member.is_ghost:
            body += pack(LOCAL, LOCAL_FIELDS, local) + raw + extra + data + member.after
        central = {
            "mark": b"PK\1\2", "name": len(member.name), **told, "offset": offset, **member.central,
        }  # fmt: skip
        extra = central.pop("tail", b"")
        assert isinstance(extra, bytes)
        central.setdefault("extra", len(extra))
        directory += pack(CENTRAL, CENTRAL_FIELDS, central) + member.name + extra
    count = len(members) & 0xFFFF
    last: dict[str, int | bytes] = {
        "mark": b"PK\5\6", "here": count, "count": count, "size": len(directory),
        "offset": len(body), "comment": len(comment), **end,
    }  # fmt: skip
    return before + bytes(body + directory) + pack(END, END_FIELDS, last) + comment


def sound(*members: tuple[str, bytes], more: Sequence[Forged] = ()) -> bytes:
    text = manifest(*(listed(f"/{name}", data) for name, data in members))
    files = [Forged(name.encode(), data) for name, data in members]
    return forge(Forged(b"manifest.xml", text), *files, *more)


def tarball(*members: tuple[str, bytes], mode: str = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:  # type: ignore[call-overload]  # any mode
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def opened(data: bytes, limits: PackageLimits = DEFAULT_LIMITS) -> PackageReader:
    return open_package(io.BytesIO(data), uri=URI, limits=limits)


@dataclass
class Contents:
    given: list[tuple[str, bytes]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    unproven: set[str] = field(default_factory=set)


def unpack(data: bytes, limits: PackageLimits = DEFAULT_LIMITS, start: int = 0) -> Contents:
    reader = opened(data, limits)
    found = Contents()
    for member in reader.members(start):
        uri = member.entry.uri
        if member.is_deletion:
            found.deleted.append(uri)
            continue
        known = content_of(member.entry)
        if known is None or not usable(known.digests):
            found.unproven.add(uri)
        try:
            found.given.append((uri, b"".join(member.chunks())))
        except (PackageError, VerificationError) as error:
            found.faults.append((uri, error.code))
    found.unlisted = reader.unlisted
    return found


A = ("a", b"one " * 50)
MANIFEST_OF_A = Forged(b"manifest.xml", manifest(listed("/a", A[1])))


def with_a(**fields: Any) -> bytes:
    return forge(MANIFEST_OF_A, replace(Forged(b"a", A[1]), **fields))


def refusal(data: bytes, limits: PackageLimits = DEFAULT_LIMITS) -> str:
    with pytest.raises(PackageError) as caught:
        unpack(data, limits)
    assert caught.value.uri
    return caught.value.code


RESOURCES_MD = '<rs:md capability="resourcedump-manifest" modified="2026-01-01T00:00:00Z"/>'
CHANGES_MD = '<rs:md capability="changedump-manifest" modified="2026-01-01T01:00:00Z"/>'


def index_of(paths: Sequence[str], md: str = RESOURCES_MD) -> bytes:
    parts = (f'<sitemap><loc>{path}</loc><rs:md path="{path}"/></sitemap>' for path in paths)
    return document(*parts, root="sitemapindex", md=md)


def nested(
    parts: Mapping[str, bytes],
    members: Mapping[str, bytes],
    *,
    md: str = RESOURCES_MD,
    index: bytes = b"",
) -> bytes:
    files = [("manifest.xml", index or index_of(list(parts), md))]
    files += [(path.lstrip("/"), body) for path, body in parts.items()]
    files += members.items()
    return forge(*(Forged(name.encode(), body, method=8) for name, body in files))
