"""The recipe for continuous integration: its files are read, and their commands typed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from resourcesync.validator.rule import RULES
from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import free_port, running, script

LIST = "public/resourcesync/resourcelist.xml"


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[TypedPage]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    page = TypedPage(RECIPES / "validate-in-ci.md", tmp_path, {"https://site.example": url})
    (tmp_path / "public").mkdir()
    for name in ("index.html", "a page é.html"):
        (tmp_path / "public" / name).write_text(name)
    page.succeed(f"resourcesync publish public --url {url} --sitemap")
    (tmp_path / "public/resourcesync-sitemap.xml").rename(tmp_path / "public/sitemap.xml")
    page.succeed("resourcesync publish public")
    words = ("serve", "public", "--bind", f"127.0.0.1:{port}")
    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        yield page


def damage(typed: TypedPage) -> None:
    """Let two lines of a list be wrong, as a change of a template might."""
    path = typed.folder / LIST
    text = path.read_text().replace(".000000Z", "Z")
    text = re.sub(r'at="(\d{4}-\d\d-\d\d)T', r'at="\1 ', text)
    path.write_text(text.replace("<loc>http://", "<loc>http//", 1))


def step(typed: TypedPage) -> str:
    (github,) = (yaml.safe_load(text) for text in typed.blocks("yaml"))
    assert github[True] == "pull_request"  # "on" is true in YAML 1.1
    job = github["jobs"]["validate"]
    assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    (command,) = [step["run"] for step in job["steps"] if "--format" in step.get("run", "")]
    assert isinstance(command, str)
    return command


def test_the_step_fails_and_shows_where_lists_are_wrong(typed: TypedPage) -> None:
    typed.succeed(step(typed))
    damage(typed)

    ran = typed.type(step(typed))

    assert ran.code == 1
    marks = re.findall(r"^::error file=(.*?),line=\d+,col=\d+", ran.stdout, re.MULTILINE)
    assert len(marks) == 2
    assert set(marks) == {LIST}
    assert {RULES["G17"].code, RULES["G13a"].code} <= set(re.findall(r"title=(RS\d+)", ran.stdout))


def test_the_other_commands_of_the_page_do_what_they_say(typed: TypedPage) -> None:
    as_json, sitemap, live = typed.blocks("sh")
    typed.succeed(as_json)
    typed.succeed(sitemap)
    typed.succeed(live)
    damage(typed)

    ran = typed.type(as_json)

    assert ran.code == 1
    lines = [
        json.loads(line) for line in (typed.folder / "findings.ndjson").read_text().splitlines()
    ]
    findings = [line for line in lines if line["type"] == "finding"]
    assert {line["code"] for line in findings} >= {RULES["G17"].code}
    assert typed.type("resourcesync validate no-such-folder --format github").code == 2
