"""Any files in one ZIP: many, none, large, and always the same bytes."""

import io
import zipfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents.packages.bagit import bag_info, encode_path, manifest_line
from resourcesync.documents.packages.zip_writer import ZipMember, write_zip

NAMES = st.lists(st.text("abc/é%", min_size=1, max_size=9), unique=True, max_size=6)


def written(members: Iterator[ZipMember]) -> bytes:
    return b"".join(write_zip(members, io.BytesIO()))


@given(NAMES, st.binary(max_size=2_000))
def test_what_is_packed_comes_out_again(names: list[str], body: bytes) -> None:
    members = [ZipMember(name, [body, name.encode()]) for name in names]

    with zipfile.ZipFile(io.BytesIO(written(iter(members)))) as package:
        found = {name: package.read(name) for name in package.namelist()}

    assert found == {name: body + name.encode() for name in names}
    assert written(iter(members)) == written(iter(members))


def test_more_members_than_a_plain_zip_can_count() -> None:
    count = 70_000
    whole = written(ZipMember(f"{number}", []) for number in range(count))

    with zipfile.ZipFile(io.BytesIO(whole)) as package:
        assert len(package.namelist()) == count
        assert package.read("69999") == b""


def test_a_member_that_may_be_huge_is_written_so_that_it_may() -> None:
    whole = written(iter([ZipMember("huge", [b"x" * 300_000], 1 << 33), ZipMember("next", [b"y"])]))

    with zipfile.ZipFile(io.BytesIO(whole)) as package:
        assert package.read("huge") == b"x" * 300_000
        assert package.read("next") == b"y"
        assert package.getinfo("huge").extract_version == 45


@pytest.mark.parametrize("most", [0, 1 << 33])
@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_stored_member_can_be_read_in_place(most: int, size: int) -> None:
    body = b"compressible " * size
    members = [ZipMember("a", [body], most, is_stored=True), ZipMember("b", [b"b" * 300_000])]
    whole = written(iter(members))

    with zipfile.ZipFile(io.BytesIO(whole)) as package:
        assert package.testzip() is None
        assert package.getinfo("a").compress_type == zipfile.ZIP_STORED or not body
        assert package.getinfo("b").compress_size < 10_000
    assert body in whole


@given(st.text("a%\r\n0D2A5"))
def test_an_encoded_path_is_one_line_and_can_be_decoded(path: str) -> None:
    encoded = encode_path(path)

    assert "\n" not in encoded
    assert "\r" not in encoded
    decoded = encoded.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
    assert decoded == path
    assert manifest_line("00", path) == f"00  {encoded}\n"


def test_facts_that_nobody_knows_are_left_out_and_line_ends_become_blanks() -> None:
    assert bag_info([("A", ""), ("B", " x\n y\r\n"), ("C", "z")]) == b"B: x y\nC: z\n"
