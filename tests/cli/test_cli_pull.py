"""``pull``: how it ends and what it leaves."""

import json
import os
import re
import resource
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, Said, rows
from tests.support.commands.settings_file import museum, put
from tests.support.commands.started import command
from tests.support.servers.tiny_source import Answer, TinySource
from tests.support.worlds.site_maps import urlset


def test_a_validator_that_is_not_ascii_is_not_sent_back(source: TinySource) -> None:
    for target, answer in source.answers.items():
        headers = {**answer.headers, "ETag": '"caf\xe9"'}
        source.answers[target] = Answer(body=answer.body, headers=headers)
    assert run(["pull", source.url, "museum"]) == 0
    source.asked.clear()

    assert run(["pull", "museum"]) == 0

    assert source.asked
    assert not [asked for asked in source.asked if "If-None-Match" in asked.headers]


def test_a_relative_time_is_reported_when_it_is_another_and_not_as_it_goes_on(
    source: TinySource, said: Said
) -> None:
    put(museum(source))
    given = ("", "2020-01-01", "-3d", "-3d", "-15d", "-15d")
    assert [run(["pull", "museum", "--since", since]) for since in given] == [0] * 6

    assert said.readouterr().out.count("Filters   changed: --since") == 3


NOBODY = "http://127.0.0.1:9/"


def test_what_was_there_outlives_a_first_pull_that_fails(tmp_path: Path) -> None:
    own = tmp_path / "w" / ".resourcesync"
    names = ("trash/deleted", "quarantine/edited", "../mine.txt")
    for name in names:
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(name)
    SourceCatalogue(own / "catalogue.db").close()
    catalogue = (own / "catalogue.db").read_bytes()

    for extra in ((), ("-n",)):
        ran = command("pull", NOBODY, str(own.parent), "-o", "retries=0", *extra, home=tmp_path)
        assert ran.returncode == 4

    for name in names:
        assert (own / name).read_text() == name
    assert (own / "catalogue.db").read_bytes() == catalogue
    assert not (own / "state.db").exists()


def test_a_part_that_no_task_needs_is_gone_after_a_complete_pull(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum"]) == 0
    left = Path("museum/.resourcesync/tmp")
    (left / "one").write_bytes(b"x" * (2 << 20))
    note = {"of": f"{source.url}/gone.bin", "validator": '"tag"'}
    (left / "one.part").write_text(json.dumps(note))
    assert run(["status", "museum"]) == 0
    assert run(["audit", "museum"]) == 0
    assert {path.name for path in left.iterdir()} == {"one", "one.part"}
    source.offer({**FILES, "/lost.txt": b"lost"}, at="2026-01-02T00:00:00Z")
    del source.answers["/lost.txt"]
    assert run(["pull", "museum"]) == 3
    assert {path.name for path in left.iterdir()} == {"one", "one.part"}, "something is missing yet"

    source.put("/lost.txt", b"lost")
    assert run(["pull", "museum"]) == 0

    assert list(left.iterdir()) == []
    said.readouterr()


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinySource]:
    monkeypatch.chdir(tmp_path)
    with TinySource() as source:
        for name in "abc":
            source.put(f"/{name}.html", b"page", "text/html")
        list_pages(source, a="2025-01-01", b="2025-01-01", c="")
        yield source


def list_pages(source: TinySource, **dates: str) -> None:
    entries = ((f"{source.url}/{name}.html", date) for name, date in dates.items())
    source.put("/sitemap.xml", urlset(*entries), "text/xml")


def test_a_pull_says_what_proves_the_copies(pages: TinySource, capsys: Said) -> None:
    assert run(["pull", pages.url, "m"]) == 0
    assert "known: 3 by request\n" in capsys.readouterr().out
    assert run(["pull", "m"]) == 0
    assert "known: 1 by request, 2 by date only\n" in capsys.readouterr().out
    assert run(["pull", "m", "--json", "-o", "recheck=0"]) == 0
    end = rows(capsys)[-1]
    assert end["evidence"] == {"by_hash": 0, "by_request": 1, "by_date": 2, "unconfirmed": 0}
    assert end["fetched"]["rechecked"] == 0
    assert run(["status", "m", "--json"]) == 0
    status = next(row for row in rows(capsys) if row["type"] == "mirror")
    assert (status["evidence"]["by_date"], status["recheck_seconds"]) == (2, 0)


def test_what_robots_and_law_forbid_is_not_to_be_run_again(pages: TinySource, said: Said) -> None:
    pages.put("/robots.txt", b"User-agent: *\nDisallow: /a.html")
    pages.answers["/b.html"] = Answer(status=451)
    assert run(["pull", pages.url, "m", "--no-accept-missing"]) == 3

    out = said.readouterr().out
    assert "1 listed resource disallowed by robots.txt" in out
    assert "refused by the server (401, 403, 451)" in out
    assert "run it again" not in out


@pytest.mark.parametrize("delete", ["", "absent", "never"])
def test_what_becomes_of_pages_is_said_once_and_remembered(
    pages: TinySource, capsys: Said, delete: str
) -> None:
    goes = delete == "absent"
    assert run(["pull", pages.url, "m", *(["--delete", delete] if delete else [])]) == 0
    fate = "are deleted." if goes else "stay; --delete absent deletes them."
    assert f"Pages that the sitemap no longer lists {fate}\n" in capsys.readouterr().out

    list_pages(pages, a="2025-01-01", b="2025-01-01")
    assert run(["pull", "m", "--delete", "auto", "-n"]) == 0, "a dry run is remembered by nobody"
    assert run(["pull", "m"]) == 0
    assert "Pages that" not in capsys.readouterr().out
    assert Path("m/c.html").exists() is not goes

    list_pages(pages, a="2025-01-01")
    assert run(["pull", "m", "--delete", "auto"]) == 0
    assert Path("m/b.html").exists(), "what is given again takes its place"


def test_what_a_table_no_longer_says_is_not_remembered(pages: TinySource, capsys: Said) -> None:
    table = f'[mirror.m]\nsource = "{pages.url}"\ndest = "m"\n'
    Path("resourcesync.toml").write_text(f'{table}delete = "absent"\naccept_missing = false\n')
    assert run(["pull", "m", "-q"]) == 0
    Path("resourcesync.toml").write_text(table)
    list_pages(pages, a="2025-01-01", b="2025-01-01", d="")

    assert run(["pull", "m"]) == 0
    assert Path("m/c.html").exists()
    assert "as the file says" not in capsys.readouterr().out
    assert run(["pull", "m", "--accept-missing"]) == 0
    assert "The next pull is as the file says" in capsys.readouterr().out


ROOM = 1_000_000
COMMAND = re.compile(r"resourcesync (trash empty .*)")


@contextmanager
def full_disk() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "pull", [["SOURCE", "copies/museum"], ["museum"], ["museum", "copies/museum-2"], ["--all"]]
)
def test_a_pull_that_fails_names_the_command_that_makes_room_if_the_trash_has_something(
    source: TinySource, said: Said, pull: list[str]
) -> None:
    put(museum(source))
    assert run(["pull", "museum", "-qq"]) == 0
    assert run(["pull", source.url, "copies/museum-2", "-qq"]) == 0

    def failing(files: dict[str, bytes], at: str) -> list[str]:
        source.offer({**files, "/large.bin": b"x" * 3 * ROOM}, at=at)
        said.readouterr()
        with full_disk():
            assert run(["pull", *(source.url if part == "SOURCE" else part for part in pull)]) == 8
        return COMMAND.findall(said.readouterr().err)

    assert failing(FILES, "2026-02-01T00:00:00Z") == []
    fewer = dict(list(FILES.items())[1:])
    source.offer(fewer, at="2026-02-02T00:00:00Z")
    for place in ("museum", "copies/museum-2"):
        assert run(["pull", place, "-qq", "--max-delete", "1"]) == 0
    commands = failing(fewer, "2026-02-03T00:00:00Z")
    assert commands
    for words in commands:
        assert run(shlex.split(words)) == 0
        assert said.readouterr().out.startswith("Emptied   1 file")


@contextmanager
def somebody() -> Iterator[None]:
    """Be a user who may not enter what is closed: root may enter everything."""
    user = os.geteuid()
    if not user:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def public_place(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder that anybody may enter: those of tests are their user's own."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        monkeypatch.chdir(place)
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            monkeypatch.setenv(name, f"{place}/none")
        yield


@pytest.mark.usefixtures("public_place")
def test_a_folder_of_a_mirror_that_cannot_be_written_is_a_problem(
    source: TinySource, said: Said
) -> None:
    os.chmod(".", 0o777)
    with somebody():
        assert run(["pull", source.url, "museum"]) == 0
        os.chmod("museum/objects", 0o500)
        assert run(["doctor", "museum"]) == 1
    assert "museum/objects cannot be written" in said.readouterr().out


PUBLISH = ["publish", "tree", "--url", "https://museum.example/"]


@pytest.mark.usefixtures("public_place")
@pytest.mark.parametrize(
    ("closed", "words"),
    [
        ("home", ["pull", "URL", "home/mirror"]),
        ("tree/.resourcesync", PUBLISH),
        ("tree/.resourcesync", [*PUBLISH, "--dry-run"]),
    ],
)
def test_a_folder_that_is_out_of_reach_is_told_with_its_path(
    closed: str, words: list[str], source: TinySource, said: Said
) -> None:
    Path(closed).mkdir(parents=True)
    Path("tree").mkdir(exist_ok=True)
    Path("tree/a.txt").write_bytes(b"a")
    words = [source.url if word == "URL" else word for word in words]
    assert run(words) == 0  # and it has imported what it needs
    said.readouterr()
    os.chmod(closed, 0)
    try:
        with somebody():
            assert run(words) == 8
    finally:
        os.chmod(closed, 0o700)
    told = said.readouterr().err
    assert f"{closed}/" in told
    assert "Permission denied" in told
