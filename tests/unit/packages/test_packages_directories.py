"""Directories of ZIP packages that were made to hurt: Z10 to Z16 of the threat model."""

import io
import zipfile
import zlib
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resourcesync.documents.packages.reader import open_package
from resourcesync.documents.packages.safety import PackageLimits
from resourcesync.documents.packages.zip_directory import END, END64, LOCATOR
from resourcesync.documents.reader import Limits
from resourcesync.errors import PackageError, TruncatedPackageError
from tests.support.documents.packages import MANIFEST_OF_A as MANIFEST
from tests.support.documents.packages import (
    A,
    Forged,
    forge,
    listed,
    manifest,
    opened,
    refusal,
    sound,
    unpack,
    with_a,
)

TEXT = MANIFEST.data
MEMBER = Forged(b"a", A[1])


def named(*names: bytes, flags: int = 0) -> bytes:
    told = {"flags": flags}
    return sound(A, more=[Forged(name, local=told, central=told) for name in names])


def with_manifest(*names: bytes, **fields: int) -> bytes:
    """A package whose manifest has these names, and says otherwise in these fields."""
    local = {name: value for name, value in fields.items() if name != "mode"}
    manifests = [Forged(name, TEXT, local=local, central=fields) for name in names]
    return forge(*manifests, MEMBER)


def widen(data: bytes, *, end64: dict[str, int] | None = None, disks: int = 1) -> bytes:
    """Give a package a ZIP64 record, with these numbers in place of the right ones."""
    _, *_, count, size, offset, _ = END.unpack(data[-END.size :])
    told = {"length": 44, "disk": 0, "count": count, "size": size, "offset": offset}
    told |= end64 or {}
    start = len(data) - END.size
    record = END64.pack(
        b"PK\6\6", told["length"], 45, 45, told["disk"], 0, told["count"], told["count"],
        told["size"], told["offset"],
    )  # fmt: skip
    end = END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:start] + record + LOCATOR.pack(b"PK\6\7", 0, start, disks) + end


def extra(kind: int, body: bytes, length: int | None = None) -> bytes:
    told = len(body) if length is None else length
    return kind.to_bytes(2, "little") + told.to_bytes(2, "little") + body


def renamed(name: bytes, plain: bytes = b"a") -> bytes:
    return extra(0x7075, b"\1" + zlib.crc32(plain).to_bytes(4, "little") + name)


TIMES = extra(0x5455, b"\1" + bytes(4))
PLACES = [("central",), ("local",), ("central", "local")]
END64S: list[tuple[dict[str, int], str]] = [
    ({"count": 2**63}, "zip-limit"),
    ({"count": 100_000}, "zip-mismatch"),
    ({"count": 1}, "zip-mismatch"),
    ({"count": 3}, "zip-mismatch"),
    ({"size": 2**63}, "zip-overlap"),
    ({"size": 1}, "zip-junk"),
    ({"offset": 2**63}, "zip-overlap"),
    ({"offset": 0}, "zip-junk"),
    ({"length": 45}, "zip-mismatch"),
    ({"disk": 1}, "zip-disks"),
]
MISPLACED = bytearray(widen(sound(A)))
MISPLACED[-END.size - 12] ^= 1
NARROW = bytearray(widen(sound(A)))
NARROW[-12:-10] = NARROW[-14:-12] = b"\x07\0"
EXTRA_FIELDS = [
    (extra(0x5455, b"\1" + bytes(4), 6), "zip-mismatch"),
    (TIMES + extra(0x5455, b"", 0xFFFF), "zip-mismatch"),
    (TIMES + b"\1\0\0", "zip-mismatch"),
    (TIMES + b"\x75", "zip-mismatch"),
    (extra(1, b"") * 2, "zip-mismatch"),
    (renamed(b"b"), "zip-name"),
    (renamed(b""), "zip-name"),
    (renamed(b"b", b"of another file"), "zip-name"),
    (renamed(b"a") + renamed(b"b"), "zip-name"),
    (extra(0x7075, b""), "zip-name"),
    (renamed(b"\xff"), "zip-name"),
]
FAKE_END = END.pack(b"PK\5\6", 0, 0, 0, 0, 0, 0, 0)
CLASHES = [
    ("x", "x"),
    ("x", "/x"),
    ("x", "X"),
    ("é", "e\u0301"),
    ("ß", "SS"),
    ("x", "x/y"),
    ("X", "x/y/z"),
]
REFUSED: dict[str, tuple[bytes, str]] = {
    **{
        f"the names {name} and {other}": (
            named(name.encode(), b"x-y", b"w", other.encode(), flags=0x800),
            "zip-duplicate",
        )
        for name, other in CLASHES
    },
    "no name": (named(b""), "zip-name"),
    "a name with NUL": (named(b"x\0.txt"), "zip-name"),
    "a name of 4,097 bytes": (named(b"x" * 4097), "zip-name"),
    "a name that is no UTF-8": (named(b"\xff\xfe", flags=0x800), "zip-name"),
    "an encrypted manifest": (with_manifest(b"manifest.xml", flags=1), "zip-encrypted"),
    "a manifest packed in another way": (with_manifest(b"manifest.xml", method=12), "zip-method"),
    "a link as manifest": (with_manifest(b"manifest.xml", mode=0o120777 << 16), "zip-link"),
    "a damaged manifest": (with_manifest(b"manifest.xml", crc=1), "zip-crc"),
    "a folder with bytes": (sound(A, more=[Forged(b"d/", b"x")]), "zip-mismatch"),
    "a script before it": (b"#!/bin/sh\n" + sound(A), "package-unknown"),
    "a mark before it": (b"PK\3\4" + sound(A), "zip-junk"),
    "a line behind it": (sound(A) + b"\n", "package-truncated"),
    "a package behind it": (sound(A) + sound(A), "zip-junk"),
    "bytes behind a member": (with_a(after=b"hidden"), "zip-junk"),
    "bytes behind the manifest": (forge(replace(MANIFEST, after=b"hidden"), MEMBER), "zip-junk"),
    "a second end": (forge(MANIFEST, MEMBER, comment=b"c" * 65_000 + FAKE_END), "zip-ambiguous"),
    "many marks of an end": (forge(MANIFEST, MEMBER, comment=b"PK\5\6" * 16_000), "zip-ambiguous"),
    "several disks": (forge(MANIFEST, disk=1), "zip-disks"),
    "a directory on another disk": (forge(MANIFEST, start=1), "zip-disks"),
    "records elsewhere": (forge(MANIFEST, here=0), "zip-disks"),
    "a member elsewhere": (with_a(central={"disk": 1}), "zip-disks"),
    **{f"a ZIP64 record with {told}": (widen(sound(A), end64=told), code) for told, code in END64S},
    "a ZIP64 record that is elsewhere": (bytes(MISPLACED), "zip-junk"),
    "a ZIP64 record of several disks": (widen(sound(A), disks=2), "zip-disks"),
    "a ZIP64 record and another end": (bytes(NARROW), "zip-mismatch"),
    **{
        f"extra fields {tail!r} in {places}": (
            with_a(**{place: {"tail": tail} for place in places}),
            code,
        )
        for tail, code in EXTRA_FIELDS
        for places in PLACES
    },
    "another name of the manifest": (
        forge(replace(MANIFEST, central={"tail": renamed(b"other.xml", b"manifest.xml")}), MEMBER),
        "zip-name",
    ),
    "a count that wrapped around": (
        forge(*(Forged(b"%05d" % number) for number in range(65_536))),
        "zip-mismatch",
    ),
}


@pytest.mark.parametrize(("data", "code"), REFUSED.values(), ids=REFUSED)
def test_what_can_be_read_in_two_ways_or_not_at_all_is_refused(data: bytes, code: str) -> None:
    assert refusal(data) == code


@pytest.mark.conformance("RM01")
@pytest.mark.parametrize(
    ("names", "code"),
    [
        *(
            (names, "manifest-missing")
            for names in (
                *((), (b"MANIFEST.XML",), (b"Manifest.xml",), (b"d/manifest.xml",)),
                (b"manifest.xml/x",),
            )
        ),
        *(
            ((b"manifest.xml", other), "manifest-duplicate")
            for other in (b"manifest.xml", b"MANIFEST.XML", b"/manifest.xml")
        ),
    ],
)
def test_a_package_has_one_manifest_at_its_root_in_exact_case(
    names: tuple[bytes, ...], code: str
) -> None:
    assert refusal(with_manifest(*names)) == code


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        *(("flags", flags, "zip-encrypted") for flags in (0x1, 0x41, 0x2000)),
        *(("method", method, "zip-method") for method in (1, 6, 9, 12, 14, 93, 95, 99)),
    ],
)
def test_a_member_that_is_encrypted_or_packed_in_another_way_is_told(
    key: str, value: int, code: str
) -> None:
    told = {key: value}

    assert unpack(with_a(local=told, central=told)).faults == [("http://h/a", code)]


def test_a_folder_is_no_member_and_a_comment_may_be_long() -> None:
    long = forge(MANIFEST, MEMBER, comment=b"c" * 65_535)

    assert unpack(sound(A, more=[Forged(b"d/"), Forged(b"d/e/")])).unlisted == []
    assert unpack(long).given == [("http://h/a", A[1])]
    at = len(forge(MANIFEST))
    assert refusal(forge(MANIFEST, before=b"PK\3\4" + bytes(26), offset=at)) in {
        "zip-junk",
        "zip-overlap",
    }


@pytest.mark.parametrize(
    ("raw", "name"), [("é".encode(), "é"), (b"\x82", "é"), (b"\xff\xfe", "\xa0\u25a0")]
)
def test_a_name_without_the_flag_is_utf_8_or_else_code_page_437(raw: bytes, name: str) -> None:
    assert unpack(sound(A, more=[Forged(raw)])).unlisted == [name]


@pytest.mark.conformance("RM01")
def test_a_package_cut_at_any_byte_is_no_package() -> None:
    data = sound(A, ("b", b"two"))

    for end in range(len(data)):
        with pytest.raises(PackageError):
            opened(data[:end])
    for end in range(4, len(data)):
        with pytest.raises(TruncatedPackageError):
            opened(data[:end])


def test_names_from_the_root_are_the_same_with_and_without_a_dot() -> None:
    dotted = forge(Forged(b"./"), Forged(b"./manifest.xml", MANIFEST.data), Forged(b"./a", A[1]))

    assert unpack(dotted).given == unpack(sound(A)).given


@pytest.mark.parametrize(("method", "words"), [(9, "method 9, Deflate64"), (77, "method 77;")])
def test_a_member_that_cannot_be_unpacked_says_how_it_is_packed(method: int, words: str) -> None:
    data = forge(MANIFEST, Forged(b"a", A[1], method=method, packed=b"unknown"))
    (member,) = open_package(io.BytesIO(data)).members()

    assert words in str(member.fault)


@pytest.mark.parametrize(("start", "name"), [(b"BZh9", "bzip2"), (b"\x28\xb5\x2f\xfd", "Zst")])
def test_a_package_of_another_packing_says_which(start: bytes, name: str) -> None:
    with pytest.raises(PackageError, match=f"packed with {name}"):
        open_package(io.BytesIO(start + bytes(600)))


@pytest.mark.parametrize("count", [1, 10_240, 65_000])
def test_nuls_that_fill_up_the_last_block_of_a_package_are_read_over(count: int) -> None:
    assert unpack(sound(A) + bytes(count)).given == unpack(sound(A)).given
    assert refusal(sound(A) + bytes(count) + b"\1") == "package-truncated"


def test_a_zip64_record_is_read() -> None:
    assert unpack(widen(sound(A))).given == [("http://h/a", A[1])]


FULL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("fields", "tail"),
    [
        ({"size": FULL}, b""),
        ({"size": FULL, "packed": FULL}, b"\1\0\x08\0" + bytes(8)),
        ({"offset": FULL}, b"\1\0\x08\0" + (2**63).to_bytes(8, "little")),
        ({"size": FULL, "packed": FULL}, b"\1\0\x10\0" + b"\xff" * 16),
        ({"offset": FULL}, b"\1\0\xff\xff"),
    ],
)
def test_zip64_numbers_of_a_member_are_believed_only_if_they_add_up(
    fields: dict[str, int], tail: bytes
) -> None:
    assert refusal(with_a(central={**fields, "tail": tail})) in {
        "zip-mismatch",
        "zip-overlap",
        "zip-junk",
        "zip-size",
    }


def test_zip64_numbers_of_a_small_member_are_read() -> None:
    sizes = b"\1\0\x10\0" + len(A[1]).to_bytes(8, "little") * 2
    wide = {"size": FULL, "packed": FULL, "tail": sizes}

    assert unpack(with_a(central=wide)).given == [("http://h/a", A[1])]
    assert unpack(with_a(central=wide, local=wide)).given == [("http://h/a", A[1])]


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize(
    "tail",
    [TIMES, TIMES + extra(0xCAFE, b""), renamed(b"a"), renamed(b"/a"), TIMES + b"\0\0\0", bytes(8)],
)
def test_extra_fields_that_change_nothing_are_passed_over(
    tail: bytes, places: tuple[str, ...]
) -> None:
    fields = {place: {"tail": tail} for place in places}

    assert unpack(with_a(**fields)).given == [("http://h/a", A[1])]


def test_a_name_in_an_old_code_page_may_be_given_in_unicode_too() -> None:
    listed_name = manifest(listed("/\u00fc", A[1]))
    member = Forged(b"\x81", A[1], central={"tail": renamed("\u00fc".encode(), b"\x81")})

    assert len(unpack(forge(Forged(b"manifest.xml", listed_name), member)).given) == 1


@given(st.binary(max_size=24), st.sampled_from(PLACES))
@example(renamed(b"a"), PLACES[2])
def test_whatever_stands_in_extra_fields_a_package_is_the_same_or_none(
    tail: bytes, places: tuple[str, ...]
) -> None:
    package = with_a(**{place: {"tail": tail} for place in places})
    try:
        given = unpack(package).given
    except PackageError:
        return
    assert given == [("http://h/a", A[1])]
    with zipfile.ZipFile(io.BytesIO(package)) as other:
        assert other.namelist() == ["manifest.xml", "a"]
        assert other.read("a") == A[1]


def test_too_many_members_are_refused_before_a_list_is_made() -> None:
    class Watched(io.BytesIO):
        most = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            Watched.most = max(Watched.most, len(data))
            return data

    data = widen(sound(A, more=[Forged(b"n%d" % i) for i in range(5000)]))
    limits = PackageLimits(members=4000)
    assert refusal(data, limits) == "zip-limit"
    assert refusal(data, PackageLimits(directory=200_000)) == "zip-limit"
    assert len(opened(data).unlisted) == 5001

    with pytest.raises(PackageError):
        open_package(Watched(data), limits=limits)
    assert Watched.most < 70_000


def test_a_manifest_has_the_budget_of_a_document() -> None:
    bomb = Forged(b"manifest.xml", manifest(*(["<x/>" * 1000] * 100)), 8)

    assert refusal(forge(bomb), PackageLimits(manifest=Limits(bytes=100_000))) == "manifest-limit"


def test_the_error_names_what_was_found_instead() -> None:
    with pytest.raises(PackageError) as caught:
        opened(forge(Forged(b"d/MANIFEST.XML", TEXT)))

    assert caught.value.evidence == (("found", "d/MANIFEST.XML"),)
