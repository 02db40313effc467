"""Writing packages: reproducible bytes, bounded memory, nothing that lies."""

import io
import os
import zipfile
from collections.abc import Callable, Iterable

import pytest
from msgspec.structs import replace

from resourcesync.documents.packages.planning import (
    ManifestEntry,
    PackageSize,
    content_of,
    plan_packages,
)
from resourcesync.documents.packages.zip_directory import LOCAL
from resourcesync.documents.packages.zip_writer import write_package
from resourcesync.documents.writer import write
from resourcesync.errors import DigestMismatchError, LengthMismatchError, PackageError
from resourcesync.model.entries import Change, Link, Resource
from resourcesync.model.vocabulary import MAX_ENTRIES, ChangeKind, Relation
from tests.support.documents.packages import CHANGES, RESOURCES, change, opened, resource, unpack

CREATED, UPDATED, DELETED = ChangeKind.CREATED, ChangeKind.UPDATED, ChangeKind.DELETED
ONE, TWO = b"one " * 50, b"two"
PAIR = [resource("http://h/1", ONE, "/a/1.txt"), resource("http://h/2", TWO, "/2.txt")]


def held(**data: bytes) -> Callable[[Resource | Link], Iterable[bytes]]:
    return lambda item: [data[item.path.rpartition("/")[2].partition(".")[0]]]


BOTH = held(**{"1": ONE, "2": TWO})


def packed(entries: list[ManifestEntry], content: object = BOTH) -> bytes:
    return b"".join(write_package(RESOURCES, entries, content))  # type: ignore[arg-type]


@pytest.mark.founding("0.9 §5.1.1", "A package has its manifest at the top", "`publish --dumps`")
@pytest.mark.conformance("RM01", "RM02")
def test_the_manifest_comes_first_and_says_what_the_entries_say() -> None:
    data = packed([*PAIR])
    document = opened(data).manifest()

    with zipfile.ZipFile(io.BytesIO(data)) as package:
        assert package.namelist() == ["manifest.xml", "a/1.txt", "2.txt"]
        for info in package.infolist():  # no time or right of the machine that packed it
            assert (info.date_time, info.external_attr) == ((1980, 1, 1, 0, 0, 0), 0o100644 << 16)
            found = (info.create_system, info.extra, info.comment, info.flag_bits)
            assert found == (3, b"", b"", 0)
    assert document.header == RESOURCES
    assert list(document.entries()) == PAIR


def test_what_is_compressed_already_is_stored() -> None:
    text, image = bytes(1000), bytes(1000)
    entries: list[ManifestEntry] = [
        resource("http://h/1", text, "/t"),
        resource("http://h/2", image, "/i", "image/jpeg"),
        resource("http://h/3", b"", "/e"),
    ]
    given = packed(entries, held(t=text, i=image, e=b""))

    with zipfile.ZipFile(io.BytesIO(given)) as package:
        methods = {info.filename: info.compress_type for info in package.infolist()}
    assert methods == {"manifest.xml": 8, "t": 8, "i": 0, "e": 0}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (ONE[:-1], LengthMismatchError),
        (ONE + b"!", LengthMismatchError),
        (b"", LengthMismatchError),
        (ONE[::-1], DigestMismatchError),
    ],
)
def test_content_that_is_not_what_the_entry_says_leaves_no_package(
    content: bytes, error: type[Exception]
) -> None:
    written: list[bytes] = []

    with pytest.raises(error, match="of the bytes is not the listed one"):
        written.extend(write_package(RESOURCES, [*PAIR], held(**{"1": content, "2": TWO})))
    with pytest.raises(PackageError):
        opened(b"".join(written))


@pytest.mark.conformance("RM05", "RM06")
@pytest.mark.parametrize(
    "entries",
    [
        [replace(PAIR[0], path="")],
        [replace(PAIR[0], path="a")],
        [replace(PAIR[0], path="/a/")],
        [replace(PAIR[0], path="/../a")],
        [replace(PAIR[0], path="/Manifest.xml")],
        [replace(PAIR[0], length=None)],
        [PAIR[0], replace(PAIR[1], path="/A/1.txt")],
        [PAIR[0], replace(PAIR[1], path="/a")],
        [PAIR[0]] * (MAX_ENTRIES + 1),
        [change(CREATED, "http://h/1", ONE, "/1")],
    ],
)
def test_entries_that_no_manifest_may_have_are_refused_at_once(
    entries: list[ManifestEntry],
) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        packed(entries)


def test_a_package_has_a_manifest_and_nothing_else_for_a_root() -> None:
    with pytest.raises(ValueError, match="Dump"):
        list(write_package(replace(RESOURCES, is_index=True), [*PAIR], BOTH))


@pytest.mark.conformance("CM07")
def test_a_patch_is_packed_with_its_change() -> None:
    patch = Link(rel=Relation.PATCH, href="http://h/p", length=len(TWO), path="/2.json")
    entry = change(UPDATED, "http://h/1", ONE, "/1.txt")
    entry = replace(entry, resource=replace(entry.resource, links=(patch,)))
    reader = opened(b"".join(write_package(CHANGES, [entry], BOTH)))

    assert b"".join(reader.linked(patch)) == TWO
    assert [b"".join(member.chunks()) for member in reader.members()] == [ONE]


def test_a_deletion_that_has_a_path_is_refused() -> None:
    entry = Change(kind=DELETED, resource=Resource(uri="http://h/1", path="/1"))

    with pytest.raises(ValueError, match="deleted"):
        list(write_package(CHANGES, [entry], BOTH))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (PackageSize(max_entries=2), [2, 2, 1]),
        (PackageSize(max_bytes=10), [2, 1, 1, 1]),
        (PackageSize(max_bytes=1), [1, 1, 1, 1, 1]),
        (PackageSize(max_bytes=1000), [5]),
        (PackageSize(), [5]),
    ],
)
def test_packages_are_as_full_as_they_may_be(size: PackageSize, expected: list[int]) -> None:
    sizes = enumerate((5, 5, 9, 100, 0))
    entries = [Resource(uri=f"http://h/{number}", length=size) for number, size in sizes]
    packages = list(plan_packages(RESOURCES, entries, size=size))

    assert [len(package) for package in packages][: len(expected)] == expected[: len(packages)]
    assert [item.uri for package in packages for item in package] == [
        entry.uri for entry in entries
    ]


@pytest.mark.parametrize("links", [(), (Link(rel="via", href="http://h/" + "&" * 200),)])
def test_a_manifest_never_grows_over_its_limit_and_uses_it(links: tuple[Link, ...]) -> None:
    most = 100_000
    entries = [
        Resource(uri=f"http://h/{i:05}/{'&é' * (i % 30)}", length=0, links=links)
        for i in range(1000)
    ]
    packages = list(plan_packages(RESOURCES, entries, size=PackageSize(max_manifest=most)))
    sizes = [sum(map(len, write(RESOURCES, package))) for package in packages]

    assert [item.uri for package in packages for item in package] == [
        entry.uri for entry in entries
    ]
    assert max(sizes) <= most
    assert min(sizes[:-1]) >= most - 4000
    assert len(sizes) >= 2


@pytest.mark.parametrize(
    "size",
    [{"max_entries": 0}, {"max_entries": 50_001}, {"max_bytes": 0}, {"max_manifest": 0},
     {"max_manifest": 52_428_801}],
)  # fmt: skip
def test_a_size_that_no_package_may_have_is_refused(size: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="package"):
        PackageSize(**size)


@pytest.mark.parametrize(
    ("uri", "tail"),
    [
        ("http://h/a/b.html?q=1#f", "-b.html"),
        ("http://h/a%20%C3%BC/..%2Fx", "-x"),
        ("http://h/d/", "-d"),
        ("http://h/a.b?q=/other", "-a.b"),
        ("http://h/a.b#/other", "-a.b"),
        ("http://h/" + "n" * 99 + ".pdf", "-" + "n" * 60 + ".pdf"),
        ("http://h/...", ""),
        ("urn:x", "-urn-x"),
        ("http://h/%00CON", "-CON"),
    ],
)
def test_a_new_path_is_safe_and_tells_of_its_uri(uri: str, tail: str) -> None:
    [[entry]] = plan_packages(RESOURCES, [Resource(uri=uri, length=0)])
    found = content_of(entry)

    assert found is not None
    assert found.path == "/resources/00/00000" + tail


def test_a_package_of_more_than_2_gib_is_read_in_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1_000)
    long, short = os.urandom(300_000), b"short"
    entries: list[ManifestEntry] = [
        resource("http://h/1", long, "/1"),
        resource("http://h/2", short, "/2"),
        resource("http://h/3", long, "/3", "image/png"),
    ]

    found = unpack(packed(entries, held(**{"1": long, "2": short, "3": long})))

    assert found.given == [("http://h/1", long), ("http://h/2", short), ("http://h/3", long)]
    assert (found.faults, found.unlisted) == ([], [])


def test_a_member_that_may_pass_4_gib_says_its_sizes_in_64_bits_from_the_start() -> None:
    entry = Resource(uri="http://h/1", length=2**32, path="/1")
    pieces: list[bytes] = []

    with pytest.raises(LengthMismatchError):
        pieces.extend(write_package(RESOURCES, [entry], lambda _: [os.urandom(400_000)]))
    data = b"".join(pieces)
    at = data.index(b"PK\3\4", 1)
    fields = LOCAL.unpack_from(data, at)
    assert fields[7:11] == (2**32 - 1, 2**32 - 1, 1, 20)
    assert data[at + LOCAL.size :][:21] == b"1" + b"\1\0\x10\0" + bytes(16)
