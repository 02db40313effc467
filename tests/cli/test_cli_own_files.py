"""What stands in the place of our own files is neither followed nor waited for."""

import hashlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from resourcesync.cli.main import run
from resourcesync.mirror_state.database import STATE_FORMAT
from resourcesync.sqlite_file import SqliteFile
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

OWN = Path("museum/.resourcesync")
REFUSED = {
    "lock": "pull audit why",
    "marker": "pull audit why",
    "store": "pull audit trash-list",
    "sets.json": "pull",
    "state.db": "pull publish status audit changes trash-list why",
    "state.db-wal": "publish status changes trash-list",
}
NOT_NEEDED = {"lock": "status", "sets.json": "status audit"}
KEPT = {name: body for name, body in FILES.items() if name > "/objects/0001.txt"}


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    def late(_: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it waits: {frame}")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def mirror(source: TinySource, said: Said) -> TinySource:
    assert run(["pull", source.url, "museum"]) == 0
    source.offer(KEPT, at=LATER)
    assert run(["pull", "museum"]) == 0
    said.readouterr()
    return source


def command(words: str) -> list[str]:
    more = {
        "why": ["/objects/0003.txt"],
        "publish": ["--url", "https://m.example/"],
        "trash-empty": ["--all"],
        "trash-restore": ["--all"],
    }
    return [*words.split("-"), "museum", *more.get(words, ())]


def content(path: Path) -> object:
    return files_of(path) if path.is_dir() else path.read_bytes()


def plant_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def plant_link(path: Path) -> object:
    shutil.move(path, "elsewhere")
    path.symlink_to(Path("elsewhere").absolute())
    return content(Path("elsewhere")), Path("elsewhere").stat().st_mtime_ns


def is_unchanged(before: object) -> bool:
    return (content(Path("elsewhere")), Path("elsewhere").stat().st_mtime_ns) == before


@pytest.mark.parametrize("name", REFUSED)
def test_a_pipe_in_the_place_of_a_file_of_ours_is_told(
    mirror: TinySource, said: Said, name: str
) -> None:
    plant_pipe(OWN / name)

    for words in REFUSED[name].split():
        assert run(command(words)) == 8, words
        assert "is not an ordinary file" in said.readouterr().err, words


@pytest.mark.parametrize("name", NOT_NEEDED)
def test_a_pipe_in_the_place_of_a_file_that_a_command_does_not_need_stops_nothing(
    mirror: TinySource, name: str
) -> None:
    plant_pipe(OWN / name)

    assert [run(command(words)) for words in NOT_NEEDED[name].split()] in ([0], [0, 0])


@pytest.mark.parametrize("name", ["", "state.db"])
def test_no_command_goes_through_a_link_in_the_place_of_the_state(
    mirror: TinySource, said: Said, name: str
) -> None:
    before = plant_link(OWN / name)

    for words in ("publish", "status", "doctor", "changes", "trash-list"):
        code = 1 if words == "doctor" else 8  # it reports, and checks the rest
        assert (run(command(words)), is_unchanged(before)) == (code, True), said.readouterr()


def test_the_doctor_tries_no_file_system_through_a_link(mirror: TinySource) -> None:
    before = plant_link(OWN / "tmp")

    assert run(["doctor", "museum"]) == 1

    assert is_unchanged(before)


@pytest.mark.parametrize(
    "place", ["../../../precious", "{}/precious", "a/../../../../precious", ".."]
)
def test_a_name_in_the_trash_that_leads_out_of_it_is_refused_and_named(
    mirror: TinySource, said: Said, here: Path, place: str
) -> None:
    (here / "precious").write_bytes(b"precious")
    (OWN / "trash/a").mkdir()
    place = place.format(here)
    with SqliteFile(OWN / "state.db", STATE_FORMAT) as file, file.writing() as db:
        db.execute("UPDATE trash SET place = ?, removed = 0 WHERE path LIKE '%0000%'", (place,))

    for words in ("trash-empty", "trash-restore", "trash-list", "pull"):
        assert run(command(words)) == 8
        assert f"{place!r} cannot be the name of a file in the trash" in said.readouterr().err
        assert (here / "precious").read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["publish.lock", "list"])
def test_a_pipe_in_the_place_of_what_publishing_writes_is_not_waited_for(
    tree: Path, said: Said, name: str
) -> None:
    assert run(["publish", str(tree), "--url", "https://m.example/"]) == 0
    place = tree / ".resourcesync" / name
    if name == "list":
        (place,) = tree.rglob("resourcelist.xml")
    plant_pipe(place)
    (tree / "more.txt").write_bytes(b"more")

    assert run(["publish", str(tree)]) == 8, said.readouterr()


@pytest.mark.parametrize("name", ["", "versions", "shard"])
def test_publishing_writes_through_no_link(tree: Path, said: Said, name: str) -> None:
    words = ["publish", str(tree), "--url", "https://m.example/", "--versions"]
    assert run(words) == 0, said.readouterr()
    (tree / "objects/0001.txt").write_bytes(b"another")
    new = f"versions/{hashlib.sha256(b'another').hexdigest()[:2]}"
    place = tree / ".resourcesync" / (new if name == "shard" else name)
    if name == "shard":
        place.mkdir(exist_ok=True)
    before = plant_link(place)

    assert run(words) == 8, said.readouterr()

    assert is_unchanged(before)


def test_the_documents_of_a_mirror_are_written_through_no_link(
    mirror: TinySource, said: Said
) -> None:
    assert run(command("publish")) == 0
    next((OWN / "publication").rglob("resourcelist.xml")).unlink()
    before = plant_link(OWN / "publication")

    assert run(command("publish")) == 8, said.readouterr()

    assert is_unchanged(before)
