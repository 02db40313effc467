"""A folder's files as originals: what is published, under which URI, and what is trusted."""

import hashlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.clock import SystemClock
from resourcesync.adapters.files import FileTreeOriginals, Selection, folders, tree
from resourcesync.adapters.files.media_types import media_type
from resourcesync.adapters.files.names import to_name, to_names, to_segment
from resourcesync.adapters.memory import ManualClock
from resourcesync.errors import ConfigurationError, OriginalChangedError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.ports import Original

BASE = "https://museum.example/data/"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def originals(root: Path, selection: Selection | None = None) -> FileTreeOriginals:
    """A tree seen from a time when every file is old."""
    return FileTreeOriginals(root, BASE, clock=ManualClock(LATER), selection=selection)


def put(root: Path, *names: str, content: bytes = b"x") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def published(found: FileTreeOriginals) -> list[str]:
    return [original.uri.removeprefix(BASE) for original in found.scan()]


def reasons(found: FileTreeOriginals) -> dict[str, str]:
    list(found.scan())
    return {omission.name: omission.reason for omission in found.omissions()}


# --- names and order ---------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    "path", ["", ".", "..", "a/../b", "a//b", "%2e%2e", "a%2Fb", "%61", "a%00", "a%2", "a%c3", "/a"]
)
def test_a_path_that_is_no_published_spelling_names_nothing(path: str) -> None:
    assert to_names(path) is None


def test_uris_rise_by_code_points_although_folders_sort_with_their_slash(tmp_path: Path) -> None:
    put(tmp_path, "a/z", "a.b", "a-b", "a0", "a b", "ab/c", "é/1", "a%", "a/b/c", "b")

    found = published(originals(tmp_path))

    assert found == sorted(found)
    assert found == [
        "%C3%A9/1", "a%20b", "a%25", "a-b", "a.b", "a/b/c", "a/z", "a0", "ab/c", "b",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [
        b"new\nline",
        b"a&b<c>\"d'",
        "😀".encode(),
        b"latin\xe9",
        b"\xff\xfe",
        b"tab\t",
        b"100%",
        b"a+b;c",
    ],
)
def test_any_name_that_a_file_can_have_is_published_and_found_again(
    tmp_path: Path, raw: bytes
) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + raw)).write_bytes(b"content of " + raw)
    found = originals(tmp_path)

    (original,) = found.scan()
    resource, _ = found.measure(original)
    stream = found.open(original.uri)

    assert stream is not None
    with stream:
        assert stream.read() == b"content of " + raw
    assert resource.length == len(raw) + 11
    assert found.locate(original.uri) == os.fsdecode(raw)


def test_a_folder_too_large_for_memory_is_listed_window_by_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_WINDOW", 7)
    put(tmp_path, *(f"{number:03}" for number in range(50)))

    found = published(originals(tmp_path))

    assert found == [f"{number:03}" for number in range(50)]


@pytest.mark.parametrize("count", [6, 7, 8, 14])
def test_no_name_is_lost_at_the_edge_of_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(folders, "_WINDOW", 7)
    put(tmp_path, *(f"{number:03}" for number in range(count)))

    assert len(published(originals(tmp_path))) == count


def test_a_tree_deeper_than_the_descriptors_we_hold_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_HELD", 4)
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


def test_a_scan_that_is_given_up_holds_no_descriptor(tmp_path: Path) -> None:
    put(tmp_path, "a/b/c", "a/b/d")
    held = len(os.listdir("/proc/self/fd"))
    scan = originals(tmp_path).scan()
    next(scan)

    scan.close()  # type: ignore[attr-defined]  # it is a generator

    assert len(os.listdir("/proc/self/fd")) == held


# --- what is published -------------------------------------------------------------------------


def test_hidden_files_and_backups_are_left_out_and_said_so(tmp_path: Path) -> None:
    put(tmp_path, "a", ".env", ".git/config", ".well-known/resourcesync", "b~", "sub/.htpasswd")

    found = originals(tmp_path)

    assert published(found) == ["a"]
    assert set(reasons(found)) == {".env", ".git", ".well-known", "b~", "sub/.htpasswd"}


def test_hidden_files_are_published_when_asked(tmp_path: Path) -> None:
    put(tmp_path, "a", ".env", "b~")

    assert published(originals(tmp_path, Selection(hidden=True))) == [".env", "a", "b~"]


def test_our_own_folder_is_not_published_and_not_mentioned(tmp_path: Path) -> None:
    put(tmp_path, "a", "resourcesync/resourcelist.xml", "b/resourcesync/x")
    found = originals(tmp_path, Selection(skip=frozenset({"resourcesync/"})))

    assert published(found) == ["a", "b/resourcesync/x"]
    assert found.omissions() == ()


def test_patterns_choose_files_and_prune_folders(tmp_path: Path) -> None:
    put(tmp_path, "a.html", "a.txt", "drafts/b.html", "c/drafts/d.html", "c/e.html")

    selection = Selection(include=("*.html",), exclude=("drafts", "c/e*"))

    assert published(originals(tmp_path, selection)) == ["a.html", "c/drafts/d.html"]


def test_sockets_and_pipes_are_omitted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)
        listener.bind("socket")
        os.chdir(here)
        found = originals(tmp_path)

        assert published(found) == []
        assert reasons(found) == dict.fromkeys(
            ("pipe", "socket"), "not a file: a socket, a pipe or a device"
        )


def test_the_omissions_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_MAX_OMISSIONS", 3)
    put(tmp_path, *(f".{number}" for number in range(9)))

    assert len(reasons(originals(tmp_path))) == 3


def test_a_folder_on_another_file_system_is_entered_only_when_asked(tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    found = originals(Path("/dev"), Selection(include=("no such file",)))

    list(found.scan())

    assert "shm" in {omission.name for omission in found.omissions()}


# --- links -------------------------------------------------------------------------------------


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
    selection = Selection(exclude=("drafts",), skip=frozenset({"resourcesync"}))

    assert published(originals(tmp_path, selection)) == []


def test_a_file_replaced_by_a_link_after_the_scan_is_not_read(
    tmp_path: Path, outside: Path
) -> None:
    put(tmp_path, "a", "d/b")
    found = originals(tmp_path)
    scanned = list(found.scan())
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to(outside / "secret")
    (tmp_path / "d/b").unlink()
    (tmp_path / "d").rmdir()
    (tmp_path / "d").symlink_to(outside)
    (outside / "b").write_bytes(b"secret")

    for original in scanned:
        with pytest.raises(OriginalChangedError):
            found.measure(original)
        assert found.open(original.uri) is None


def test_a_file_replaced_by_a_link_in_mid_scan_is_not_read(tmp_path: Path, outside: Path) -> None:
    put(tmp_path, "a")
    found = originals(tmp_path)
    for original in found.scan():
        (tmp_path / "a").unlink()
        (tmp_path / "a").symlink_to(outside / "secret")

        with pytest.raises(OriginalChangedError):
            found.measure(original)


def test_a_file_replaced_by_a_pipe_does_not_hang(tmp_path: Path) -> None:
    put(tmp_path, "a")
    found = originals(tmp_path)
    (original,) = found.scan()
    (tmp_path / "a").unlink()
    os.mkfifo(tmp_path / "a")

    with pytest.raises(OriginalChangedError):
        found.measure(original)


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "release-2", "a")
    (tmp_path / "release-2/link").symlink_to("a")
    (tmp_path / "current").symlink_to("release-2")

    assert published(originals(tmp_path / "current")) == ["a", "link"]


# --- serving -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uri",
    [
        "https://museum.example/data/.env",
        "https://museum.example/data/../secret",
        "https://museum.example/data/%2e%2e/secret",
        "https://museum.example/data/d/..%2f..%2fsecret",
        "https://museum.example/data//etc/passwd",
        "https://museum.example/data/%61",
        "https://museum.example/data/",
        "https://museum.example/data/a?x",
        "https://museum.example/a",
        "https://other.example/data/a",
        "http://museum.example/data/a",
        "",
    ],
)
def test_only_the_uri_that_is_published_opens_a_file(tmp_path: Path, uri: str) -> None:
    put(tmp_path, "a", ".env", "d/x")

    found = originals(tmp_path)

    assert found.locate(uri) is None
    assert found.open(uri) is None


def test_what_is_located_may_still_not_be_there(tmp_path: Path) -> None:
    put(tmp_path, "d/x")
    found = originals(tmp_path)

    assert found.locate(BASE + "missing") == "missing"
    assert found.open(BASE + "missing") is None
    assert found.open(BASE + "d") is None


def test_files_can_be_opened_while_another_thread_scans(tmp_path: Path) -> None:
    names = [f"d{number}/f{number}" for number in range(40)]
    for name in names:
        put(tmp_path, name, content=name.encode())
    put(tmp_path, *(f"d{number}/f{other}" for number in range(40) for other in range(40, 44)))
    found = originals(tmp_path)
    done = threading.Event()

    def scan() -> None:
        while not done.is_set():
            list(found.scan())

    scanner = threading.Thread(target=scan)
    scanner.start()
    try:
        for name in names * 5:
            stream = found.open(BASE + name)
            assert stream is not None
            with stream:
                assert stream.read() == name.encode()
    finally:
        done.set()
        scanner.join()


# --- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 1_000, 262_143, 262_144, 262_145, 700_000])
def test_length_and_digests_are_those_of_the_bytes(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    put(tmp_path, "a.html", content=content)
    os.utime(tmp_path / "a.html", ns=(0, 1_600_000_000_900_000_001))
    found = FileTreeOriginals(
        tmp_path, BASE, clock=ManualClock(LATER), algorithms=("sha-256", "md5", "sha-1")
    )

    (original,) = found.scan()
    resource, fingerprint = found.measure(original)

    assert resource.digests == (
        Digest("sha-256", hashlib.sha256(content).hexdigest()),
        Digest("md5", hashlib.md5(content).hexdigest()),
        Digest("sha-1", hashlib.sha1(content).hexdigest()),
    )
    assert resource.length == original.length == size
    assert resource.lastmod == original.lastmod == datetime.fromtimestamp(1_600_000_000, UTC)
    assert resource.media_type == "text/html"
    assert fingerprint == original.fingerprint != ""
    assert resource.uri == original.uri == BASE + "a.html"


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="sha-3"):
        FileTreeOriginals(Path(), BASE, clock=ManualClock(), algorithms=("sha-3",))


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a", content=b"first")
    found = originals(tmp_path)
    (original,) = found.scan()
    writes = [b"second!", b"third!!!"]
    read = os.read

    def interrupted(descriptor: int, size: int) -> bytes:
        chunk = read(descriptor, size)
        if writes:
            (tmp_path / "a").write_bytes(writes.pop(0))
        return chunk

    monkeypatch.setattr(os, "read", interrupted)

    resource, _ = found.measure(original)

    assert resource.digests == (Digest("sha-256", hashlib.sha256(b"third!!!").hexdigest()),)
    assert resource.length == 8


def test_a_file_that_never_rests_is_left_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a")
    found = originals(tmp_path)
    (original,) = found.scan()
    read = os.read
    reads = []

    def interrupted(descriptor: int, size: int) -> bytes:
        chunk = read(descriptor, size)
        reads.append(size)
        with (tmp_path / "a").open("ab") as stream:
            stream.write(b"more")
        return chunk

    monkeypatch.setattr(os, "read", interrupted)

    with pytest.raises(OriginalChangedError, match="changed each time"):
        found.measure(original)
    assert len(reads) == 3


def test_a_vanished_file_is_left_for_the_next_run(tmp_path: Path) -> None:
    put(tmp_path, "a")
    found = originals(tmp_path)
    (original,) = found.scan()
    (tmp_path / "a").unlink()

    with pytest.raises(OriginalChangedError, match="no longer there"):
        found.measure(original)


def test_a_uri_of_another_tree_is_not_measured(tmp_path: Path) -> None:
    foreign = Original(uri="https://x.example/a", fingerprint="", length=0, lastmod=LATER)

    with pytest.raises(OriginalChangedError, match="not a file of this tree"):
        originals(tmp_path).measure(foreign)


# --- failures ----------------------------------------------------------------------------------


def test_a_tree_that_is_not_there_is_an_error_and_not_empty(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        list(originals(tmp_path / "missing").scan())


def test_a_folder_that_cannot_be_opened_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a", "d/b")

    def denied(_: int, names: tuple[str, ...]) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tree, "open_below", denied)

    with pytest.raises(StorageError, match="'d' cannot be read: Permission denied") as caught:
        list(originals(tmp_path).scan())
    assert caught.value.code == "unreadable-folder"


def test_an_unreadable_file_is_told_of_with_a_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a")
    found = originals(tmp_path)
    (original,) = found.scan()

    def denied(*_: object, **__: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", denied)

    with pytest.raises(StorageError, match="Input/output error") as caught:
        found.measure(original)
    assert caught.value.code == "unreadable-file"


def test_what_vanishes_during_the_scan_is_simply_gone(tmp_path: Path) -> None:
    put(tmp_path, "a", "b", "c/d")
    scan = originals(tmp_path).scan()

    first = next(scan)
    (tmp_path / "b").unlink()
    (tmp_path / "c/d").unlink()
    (tmp_path / "c").rmdir()

    assert first.uri == BASE + "a"
    assert list(scan) == []


# --- fingerprints ------------------------------------------------------------------------------


def seen(path: Path, *, age: timedelta, modified: int = 1_700_000_000_123_456_789) -> str:
    """The fingerprint of a file that is looked at when it has this age."""
    os.utime(path, ns=(modified, modified))
    now = datetime.fromtimestamp(modified // 1_000_000_000, UTC)
    now += timedelta(microseconds=modified % 1_000_000_000 // 1_000)
    (original,) = FileTreeOriginals(path.parent, BASE, clock=ManualClock(now + age)).scan()
    return original.fingerprint


WHOLE = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("age", "modified", "trusted"),
    [
        (timedelta(seconds=1), WHOLE + 5, True),
        (timedelta(milliseconds=21), WHOLE + 5, True),
        (timedelta(milliseconds=19), WHOLE + 5, False),
        (timedelta(0), WHOLE + 5, False),
        (timedelta(milliseconds=-500), WHOLE + 5, False),
        (timedelta(hours=-1), WHOLE + 5, True),
        (timedelta(milliseconds=1_900), WHOLE, False),
        (timedelta(milliseconds=2_100), WHOLE, True),
    ],
)
def test_a_file_that_may_still_change_within_its_timestamp_is_not_trusted(
    tmp_path: Path, age: timedelta, modified: int, *, trusted: bool
) -> None:
    put(tmp_path, "a")

    assert (seen(tmp_path / "a", age=age, modified=modified) != "") is trusted


def test_a_rewritten_file_has_another_fingerprint(tmp_path: Path) -> None:
    put(tmp_path, "a", content=b"one")
    found = originals(tmp_path)
    before = [original.fingerprint for original in found.scan()]
    (tmp_path / "b").write_bytes(b"two")
    os.utime(tmp_path / "b", ns=(0, (tmp_path / "a").stat().st_mtime_ns))
    (tmp_path / "b").rename(tmp_path / "a")  # same size, same time

    after = [original.fingerprint for original in found.scan()]

    assert before != after


def test_a_file_just_written_is_not_trusted_by_the_real_clock(tmp_path: Path) -> None:
    put(tmp_path, "a")
    found = FileTreeOriginals(tmp_path, BASE, clock=SystemClock())

    (original,) = found.scan()

    assert original.fingerprint == ""


@pytest.mark.parametrize("modified", [-86_400, 0])
def test_a_date_before_1970_is_published_as_1970(tmp_path: Path, modified: int) -> None:
    put(tmp_path, "a")
    os.utime(tmp_path / "a", (modified, modified))

    (original,) = originals(tmp_path).scan()

    assert original.lastmod == datetime(1970, 1, 1, tzinfo=UTC)


# --- media types -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.html", "text/html"),
        ("A.HTM", "text/html"),
        ("a.xml", "application/xml"),
        ("a.py", "text/x-python"),
        ("a.tar.gz", "application/gzip"),
        ("a.jpeg", "image/jpeg"),
        ("html", "application/octet-stream"),
        ("a.", "application/octet-stream"),
        ("a.unheard", "application/octet-stream"),
    ],
)
def test_media_types_come_from_our_own_table(name: str, expected: str) -> None:
    assert media_type(name) == expected
