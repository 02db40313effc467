"""The session that the README shows is the one that the program has."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from docs.session import COMMANDS, FILE, TITLE, picture, record, without_colors

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    return record(tmp_path_factory.mktemp("session"))


def test_the_picture_shows_what_the_program_prints_today(recorded: str) -> None:
    assert FILE.read_text("utf-8") == picture(recorded), "renew it: python docs/session.py"


def test_the_session_ends_in_sync_after_a_change_and_a_deletion(recorded: str) -> None:
    *_, pull, audit = without_colors(recorded).split("$ resourcesync ")

    assert "* /objects/2.txt" in pull
    assert "- /objects/3.txt" in pull
    assert re.search(r"^In sync .*accuracy 100 %", audit, re.MULTILINE)


def test_the_picture_is_readable_as_text_and_on_dark_pages() -> None:
    drawn = FILE.read_text("utf-8")
    tree = ET.fromstring(drawn)
    lines = ["".join(line.itertext()) for line in tree.iter(f"{SVG}text")]

    assert [line[2:] for line in lines if line.startswith("$ ")] == list(COMMANDS)
    assert tree.findtext(f"{SVG}title") == TITLE
    assert "prefers-color-scheme: dark" in drawn
    assert re.findall(r"(?:href=|src=|url\()", drawn) == []


def test_the_first_page_shows_the_picture_with_its_text() -> None:
    [(text, address)] = re.findall(
        r"!\[([^]]+)\]\(([^)]+\.svg)\)", (ROOT / "README.md").read_text("utf-8")
    )

    assert (ROOT / address) == FILE
    assert text == TITLE
