"""A folder's files as originals: under which URI, in which order, and which of them."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.files import FileSelection, folders
from resourcesync.adapters.files.names_and_uris import to_name, to_segment
from tests.support.sources.trees import originals, published, put, reasons

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


def test_a_folder_on_another_file_system_is_entered_only_when_asked(tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    found = originals(Path("/dev"), FileSelection(include=("no such file",)))

    list(found.scan())

    assert "shm" in {omission.name for omission in found.omissions()}
