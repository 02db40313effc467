"""From the path of a request to names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.own_files import link_target
from resourcesync.server.files import is_hidden, is_plain, read_path

NAME = st.binary(min_size=1, max_size=12).filter(is_plain)
NAMES = st.lists(NAME, min_size=1, max_size=6).map(tuple)


@given(st.binary(max_size=40).map(b"/".__add__) | st.binary(max_size=40))
def test_a_path_of_any_bytes_gives_plain_names_or_none(raw: bytes) -> None:
    names = read_path(raw)

    assert names is None or all(map(is_plain, names))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"*",
        b"a",
        b"//",
        b"//etc",
        b"/a//b",
        b"/a/",
        b"/.",
        b"/..",
        b"/../../etc/passwd",
        b"/a/../b",
        b"/a/./b",
        b"/%2e%2e/x",
        b"/%2E%2e/x",
        b"/.%2e/x",
        b"/%2e/x",
        b"/a%2fb",
        b"/..%2fx",
        b"/%2e%2e%2fx",
        b"/a%00",
        b"/\x00",
        b"/%",
        b"/%2",
        b"/%zz",
        b"/a%%41",
        b"ftp://host/x",
        b"http://host//x",
        b"http://host#x",
        b"localhost:80",
    ],
)
def test_a_path_that_can_name_nothing_is_refused(raw: bytes) -> None:
    assert read_path(raw) is None


def test_a_path_is_decoded_once() -> None:
    assert read_path(b"/%252e%252e/x") == (b"%2e%2e", b"x")
    assert read_path(b"/%c0%ae%c0%ae/x") == (b"\xc0\xae\xc0\xae", b"x")
    assert read_path(b"/a+b") == (b"a+b",)
    assert read_path(b"/%5c..%5cx") == (b"\\..\\x",)


def test_dot_files_and_backups_are_hidden_at_every_depth() -> None:
    assert is_hidden((b".git", b"config"))
    assert is_hidden((b"a", b".env"))
    assert is_hidden((b"a~", b"b"))
    assert is_hidden((b"a", b"b.txt~"))
    assert not is_hidden((b"a.b", b"~c"))
    assert not is_hidden(())


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("other", ("a", "other")),
        ("./other", ("a", "other")),
        ("../c/other", ("c", "other")),
        ("b//other", ("a", "b", "other")),
        ("b/../other", ()),  # b may be a link itself
        ("../../other", ()),
        ("..", ()),
        ("/tree/other", ("other",)),
        ("/real/tree/other", ("other",)),
        ("/tree/../etc/passwd", ()),
        ("/treehouse/other", ()),
        ("/tree", ()),
        ("/etc/passwd", ()),
        ("", ("a",)),
    ],
)
def test_a_link_is_followed_within_the_tree_alone(target: str, place: tuple[str, ...]) -> None:
    assert link_target(("a",), target, ("/tree", "/real/tree/")) == place


@given(st.lists(st.text(max_size=5)), st.text(max_size=30))
def test_where_a_link_leads_is_always_a_plain_place(folder: list[str], text: str) -> None:
    target = link_target(tuple(name for name in folder if name.strip("./")), text, ("/",))

    assert not {"", ".", ".."}.intersection(target)
