"""``pull`` of a Source with several sets: one that is chosen, or a mirror for each."""

import json
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.own_folder import read_sets
from resourcesync.cli.main import run
from tests.support.commands.command_line import LATER, Said, rows
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import Answer, TinySource
from tests.support.sources.several_sets import SETS, offer


@pytest.fixture
def two(source: TinySource) -> TinySource:
    """Give a Source with two sets that share a resource."""
    offer(source, SETS)
    return source


def in_the_day(folder: str, days: int) -> None:
    """Let a folder of mirrors believe that it asked for the sets so many days ago."""
    file = Path(folder, ".resourcesync/sets.json")
    known = json.loads(file.read_text())
    known["looked"] -= days * 86_400_000_000
    file.write_text(json.dumps(known))


def under(folder: str) -> dict[str, dict[str, bytes]]:
    """Return the files of each mirror in a folder of mirrors."""
    return {
        path.name: {f"/{name}": body for name, body in files_of(path).items()}
        for path in sorted(Path(folder).iterdir())
        if path.name != ".resourcesync"
    }


def test_several_sets_are_told_with_the_commands_to_run(two: TinySource, said: Said) -> None:
    assert run(["pull", two.url, "museum"]) == 2

    text = said.readouterr().err
    for number, name in enumerate(SETS, start=1):
        uri = f"{two.url}/rs/{name}/capabilitylist.xml"
        assert f"{number}  {name}  {uri}, described by {two.url}/about.html" in text
        assert f"resourcesync pull {two.url} museum --set {name}\n" in text
    assert f"resourcesync pull {two.url} museum --all-sets\n" in text
    assert not Path("museum").exists()


def test_a_mirror_of_one_set_does_not_become_one_of_another(two: TinySource, said: Said) -> None:
    run(["pull", two.url, "museum", "--set", "texts"])
    before = files_of(Path("museum"))
    said.readouterr()

    assert run(["pull", two.url, "museum", "--set", "maps"]) == 2
    assert "is a mirror of another set" in said.readouterr().err
    assert run(["pull", two.url, "museum", "--set", "nonsense"]) == 2
    assert "no set 'nonsense'" in said.readouterr().err
    assert run(["pull", "museum", "--set", "nonsense"]) == 2
    assert run(["pull", two.url, "museum", "--all-sets"]) == 2
    assert "is a mirror of one set" in said.readouterr().err
    assert files_of(Path("museum")) == before
    assert run(["pull", "museum", "--set", "texts"]) == 0


def test_all_sets_are_a_mirror_each(two: TinySource, said: Said) -> None:
    assert run(["pull", two.url, "museum", "--all-sets"]) == 0

    assert under("museum") == SETS
    lines = said.readouterr().out.splitlines()
    assert lines[0] == f"Sets      2 sets of {two.url}"
    assert lines[-1] == "Sets      2 of 2 sets OK  exit 0"
    assert sum(line.startswith("In sync") for line in lines) == 2


def test_a_copy_that_another_set_still_lists_is_kept_there(two: TinySource) -> None:
    run(["pull", two.url, "museum", "--all-sets"])
    offer(two, {**SETS, "maps": {"/maps/a.txt": b"map a\n"}}, at=LATER)

    assert run(["pull", "museum"]) == 0

    assert not Path("museum/maps/shared.txt").exists()
    assert Path("museum/texts/shared.txt").read_bytes() == b"shared\n"


def test_a_set_that_is_broken_does_not_keep_the_others_back(two: TinySource, said: Said) -> None:
    run(["pull", two.url, "museum", "--all-sets"])
    offer(two, {**SETS, "texts": {"/texts/b.txt": b"newer\n"}}, at=LATER)
    two.answers["/rs/maps/resourcelist.xml"] = Answer(body=b"<urlset")
    said.readouterr()

    assert run(["pull", "museum", "-q"]) != 0

    assert Path("museum/texts/texts/b.txt").read_bytes() == b"newer\n"
    assert Path("museum/maps/maps/a.txt").read_bytes() == b"map a\n"
    assert "1 of 2 sets OK" in said.readouterr().err


def test_new_sets_join_within_a_day(two: TinySource) -> None:
    run(["pull", two.url, "museum", "--all-sets"])
    more = {**SETS, "films": {"/films/f.txt": b"film\n"}}
    offer(two, more)

    assert run(["pull", "museum"]) == 0
    assert under("museum") == SETS

    in_the_day("museum", 1)
    assert run(["pull", "museum"]) == 0
    assert under("museum") == more


def test_a_set_that_is_withdrawn_keeps_its_copies(two: TinySource, said: Said) -> None:
    run(["pull", two.url, "museum", "--all-sets"])
    offer(two, {"maps": SETS["maps"]})
    in_the_day("museum", 1)
    said.readouterr()

    run(["pull", "museum"])

    assert under("museum") == SETS
    assert "withdrawn by the Source; copies kept" in said.readouterr().out


@pytest.mark.parametrize("how", [["--set", "texts"], ["--all-sets"]], ids=["one", "all"])
def test_no_other_set_takes_the_place_of_one_that_is_gone(
    two: TinySource, said: Said, how: list[str]
) -> None:
    run(["pull", two.url, "museum", *how])
    mirror = Path("museum", "texts" if "--all-sets" in how else "")
    before = files_of(mirror)
    offer(two, {"maps": {"/maps/a.txt": b"map a\n"}}, at=LATER)
    for name in ("capabilitylist", "resourcelist"):
        del two.answers[f"/rs/texts/{name}.xml"]
    if "--all-sets" in how:
        in_the_day("museum", 1)
    said.readouterr()

    assert run(["pull", "museum"]) != 0
    assert files_of(mirror) == before
    assert run(["pull", "museum", "--mode", "baseline"]) != 0
    assert files_of(mirror) == before
    assert "no longer offers the set" in said.readouterr().err


def test_the_sets_are_pulled_though_nobody_tells_which_there_are(
    two: TinySource, said: Said
) -> None:
    run(["pull", two.url, "museum", "--all-sets"])
    in_the_day("museum", 1)
    two.answers["/.well-known/resourcesync"] = Answer(status=410)
    del two.answers["/rs/texts/capabilitylist.xml"]
    said.readouterr()

    assert run(["pull", "museum"]) == 0

    assert under("museum") == SETS
    assert "as last read, since now: " in said.readouterr().out


def test_some_sets_are_followed_and_others_can_join(two: TinySource) -> None:
    offer(two, {**SETS, "films": {"/films/f.txt": b"film\n"}})

    assert run(["pull", two.url, "museum", "--set", "maps", "--set", "3"]) == 0
    assert list(under("museum")) == ["films", "maps"]
    assert run(["pull", "museum", "--set", "texts"]) == 0
    assert list(under("museum")) == ["films", "maps", "texts"]
    known = read_sets(Path("museum"))
    assert known is not None
    assert (known.every, len(known.sets)) == (False, 3)


def test_status_and_audit_take_a_folder_of_mirrors(two: TinySource, said: Said) -> None:
    run(["pull", two.url, "museum", "--all-sets"])
    Path("museum/maps/maps/a.txt").unlink()
    said.readouterr()

    assert run(["status", "museum", "--json"]) == 0
    shown = [row["mirror"] for row in rows(said) if row["type"] == "mirror"]
    assert sorted(shown) == ["museum/maps", "museum/texts"]
    assert run(["status", "--json"]) == 0
    assert len([row for row in rows(said) if row["type"] == "mirror"]) == 2
    assert run(["audit", "museum", "--json"]) == 1
    exits = {Path(row["mirror"]).name: row["exit"] for row in rows(said)[-1]["mirrors"]}
    assert exits == {"maps": 1, "texts": 0}


def test_a_folder_of_mirrors_of_which_none_came_is_not_left_behind(two: TinySource) -> None:
    for name in SETS:
        two.answers[f"/rs/{name}/capabilitylist.xml"] = Answer(status=404)

    assert run(["pull", two.url, "museum", "--all-sets"]) != 0

    assert not Path("museum").exists()


def test_several_plain_sitemaps_are_sets(source: TinySource) -> None:
    source.answers.clear()
    for name in ("news", "pages"):
        source.put(f"/{name}.html", name.encode())
        source.put(
            f"/{name}.xml",
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            f"<url><loc>{source.url}/{name}.html</loc></url></urlset>".encode(),
        )
    source.put("/robots.txt", b"Sitemap: /news.xml\nSitemap: /pages.xml\n")

    assert run(["pull", source.url, "site"]) == 2
    assert run(["pull", source.url, "site", "--all-sets"]) == 0
    assert under("site") == {
        "news": {"/news.html": b"news"},
        "pages": {"/pages.html": b"pages"},
    }


@pytest.mark.parametrize(
    "damage",
    [
        lambda known: {**known, "sets": [{"uri": "u", "folder": "../elsewhere"}]},
        lambda known: {**known, "sets": [{"uri": "u", "folder": ".resourcesync"}]},
        lambda known: {**known, "sets": [*known["sets"], known["sets"][0]]},
        lambda known: {**known, "version": 2},
        lambda _: "?",
    ],
    ids=["outside", "our own", "twice", "newer", "no object"],
)
def test_a_damaged_memory_of_the_sets_is_told_and_changes_nothing(
    two: TinySource, said: Said, damage: Any
) -> None:
    run(["pull", two.url, "museum", "--all-sets"])
    file = Path("museum/.resourcesync/sets.json")
    file.write_text(json.dumps(damage(json.loads(file.read_text()))))
    said.readouterr()

    assert run(["pull", "museum"]) == 8
    assert run(["status", "museum"]) == 8
    assert run(["audit", "museum"]) == 8
    assert said.readouterr().err.count("sets.json is damaged") == 3
    assert under("museum") == SETS
