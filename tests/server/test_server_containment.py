"""Nothing outside the tree, and nothing hidden in it, is ever served."""

import os
import socket
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp

from resourcesync.adapters.system import SystemClock
from resourcesync.own_files import link_target
from resourcesync.server.app import Application
from resourcesync.server.files import is_plain, read_path
from tests.support.servers.asgi import CANARY, ask
from tests.support.servers.served_tree import served_source

INSIDE = b"everybody may see this"


@dataclass(frozen=True)
class ServedRoot:
    root: Path
    app: ASGIApp


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ServedRoot:
    outer = tmp_path_factory.mktemp("outer")
    root = outer / "root"
    (root / "sub" / "deep").mkdir(parents=True)
    for name in (".git", ".well-known", "backup~"):
        (root / name).mkdir()
    for name in ("in.txt", "sub/in.txt", "sub/deep/in.txt", "~a.b"):
        (root / name).write_bytes(INSIDE)
    hidden = [".git/config", ".env", "in.txt~", "backup~/in.txt", ".well-known/other"]
    for name in ("../secret", "../in.txt", "../rootling", *hidden):
        (root / name).write_bytes(CANARY)
    links = {
        "out-relative": "../secret",
        "out-absolute": str(outer / "secret"),
        "out-sibling": str(outer / "rootling"),
        "out-long": "sub/deep/../../../secret",
        "out-folder": "..",
        "out-system": "/etc/passwd",
        "to-hidden": ".git/config",
        "to-folder": "sub",
        "to-in-through-folder": "to-folder/in.txt",
        "to-nothing": "nothing",
        "to-itself": "to-itself",
        "to-in": "in.txt",
        "to-in-absolute": str(root / "sub" / "in.txt"),
        "to-in-twice": "to-in",
        "sub/to-in-above": "../in.txt",
        "sub/out-one-by-one": "../out-relative",
        "sub/index.html": "../../secret",
        ".well-known/resourcesync": str(outer / "secret"),
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    for number in range(12):
        (root / f"chain-{number}").symlink_to(f"chain-{number + 1}" if number < 11 else "in.txt")
    served = served_source(root, media_type=lambda _: "text/plain")
    return ServedRoot(root, Application(served, clock=SystemClock()))


PARTS = st.sampled_from(
    [
        *(
            *("..", ".", "", "%2e%2e", "%2E.", "..%2f", "%2f", "%5c..%5c", "..;", "%00"),
            "%c0%ae%c0%ae",
        ),
        *("sub", "deep", "in.txt", "in.txt~", ".git", "config", ".env", ".well-known", "other"),
        *("secret", "root", "rootling", "etc", "passwd", "proc", "self", "cwd", "out-folder"),
        *(
            *("out-relative", "out-absolute", "out-long", "to-hidden", "to-folder", "to-in"),
            "%252e%252e",
        ),
    ]
)
PATHS = st.lists(PARTS, min_size=1, max_size=6).map(lambda parts: "/" + "/".join(parts))
RAW = st.binary(min_size=1, max_size=30).map(b"/".__add__)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=PATHS.map(str.encode) | RAW)
@example(path=b"/../secret")
@example(path=b"/..%2fsecret")
@example(path=b"/out-folder/secret")
@example(path=b"/sub/out-one-by-one")
def test_no_path_shows_what_is_not_published(world: ServedRoot, path: bytes) -> None:
    answer = ask(world.app, path)

    assert answer.status in {200, 404}
    assert CANARY not in answer.body
    if answer.status == 200:
        assert answer.body == INSIDE or path == b"/"


ABSENT = [
    *("/out-relative", "/out-absolute", "/out-sibling", "/out-long", "/out-folder/secret"),
    *("/out-system", "/to-hidden", "/to-folder", "/to-folder/in.txt", "/to-in-through-folder"),
    *("/to-nothing", "/to-itself", "/sub/out-one-by-one", "/chain-0", "/.git/config", "/.env"),
    *("/in.txt~", "/.well-known/other", "/.well-known", "/sub", "/in.txt/x", "/in.txt/", "/sub/"),
    *("/.well-known/resourcesync", "/backup~/in.txt", "/" + "a" * 5000, "/sub" * 4000),
]
SERVED = [
    *("/in.txt", "/sub/deep/in.txt", "/to-in", "/to-in-absolute", "/to-in-twice"),
    *("/sub/to-in-above", "/chain-4", "/s%75b/in%2Etxt", "/~a.b"),
]


@pytest.mark.parametrize("path", [*ABSENT, *SERVED], ids=lambda path: path[:40])
def test_links_that_lead_out_and_hidden_files_are_absent_and_all_others_served(
    world: ServedRoot, path: str
) -> None:
    answer = ask(world.app, path)

    if path in SERVED:
        assert (answer.status, answer.body) == (200, INSIDE)
    else:
        assert answer.status == 404
        assert "etag" not in answer.fields


def test_the_tree_itself_may_be_reached_by_a_link(world: ServedRoot, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(world.root)
    (world.root / "through-link").symlink_to(tmp_path / "current" / "in.txt")
    app = Application(served_source(tmp_path / "current"), clock=SystemClock())

    assert ask(app, "/in.txt").body == INSIDE
    assert ask(app, "/through-link").body == INSIDE
    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to(world.root / "sub" / "deep")
    assert ask(app, "/sub/in.txt").status == 503  # nothing is published there


def test_what_is_no_file_is_absent_and_holds_nobody_up(world: ServedRoot) -> None:
    os.mkfifo(world.root / "pipe")
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        here = Path.cwd()
        os.chdir(world.root)
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)

        assert ask(world.app, "/pipe").status == 404
        assert ask(world.app, "/socket").status == 404


def test_a_folder_swapped_for_a_link_is_not_entered(world: ServedRoot, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "in.txt").write_bytes(CANARY)
    (world.root / "swapped").mkdir()
    (world.root / "swapped" / "in.txt").write_bytes(INSIDE)

    before = ask(world.app, "/swapped/in.txt")
    (world.root / "swapped").rename(tmp_path / "old")
    (world.root / "swapped").symlink_to(tmp_path / "elsewhere")
    after = ask(world.app, "/swapped/in.txt")

    assert before.body == INSIDE
    assert after.status == 404


@pytest.mark.parametrize(
    "name",
    [
        b"n\xff\xfe",
        b"a b",
        b"a&b<c>\"d'",
        b"line\nbreak",
        b"\x1b[2J",
        "ü😀".encode(),
        b"%41",
        b"a\\b",
    ],
)
def test_a_name_of_any_bytes_is_served_under_its_escapes(tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_bytes(INSIDE)
    served = served_source(tmp_path)

    answer = ask(Application(served, clock=SystemClock()), "/" + quote_from_bytes(name, safe=""))

    assert answer.body == INSIDE


@given(st.binary(max_size=40).map(b"/".__add__) | st.binary(max_size=40))
def test_a_path_of_any_bytes_gives_plain_names_or_none(raw: bytes) -> None:
    names = read_path(raw)

    assert names is None or all(map(is_plain, names))


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"*", b"a", b"//", b"//etc", b"/a//b", b"/a/", b"/.", b"/..", b"/../../etc/passwd"),
        *(b"/a/../b", b"/a/./b", b"/%2e%2e/x", b"/%2E%2e/x", b"/.%2e/x", b"/%2e/x", b"/a%2fb"),
        *(b"/..%2fx", b"/%2e%2e%2fx", b"/a%00", b"/\x00", b"/%", b"/%2", b"/%zz", b"/a%%41"),
        *(b"ftp://host/x", b"http://host//x", b"http://host#x", b"localhost:80"),
    ],
)
def test_a_path_that_can_name_nothing_is_refused(raw: bytes) -> None:
    assert read_path(raw) is None


def test_a_path_is_decoded_once() -> None:
    assert read_path(b"/%252e%252e/x") == (b"%2e%2e", b"x")
    assert read_path(b"/%c0%ae%c0%ae/x") == (b"\xc0\xae\xc0\xae", b"x")
    assert read_path(b"/a+b") == (b"a+b",)
    assert read_path(b"/%5c..%5cx") == (b"\\..\\x",)


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("other", ("a", "other")),
        ("../c/other", ("c", "other")),
        ("b//other", ("a", "b", "other")),
        ("b/../other", ()),  # b may be a link itself
        ("../../other", ()),
        ("..", ()),
        ("/tree/other", ("other",)),
        ("/real/tree/other", ("other",)),
        ("/tree/../etc/passwd", ()),
        ("/treehouse/other", ()),
        ("", ("a",)),
    ],
)
def test_a_link_is_followed_within_the_tree_alone(target: str, place: tuple[str, ...]) -> None:
    assert link_target(("a",), target, ("/tree", "/real/tree/")) == place


@given(st.lists(st.text(max_size=5)), st.text(max_size=30))
def test_where_a_link_leads_is_always_a_plain_place(folder: list[str], text: str) -> None:
    target = link_target(tuple(name for name in folder if name.strip("./")), text, ("/",))

    assert not {"", ".", ".."}.intersection(target)
