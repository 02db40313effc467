"""tar packages, plain and compressed: the same manners as for ZIP."""

import gzip
import lzma

import pytest

from resourcesync.documents.packages.safety import PackageLimits
from resourcesync.errors import PackageError, TruncatedPackageError
from tests.support.documents.packages import listed, manifest, opened, refusal, tarball, unpack

ONE, TWO = b"one " * 300, b"two"
TEXT = manifest(listed("/a", ONE), listed("/d/b", TWO))
MODES = ["w:", "w:gz", "w:xz"]


def test_members_in_the_opposite_order_are_given_as_far_as_the_limit_allows() -> None:
    names = [f"{i}" for i in range(10)]
    text = manifest(*(listed("/" + name, TWO) for name in names))
    data = tarball(("manifest.xml", text), *((name, TWO) for name in reversed(names)))
    found = unpack(data, PackageLimits(rewinds=4))

    assert len(unpack(data).given) == 10
    assert 2 <= len(found.given) <= 5
    assert {code for _, code in found.faults} == {"tar-order"}
    assert len(found.given) + len(found.faults) == 10


@pytest.mark.founding(
    "0.9 §5.1", "Communities use another packing: tar, plain or compressed", "`pull`"
)
@pytest.mark.parametrize("mode", MODES)
def test_a_tar_cut_at_any_byte_of_its_content_is_no_package(mode: str) -> None:
    data = tarball(("manifest.xml", TEXT), ("a", ONE), ("d/b", TWO), mode=mode)
    content = 512 * (2 + len(TEXT) // 512 + 1 + 3 + 1 + 1 + 1) if mode == "w:" else len(data)

    assert unpack(data).given
    for end in range(1, content, 7 if mode == "w:" else 1):
        with pytest.raises(PackageError):
            unpack(data[:end])


def test_a_tar_that_is_cut_short_may_be_whole_later() -> None:
    data = tarball(("manifest.xml", TEXT), ("a", ONE))

    for end in (100, len(data) // 2, len(data) - 1):
        with pytest.raises(TruncatedPackageError):
            opened(data[:end])


PLAIN = tarball(("manifest.xml", TEXT), ("a", ONE), mode="w:")


def header(name: bytes, kind: bytes = b"0", size: bytes = b"0") -> bytes:
    start = name.ljust(100, b"\0") + bytes(24) + size.ljust(12, b"\0") + bytes(12)
    rest = kind + bytes(100) + b"ustar\x0000" + bytes(247)
    total = sum(start) + sum(rest) + 8 * 0x20
    return start + b"%06o\0 " % total + rest


def noted(kind: bytes, data: bytes, size: int | None = None) -> bytes:
    told = len(data) if size is None else size
    return header(b"note", kind, b"%o" % told) + data.ljust(-(-len(data) // 512) * 512, b"\0")


@pytest.mark.parametrize(
    ("start", "code"),
    [
        (header(b"a", size=b"7777777777"), "package-truncated"),
        (header(b"a", size=b"\x80" + b"\xff" * 11), "package-truncated"),
        (header(b"a", size=b"-1"), "tar-header"),
        (header(b"a", size=b"\xff" * 12), "tar-header"),
        (header(b""), "tar-name"),
        (header(b"s", kind=b"S", size=b"0"), ""),
        (noted(b"x", b"28 GNU.sparse.name=whatever\n"), "tar-kind"),
        (noted(b"x", b"13 path=a\0b\n\n"), "tar-header"),
        (noted(b"x", b"99 path=a\n"), "tar-header"),
        (noted(b"x", b"path=a\n"), "tar-header"),
        (noted(b"x", b"13 size=-999\n"), "tar-header"),
        (noted(b"g", b"10 path=a\n"), "tar-header"),
        (noted(b"g", b"13 comment=x\n"), ""),
        (noted(b"x", b"", 10**9), "tar-limit"),
        (noted(b"L", b"", 10**9), "tar-limit"),
        (noted(b"L", b"n" * 5000), "tar-header"),
        (noted(b"K", b"target\0"), ""),
        (b"\1" * 512, "package-unknown"),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_headers_are_believed_only_as_far_as_they_make_sense(
    start: bytes, code: str, is_packed: bool
) -> None:
    data = start + PLAIN
    if is_packed:
        data = gzip.compress(data)
        code = {"package-truncated": "tar-ratio", "package-unknown": "tar-header"}.get(code, code)

    if code:
        assert refusal(data) == code
    else:
        assert ("http://h/a", ONE) in unpack(data).given


def test_a_damaged_header_in_the_middle_and_too_many_members_are_told() -> None:
    at = 512 + -(-len(TEXT) // 512) * 512
    many = tarball(*((f"{i}", b"") for i in range(50)))

    assert refusal(PLAIN[:at] + b"\1" + PLAIN[at + 1 :]) == "tar-header"
    assert refusal(many, PackageLimits(members=49)) == "tar-limit"


def test_what_follows_the_end_of_a_tar_is_not_in_it_and_compressed_data_has_an_end() -> None:
    assert refusal(gzip.compress(PLAIN) + b"junk") == "tar-junk"
    assert refusal(lzma.compress(PLAIN) + b"junk") == "tar-junk"
    assert refusal(gzip.compress(PLAIN + b"index") + b"\x1f\x8b\x08") == "package-truncated"
    for data in (
        PLAIN + b"index",
        gzip.compress(PLAIN) + bytes(600),
        lzma.compress(PLAIN) + lzma.compress(b"index of a parallel xz"),
    ):
        assert unpack(data).given


def test_several_gzip_members_make_one_tar() -> None:
    halves = gzip.compress(PLAIN[:700]) + gzip.compress(PLAIN[700:])

    assert unpack(halves).given == [("http://h/a", ONE)]
    assert refusal(gzip.compress(b"") * 1200 + gzip.compress(PLAIN)) == "tar-data"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused_when_it_passes_the_budget(pack: object) -> None:
    bomb = pack(tarball(("manifest.xml", TEXT), ("a", bytes(20 * 2**20)), mode="w:"))  # type: ignore[operator]

    assert refusal(bomb, PackageLimits(free=2**20, ratio=10)) == "tar-ratio"
    assert refusal(bomb, PackageLimits(free=0, ratio=0)) == "tar-ratio"


def test_xz_that_wants_much_memory_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 64 * 2**20}]
    greedy = lzma.compress(PLAIN, filters=filters)

    assert refusal(greedy, PackageLimits(decoder=8 * 2**20)) == "tar-data"
    assert unpack(greedy).given == [("http://h/a", ONE)]


def test_damaged_compression_is_told() -> None:
    good = gzip.compress(PLAIN)
    for at in range(10, len(good), 5):
        with pytest.raises(PackageError):
            unpack(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
