"""A folder's files as originals: their URIs and order, which of them, and nothing outside."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.files import FileSelection, RereadSchedule, folders
from resourcesync.adapters.files.names_and_uris import to_name, to_segment
from resourcesync.errors import OriginalChangedError, StorageError
from tests.support.sources.trees import BASE, originals, published, put, reasons

NAMES = st.binary(min_size=1, max_size=40).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in {b".", b".."}
)


@given(NAMES)
def test_every_file_name_is_one_uri_segment_and_comes_back(raw: bytes) -> None:
    name = os.fsdecode(raw)

    segment = to_segment(name)

    assert to_name(segment) == name
    assert segment.isascii()
    assert not set(segment) & set("/?#&<>\"'\\ \n\r\t+;")


@given(st.text(min_size=0, max_size=30))
def test_a_segment_names_a_file_only_in_its_one_spelling(segment: str) -> None:
    name = to_name(segment) if segment.isascii() else None

    assert name is None or to_segment(name) == segment


@pytest.mark.parametrize("count", [6, 7, 8, 14, 50])
def test_a_folder_too_large_for_memory_is_listed_window_by_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(folders, "WINDOW", 7)
    names = [f"{number:03}" for number in range(count)]
    put(tmp_path, *names)

    assert published(originals(tmp_path)) == names


def test_a_tree_deeper_than_the_descriptors_we_hold_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_OPEN", 4)
    deep = "d/" * 30
    put(tmp_path, *(f"{deep[: 2 * level]}{name}" for level in range(31) for name in ("a", "z")))
    held = len(os.listdir("/proc/self/fd"))
    most = 0

    found = []
    for original in originals(tmp_path).scan():
        found.append(original.uri)
        most = max(most, len(os.listdir("/proc/self/fd")))

    assert found == sorted(found)
    assert len(found) == 62
    assert most - held <= 7
    assert len(os.listdir("/proc/self/fd")) == held


@pytest.fixture
def abyss(tmp_path: Path) -> Iterator[Path]:
    """A tree of 1,100 levels, which only ``rm`` can take away again."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1_100):
        os.mkdir("dd", dir_fd=here)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        below = os.open("dd", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path / "dd")], check=True)


def test_a_tree_so_deep_that_its_uris_are_too_long_is_cut_there_and_said_so(abyss: Path) -> None:
    found = originals(abyss)

    uris = [original.uri for original in found.scan()]

    assert max(map(len, uris)) <= 2_048
    assert len(uris) > 600
    assert [omission.reason for omission in found.omissions()] == [
        "its URI is longer than 2048 characters"
    ]


def test_hidden_files_backups_sockets_and_pipes_are_left_out_and_said_so(tmp_path: Path) -> None:
    put(tmp_path, "a", ".env", ".git/config", ".well-known/resourcesync", "b~", "sub/.htpasswd")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)
        listener.bind("socket")
        os.chdir(here)
        found = originals(tmp_path)

        assert published(found) == ["a"]
        told = reasons(found)
    hidden = {".env", ".git", ".well-known", "b~", "sub/.htpasswd"}
    assert set(told) == {*hidden, "pipe", "socket"}
    special = "not a regular file: a socket, a pipe or a device"
    assert {name for name, reason in told.items() if reason == special} == {"pipe", "socket"}


def test_patterns_choose_files_and_prune_folders(tmp_path: Path) -> None:
    put(tmp_path, "a.html", "a.txt", "drafts/b.html", "c/drafts/d.html", "c/e.html")

    selection = FileSelection(include=("*.html",), exclude=("/drafts/", "c/e*"))

    assert published(originals(tmp_path, selection)) == ["a.html", "c/drafts/d.html"]


def test_a_folder_on_another_file_system_is_not_entered_and_not_called_deleted() -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == Path("/dev").stat().st_dev:
        pytest.skip("there is no second file system here")
    found = originals(Path("/dev"), FileSelection(include=("no such file",)))

    list(found.scan())

    assert "shm" in {omission.name for omission in found.omissions()}
    found = originals(Path("/dev"))
    with pytest.raises(StorageError, match="file system now"):
        found.check_gone(f"{BASE}shm/published")
    found.check_gone(f"{BASE}no/such/file")
    originals(Path("/dev"), FileSelection(exclude=("/shm/",))).check_gone(f"{BASE}shm/published")


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_bytes(b"secret")
    return folder


def test_a_link_to_a_file_of_the_tree_is_published_with_that_files_bytes(tmp_path: Path) -> None:
    put(tmp_path, "store/object", content=b"bytes")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/link").symlink_to("../store/object")
    (tmp_path / "absolute").symlink_to(tmp_path.resolve() / "store/object")
    (tmp_path / "twice").symlink_to("a/link")
    found = originals(tmp_path)

    measured = {o.uri.removeprefix(BASE): found.measure(o)[0] for o in found.scan()}

    assert list(measured) == ["a/link", "absolute", "store/object", "twice"]
    assert {resource.length for resource in measured.values()} == {5}
    assert found.omissions() == ()


def test_a_link_that_leads_out_is_never_followed(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "absolute").symlink_to(outside / "secret")
    (tmp_path / "relative").symlink_to(f"../{outside.name}/secret")
    (tmp_path / "folder").symlink_to(outside)
    (tmp_path / "through").symlink_to("folder/secret")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("missing")
    (tmp_path / "real").mkdir()
    (tmp_path / "tofolder").symlink_to("real")
    (tmp_path / "back").symlink_to("folder/../real")
    found = originals(tmp_path)

    assert published(found) == []
    assert set(reasons(found)) == {
        "absolute", "relative", "folder", "through", "loop", "nowhere", "tofolder", "back",
    }  # fmt: skip


def test_a_link_to_a_file_that_is_not_published_is_omitted(tmp_path: Path) -> None:
    put(tmp_path, ".env", ".git/config", "drafts/a", "resourcesync/x")
    for number, target in enumerate((".env", ".git/config", "drafts/a", "resourcesync/x")):
        (tmp_path / f"link{number}").symlink_to(target)
    selection = FileSelection(exclude=("drafts/",), skip=frozenset({"resourcesync"}))

    assert published(originals(tmp_path, selection)) == []


@pytest.mark.parametrize("in_mid_scan", [False, True])
def test_a_file_that_is_replaced_by_a_link_or_a_pipe_is_not_read(
    tmp_path: Path, outside: Path, in_mid_scan: bool
) -> None:
    put(tmp_path, "a", "d/b", "p")
    found = originals(tmp_path)
    scanning = found.scan()
    scanned = [next(scanning)] if in_mid_scan else list(scanning)
    for name in ("a", "d/b", "p"):
        (tmp_path / name).unlink()
    (tmp_path / "a").symlink_to(outside / "secret")
    (tmp_path / "d").rmdir()
    (tmp_path / "d").symlink_to(outside)
    (outside / "b").write_bytes(b"secret")
    os.mkfifo(tmp_path / "p")

    for original in scanned:
        with pytest.raises(OriginalChangedError):
            found.measure(original)
        assert found.open(original.uri) is None


_NAMES = """
a b%20c d/x d/y d/e/z .env d/.git skip/s d/skip/s gone d/gone link d/link linked/x out/secret d/out
pipe d d/ d/../a d//x d/%2e%2e/a d/%61 d/e/..%2f..%2fa d/x?y %C3%BC/f
"""
_ELSEWHERE = ["https://other.example/data/a", "a", "/etc/passwd", BASE.removesuffix("/"), ""]
_URIS = [*(BASE + name for name in _NAMES.split()), BASE, *_ELSEWHERE]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    names = ("a", "b c", "d/x", "d/y", "d/e/z", ".env", "d/.git", "skip/s", "d/skip/s", "ü/f")
    for name in names:
        put(root, name, content=name.encode())
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_bytes(b"secret")
    (root / "link").symlink_to("d/x")
    (root / "d/link").symlink_to("../a")
    (root / "linked").symlink_to("d")
    (root / "out").symlink_to(outside)
    (root / "d/out").symlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    return root


def _read(opening: Callable[[str], BinaryIO | None], uri: str) -> bytes | None:
    stream = opening(uri)
    if stream is None:
        return None
    with stream:
        return stream.read()


@settings(max_examples=100, deadline=None)
@given(order=st.lists(st.sampled_from(_URIS), min_size=1, max_size=12))
def test_in_any_order_the_same_files_are_opened_as_one_by_one(tree: Path, order: list[str]) -> None:
    found = originals(tree, selection=FileSelection(skip=frozenset({"skip", "d/skip"})))
    alone = [_read(found.open, uri) for uri in order]

    with found.reading() as opening:
        together = [_read(opening, uri) for uri in order]

    assert together == alone


def test_a_folder_that_became_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(tmp_path, "root/d/x", "root/e/x", content=b"inside")
    put(outside, "x", "y", content=b"secret")
    found = originals(tmp_path / "root")

    with found.reading() as opening:
        assert _read(opening, BASE + "d/x") == b"inside"
        for name in "de":
            (tmp_path / "root" / name).rename(tmp_path / f"was-{name}")
            (tmp_path / "root" / name).symlink_to(outside)
        names = ("d/x", "d/y", "e/x", "e/y")
        seen = {_read(opening, BASE + name) for name in names}

    assert b"secret" not in seen


def test_no_descriptor_stays_open(tree: Path) -> None:
    before = os.listdir("/proc/self/fd")

    with originals(tree).reading() as opening:
        for uri in _URIS:
            _read(opening, uri)
        _read(opening, BASE + "d/e/z")

    assert os.listdir("/proc/self/fd") == before


DAY = 24 * 3_600 * 1_000_000


@pytest.mark.parametrize("note", [None, "", "nonsense", '{"at":1}', "[]"])
def test_what_is_not_remembered_begins_a_round(note: str | None) -> None:
    due = RereadSchedule.since(note, 9 * DAY)
    assert not due.due(range(100), [9 * DAY * 1_000 - 1] * 100)
    assert RereadSchedule.since(due.note(), 10 * DAY).width > 0
