"""ZIP packages that were made to hurt: Z01 to Z09 of the threat model."""

import zlib
from collections.abc import Callable

import pytest

from resourcesync.documents.packages.safety import PackageLimits
from resourcesync.documents.packages.zip_directory import END
from tests.support.documents.packages import MANIFEST_OF_A as MANIFEST
from tests.support.documents.packages import (
    A,
    Forged,
    forge,
    listed,
    manifest,
    refusal,
    sound,
    unpack,
    with_a,
)


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/evil", "C:/evil", "..\\evil", "\\\\host\\x", "d/../../x"]
)
def test_a_name_is_never_used_as_a_path_only_reported(name: str) -> None:
    found = unpack(sound(A, more=[Forged(name.encode(), b"evil")]))

    assert found.given == [("http://h/a", A[1])]
    assert found.unlisted == [name.removeprefix("/")]


@pytest.mark.parametrize(
    "path",
    ["/../a", "//a", "/d/./a", "/d//a", "/a/", "/", ".", "..", "a/..", "/manifest.xml",
     "/MANIFEST.xml", "manifest.xml", "/d\\a", "/a&#9;b", "/" + "a" * 4096],
)  # fmt: skip
def test_a_path_that_cannot_be_used_costs_its_entry_alone(path: str) -> None:
    text = manifest(listed(path, loc="http://h/bad"), listed("/a", A[1]))
    found = unpack(forge(Forged(b"manifest.xml", text), Forged(b"a", A[1])))

    assert found.faults == [("http://h/bad", "manifest-path")]
    assert found.given == [("http://h/a", A[1])]


@pytest.mark.parametrize("name", [b"a", b"/a"])
@pytest.mark.parametrize("path", ["a", "/a"])
def test_the_slash_before_a_path_or_a_name_may_be_missing(path: str, name: bytes) -> None:
    text = manifest(listed(path, A[1], loc="http://h/a"))
    found = unpack(forge(Forged(b"manifest.xml", text), Forged(name, A[1])))

    assert found.given == [("http://h/a", A[1])]


def test_a_symbolic_link_is_refused_and_the_rest_is_read() -> None:
    text = manifest(listed("/link", b"/etc/passwd"), listed("/a", A[1]))
    link = Forged(b"link", b"/etc/passwd", central={"mode": 0o120777 << 16})
    found = unpack(forge(Forged(b"manifest.xml", text), link, Forged(b"a", A[1])))

    assert found.faults == [("http://h/link", "zip-link")]
    assert found.given == [("http://h/a", A[1])]


def ghost(name: bytes, at: int, data: bytes, method: int) -> Forged:
    return Forged(name, data, method, central={"offset": at}, is_ghost=True)


def test_many_records_for_one_member_or_one_inside_another_are_refused_unread() -> None:
    at = len(forge(MANIFEST)) - END.size - 46 - len(MANIFEST.name)
    zeros = bytes(2**20)
    same = [ghost(b"a%d" % i, at, zeros, 8) for i in range(1, 20)]
    inner = forge(Forged(b"a", A[1]))[: 30 + 1 + len(A[1])]
    within = len(MANIFEST.data) + 30 + len(MANIFEST.name) + 30 + 1

    for sound_one in (Forged(b"b", zeros, 8), Forged(b"b", inner)):
        assert unpack(forge(MANIFEST, sound_one)).unlisted == ["b"]
    assert refusal(forge(MANIFEST, Forged(b"a", zeros, 8), *same)) == "zip-overlap"
    quoted = ghost(b"a", within, A[1], 0)
    assert refusal(forge(MANIFEST, Forged(b"b", inner), quoted)) == "zip-overlap"


def test_the_budget_holds_for_all_that_is_read_however_often_a_member_is_listed() -> None:
    block = b"x" * 1000
    text = manifest(*(listed("/a", block, loc=f"http://h/{i}") for i in range(10)))
    data = forge(Forged(b"manifest.xml", text), Forged(b"a", block))
    limits = PackageLimits(free=len(text) + 4 * len(block), ratio=0)

    found = unpack(data, limits)

    assert len(found.given) == (len(text) + 4000) // 1000
    assert {code for _, code in found.faults} == {"zip-ratio"}


LONG = bytes(300_000)


@pytest.mark.parametrize("size", [0, 1, len(LONG) - 1, len(LONG) + 1, 2 * len(LONG)])
def test_a_size_that_is_not_the_size_of_the_data_is_told(size: int) -> None:
    text = manifest(listed("/a", more=f' length="{size}"'))
    told = {"size": size}
    member = Forged(b"a", LONG, 8, local=told, central=told)
    found = unpack(forge(Forged(b"manifest.xml", text), member))

    assert found.faults == [("http://h/a", "zip-size")]


def _without_end(data: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflater.compress(data) + deflater.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize("data", [LONG, LONG[:500]])
@pytest.mark.parametrize(
    ("damaged", "code"),
    [
        (lambda data: zlib.compress(data, 9, -15)[:-3], "zip-size"),
        (lambda data: zlib.compress(data, 9, -15) + b"more", "zip-size"),
        (_without_end, "zip-size"),
        (lambda _: b"\xff" * 40, "zip-data"),
        (lambda _: b"", "zip-size"),
    ],
)
def test_data_that_is_no_deflate_or_goes_on_after_it_is_told(
    damaged: Callable[[bytes], bytes], code: str, data: bytes
) -> None:
    text = manifest(listed("/a", data))
    found = unpack(forge(Forged(b"manifest.xml", text), Forged(b"a", data, 8, damaged(data))))

    assert found.faults == [("http://h/a", code)]


@pytest.mark.conformance("RM07")
def test_length_crc_and_hash_are_all_checked() -> None:
    data, other = b"right", b"wrong"
    text = manifest(
        listed("/crc", data),
        listed("/hash", other),
        listed("/length", data, more="").replace('length="5"', 'length="6"'),
        listed("/none"),
    )
    wrong = {"crc": 1}
    members = [
        Forged(b"crc", data, local=wrong, central=wrong),
        Forged(b"hash", data),
        Forged(b"length", data),
        Forged(b"none", data),
    ]
    found = unpack(forge(Forged(b"manifest.xml", text), *members))

    assert found.faults == [
        ("http://h/crc", "zip-crc"),
        ("http://h/hash", "hash-mismatch"),
        ("http://h/length", "length-mismatch"),
    ]
    assert found.given == [("http://h/none", data)]
    assert found.unproven == {"http://h/none"}


def descriptor(data: bytes, *, mark: bytes = b"PK\7\x08", width: int = 4, crc: int = 0) -> bytes:
    sizes = len(data).to_bytes(width, "little") * 2
    return mark + (zlib.crc32(data) ^ crc).to_bytes(4, "little") + sizes


LATE = {"flags": 8, "crc": 0, "packed": 0, "size": 0}


@pytest.mark.parametrize("mark", [b"PK\7\x08", b""])
@pytest.mark.parametrize("width", [4, 8])
def test_a_descriptor_may_follow_the_data(mark: bytes, width: int) -> None:
    after = descriptor(A[1], mark=mark, width=width)

    data = with_a(local=LATE, central={"flags": 8}, after=after)

    assert unpack(data).given == [("http://h/a", A[1])]


def longer(more: int) -> dict[str, int]:
    return {"packed": len(A[1]) + more, "size": len(A[1]) + more}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        *(
            (with_a(local=longer(more), central=longer(more)), "zip-overlap")
            for more in (1, 40, 46, 100)
        ),
        *(
            (
                forge(Forged(b"a", A[1], local=longer(more), central=longer(more)), MANIFEST),
                "zip-overlap",
            )
            for more in (1, 40, 46, 100)
        ),
        (with_a(local={"extra": 60_000}), "zip-overlap"),
        (with_a(local={"raw": b"b"}), "zip-mismatch"),
        (with_a(local={"raw": b"aa", "name": 2}), "zip-mismatch"),
        (with_a(local={"mark": b"PK\1\2"}), "zip-mismatch"),
        (with_a(local={"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF}), "zip-mismatch"),
        *(
            (with_a(local={key: value}), "zip-mismatch")
            for key, value in (
                *(("flags", 0x800), ("flags", 1), ("method", 8)),
                *(("crc", 1), ("size", 1), ("packed", 1)),
            )
        ),
        *(
            (with_a(local=LATE, central={"flags": 8}, after=after), code)
            for after, code in (
                (descriptor(A[1], crc=1), "zip-mismatch"),
                (descriptor(A[1] + b"!"), "zip-mismatch"),
                (b"", "zip-junk"),
                (descriptor(A[1]) + b"!", "zip-junk"),
            )
        ),
    ],
)
def test_a_header_that_says_otherwise_or_reaches_further_than_its_member_is_refused(
    data: bytes, code: str
) -> None:
    assert refusal(data) == code
