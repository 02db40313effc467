"""After a Source moved, all use its present address, and have the former one beside it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resourcesync import Mirror
from resourcesync.cli.main import run
from resourcesync.model.timestamps import format_w3c
from tests.support.commands.command_line import Said, rows
from tests.support.commands.run import files_of
from tests.support.commands.settings_file import put
from tests.support.servers.tiny_source import Answer, TinySource
from tests.support.sources.several_sets import SETS, offer
from tests.support.worlds import site_maps

FILES = {f"/{name}.txt": b"text" for name in ("a", "b")}
LATER = "2026-02-01T00:00:00Z"
SOON = format_w3c(datetime.now(UTC) + timedelta(hours=1))  # later than all that is served


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_in_the_mirror_has_its_present_address(home: Path, said: Said) -> None:
    with TinySource() as first, TinySource() as second:
        first.offer(FILES)
        assert run(["pull", first.url, "m"]) == 0
        second.offer({**FILES, "/new.txt": b"never at the first"}, at=LATER)
        assert run(["pull", "m", "--moved", second.url]) == 0
        mirror = Mirror(None, home / "m")
        said.readouterr()

        found = {each.uri: each.known_as for each in mirror.resources()}
        assert found == {
            f"{second.url}/{name}.txt": f"{first.url}/{name}.txt" for name in ("a", "b", "new")
        }
        path = home / "m/a.txt"
        assert mirror.path(f"{second.url}/a.txt") == mirror.path(f"{first.url}/a.txt") == path
        assert mirror.uri(path) == f"{second.url}/a.txt"
        changes = list(mirror.changes(since="start"))
        assert {change.uri for change in changes} == found.keys()
        assert [change.read() for change in changes] == [b"text", b"text", b"never at the first"]
        assert [change.resource() for change in changes] == list(mirror.resources())

        assert run(["changes", "m", "--since", "start", "--json"]) == 0
        lines = [row for row in rows(said) if row["type"] == "change"]
        assert {row["uri"]: row["known_as"] for row in lines} == found
        assert run(["why", "m", f"{second.url}/a.txt", "--json"]) == 0
        end = rows(said)[-1]
        assert (end["uri"], end["verdict"]) == (f"{second.url}/a.txt", "as_listed")
        (home / "m/new.txt").unlink()
        assert run(["audit", "m", "--json"]) == 1
        (finding,) = [row for row in rows(said) if row["type"] == "finding"]
        assert finding["uri"] == f"{second.url}/new.txt"
        assert run(["repair", "m", "--from-audit", "last"]) == 0
        assert (home / "m/new.txt").read_bytes() == b"never at the first"


def test_the_line_of_the_configuration_file_that_a_move_leaves_behind_is_named(
    home: Path, said: Said
) -> None:
    with TinySource() as first, TinySource() as second:
        for source in (first, second):
            source.offer(FILES)
        put(f'[mirror.m]\nsource = "{first.url}"\ndest = "m"\n')
        assert (run(["pull", "m"]), run(["pull", "m", "--moved", second.url])) == (0, 0)
        line = f'change the file: resourcesync.toml:2: source = "{second.url}"'
        assert line in said.readouterr().out

        assert run(["pull", "m"]) == 2
        assert line in said.readouterr().err
        assert run(["status", "m", "--check"]) == 1
        text = said.readouterr().out
        assert line in text
        assert ("each pull fails: " in text, "the last pull" in text) == (True, False)
        assert run(["pull", "m", "--moved", first.url]) == 0  # back: the file has it already
        assert "change the file" not in said.readouterr().out


def test_a_folder_of_sets_follows_its_source_as_a_whole(home: Path, said: Said) -> None:
    with TinySource() as second:
        with TinySource() as first:
            offer(first, SETS)
            assert run(["pull", first.url, "m", "--all-sets"]) == 0
        before = files_of(home / "m")
        offer(second, SETS)
        assert run(["pull", "m/maps", "--moved", second.url, "--set", "maps"]) == 0
        assert run(["pull", "m"]) == 4  # the other set is asked for at the first address
        assert f"resourcesync pull FOLDER --moved {second.url}" in said.readouterr().err

        assert run(["pull", "m", "--moved", f"{second.url}/other"]) == 5
        assert run(["pull", "m", "--moved", second.url]) == 0
        assert run(["pull", "m"]) == 0
    assert files_of(home / "m").keys() == before.keys()


def test_a_wrong_address_is_corrected_by_the_right_one_though_the_first_source_is_gone(
    home: Path,
) -> None:
    """What the wrong Source served later than the right one made its list is a question."""
    with TinySource() as wrong, TinySource() as right:
        with TinySource() as first:
            first.offer(FILES)
            assert run(["pull", first.url, "m"]) == 0
        wrong.offer({"/z.txt": b"of another Source"}, at=SOON)
        right.offer(FILES, at=LATER)
        assert run(["pull", "m", "--moved", wrong.url]) == 7
        ends = [run(["pull", "m", *more]) for more in (["--moved", f"{right.url}/"], [], ["-n"])]
        assert ends == [3, 3, 3]
        assert {Path(name).name for name in files_of(home / "m")} == {"a.txt", "b.txt", "z.txt"}
        assert run(["pull", "m", "--mode", "baseline"]) == 0
    assert {Path(name).name for name in files_of(home / "m")} == {"a.txt", "b.txt"}


def test_a_move_whose_deletions_are_held_is_confirmed_with_their_number(
    home: Path, said: Said
) -> None:
    with TinySource() as first, TinySource() as second:
        first.offer(FILES)
        assert run(["pull", first.url, "m"]) == 0
        second.offer({"/c.txt": b"text"}, at=SOON)
        move = ["pull", "m", "--moved", second.url]
        said.readouterr()
        assert run([*move, "-n"]) == 7  # it stores no move: the proposal repeats it
        confirm = [*move, "--max-delete", "2"]
        assert f"resourcesync {' '.join(confirm)}\n" in said.readouterr().out
        assert (run(move), run(move)) == (7, 7)
        assert said.readouterr().out.count("would delete 2 of 2 (100 %)") == 2
        assert run(["status", "m"]) == 0
        assert "would delete 2 of 2 (100 %)" in said.readouterr().out  # the new one is no share
        assert run(confirm) == 0
    assert {Path(name).name for name in files_of(home / "m")} == {"c.txt"}


def test_what_fails_and_goes_after_a_move_is_told_by_its_present_address(
    home: Path, said: Said
) -> None:
    with TinySource() as first, TinySource() as second:
        first.offer(FILES)
        assert run(["pull", first.url, "m"]) == 0
        (home / "m/b.txt").write_bytes(b"mine")
        second.put("/a.txt", b"text")
        there = [second.entry("/a.txt", b"text"), second.entry("/c.txt", b"")]
        second.offer_entries(there, at=SOON)
        said.readouterr()
        assert run(["pull", "m", "--moved", second.url, "--json"]) == 3
        failing = {failure["uri"] for failure in rows(said)[-1]["failures"]}
        assert run(["status", "m", "--json"]) == 0
        assert {each["uri"] for each in rows(said)[1]["failures"]} == failing
        gone, failed = (f"{second.url}/{name}.txt" for name in "bc")
        assert failing == {gone, failed}
        (home / "m/b.txt").write_bytes(b"text")
        assert run(["pull", "m", "--json"]) == 3
        told = rows(said)
        for action in ("list", "restore"):
            assert run(["trash", action, "m", gone, "--json"]) == 0
            told += rows(said)
        names = [row["known_as"] for row in told if row.get("uri") == gone]
        assert names == [f"{first.url}/b.txt"] * 3


def test_the_command_that_takes_a_wrong_move_of_one_set_back_can_be_pasted(
    home: Path, said: Said
) -> None:
    with TinySource() as first, TinySource() as second:
        offer(first, SETS)
        assert run(["pull", first.url, "m", "--set", "maps"]) == 0
        before = files_of(home / "m")
        offer(second, {"maps": {"/maps/new.txt": b"new"}, "texts": SETS["texts"]}, at=SOON)
        assert run(["pull", "m", "--moved", second.url, "--set", "maps"]) == 7
        back = f"resourcesync pull m --moved {first.url}"
        assert f"if the Source did not move: {back}\n" in said.readouterr().out
        assert run(["status", "m"]) == 0
        assert f"if the Source did not move: {back}\n" in said.readouterr().out

        assert run(back.split()[1:]) == 3  # it has the new one still
        assert before.items() <= files_of(home / "m").items()
        assert run(["pull", "m", "--mode", "baseline"]) == 0
    assert before == files_of(home / "m")


def test_a_resource_may_be_named_by_its_present_path_at_the_source(home: Path) -> None:
    with TinySource() as source:
        for folder in ("old", "new"):
            source.put(f"/{folder}/a.html", b"text")
            pages = site_maps.urlset((f"{source.url}/{folder}/a.html", "2026-01-01"))
            source.put(f"/{folder}/sitemap.xml", pages, "application/xml")
        assert run(["pull", f"{source.url}/old/sitemap.xml", "m"]) == 0
        assert run(["pull", "m", "--moved", f"{source.url}/new/sitemap.xml"]) == 0
        assert run(["why", "m", "/new/a.html"]) == 0


def test_a_list_that_another_host_serves_proposes_no_deletion_that_it_cannot_prove(
    home: Path, said: Said
) -> None:
    with TinySource() as first, TinySource() as second:
        for source in (first, second):
            source.put("/a.html", b"text")
            pages = site_maps.urlset((f"{source.url}/a.html", "2026-01-01"))
            source.put("/sitemap.xml", pages, "application/xml")
        assert run(["pull", f"{first.url}/sitemap.xml", "m"]) == 0
        first.answers.clear()
        first.respond = lambda asked: Answer(
            status=301, headers={"Location": f"{second.url}{asked.target}"}
        )
        said.readouterr()
        for words in (["pull", "m", "--allow-origin", second.url], ["pull", "m"], ["status", "m"]):
            assert run(words) == 0
            text = said.readouterr().out
            assert "1 file no longer listed (kept)\n" in text
            assert "if the Source moved: resourcesync pull m --moved URL\n" in text
        assert (run(["audit", "m"]), run(["repair", "m", "--delete"])) == (0, 0)
        assert "--delete" not in said.readouterr().out
        assert run(["pull", "m", "--moved", f"{second.url}/sitemap.xml"]) == 0
        assert "--delete absent deletes it\n" in said.readouterr().out
        assert run(["pull", "m", "--delete", "absent", "--max-delete", "1"]) == 0
    assert len(files_of(home / "m")) == 1
