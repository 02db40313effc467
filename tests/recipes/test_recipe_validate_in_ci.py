"""The recipe for continuous integration: its files are read, and their commands typed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import pytest
import yaml

from resourcesync.validator.rule import RULES
from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import free_port, running, script

LIST = "public/resourcesync/resourcelist.xml"
LEVELS = {"none", "note", "warning", "error"}


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[TypedPage]:
    """The page, in a checkout with lists that are served, too."""
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


def steps(typed: TypedPage) -> dict[str, str]:
    """Return the commands of the workflow by the formats that they write."""
    github, gitlab = (yaml.safe_load(text) for text in typed.blocks("yaml"))
    assert github[True] == "pull_request"  # "on" is true in YAML 1.1
    job = github["jobs"]["validate"]
    assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    (upload,) = [step for step in job["steps"] if "upload-sarif" in step.get("uses", "")]
    assert upload["if"] == "always()"
    assert github["permissions"]["security-events"] == "write"
    commands = [step["run"] for step in job["steps"] if "run" in step] + gitlab["lists"]["script"]
    found = {
        re.findall(r"--format (\w+)", text)[0]: text for text in commands if "--format" in text
    }
    assert upload["with"]["sarif_file"] in found["sarif"]
    assert gitlab["lists"]["artifacts"]["reports"]["junit"] in found["junit"]
    assert found.keys() == {"github", "sarif", "junit"}
    return found


def sarif_faults(log: dict[str, Any], root: Path) -> Iterator[str]:
    """Yield what breaks the rules of SARIF 2.1.0 that concern what we write."""
    if log["version"] != "2.1.0" or not log["$schema"].endswith("sarif-2.1.0.json"):
        yield "version"  # §3.13.2, §3.13.3
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        rules = driver["rules"]
        if not driver["name"] or len({rule["id"] for rule in rules}) != len(rules):
            yield "rules"  # §3.19.8, §3.49.3
        if run["columnKind"] not in ("utf16CodeUnits", "unicodeCodePoints"):
            yield "columnKind"  # §3.14.17
        if any(type(item["executionSuccessful"]) is not bool for item in run["invocations"]):
            yield "executionSuccessful"  # §3.20.14
        for rule in rules:
            if rule["defaultConfiguration"]["level"] not in LEVELS:
                yield "configuration"  # §3.50.3
            if not rule["shortDescription"]["text"].endswith("."):
                yield "description"  # §3.49.9
        for result in run["results"]:
            yield from result_faults(result, rules, root)


def result_faults(result: dict[str, Any], rules: list[dict[str, Any]], root: Path) -> Iterator[str]:
    if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
        yield "ruleIndex"  # §3.27.6
    if result["level"] not in LEVELS or not result["message"]["text"]:
        yield "result"  # §3.27.10, §3.11.8
    (location,) = result["locations"]
    place = location["physicalLocation"]
    uri = place["artifactLocation"]["uri"]
    if urlsplit(uri).scheme or uri.startswith("/") or not (root / unquote(uri)).is_file():
        yield "artifactLocation"  # §3.4.3: relative to the checkout
    region = place.get("region", {})
    lines = (root / unquote(uri)).read_text().splitlines()
    if not 1 <= region.get("startLine", 1) <= len(lines):
        yield "startLine"  # §3.30.5
    if region.get("endColumn", 2) <= region.get("startColumn", 1):
        yield "endColumn"  # §3.30.8: the column after the last


def test_sound_lists_pass_every_step(typed: TypedPage) -> None:
    found = steps(typed)

    for command in found.values():
        typed.succeed(command)

    log = json.loads((typed.folder / "resourcesync.sarif").read_text())
    assert log["runs"][0]["results"] == []
    assert list(sarif_faults(log, typed.folder)) == []
    assert ET.parse(typed.folder / "lists.xml").getroot().get("failures") == "0"


def test_each_step_fails_and_shows_where_lists_are_wrong(typed: TypedPage) -> None:
    damage(typed)
    found = steps(typed)

    ran = {form: typed.type(command) for form, command in found.items()}

    assert {form: done.code for form, done in ran.items()} == dict.fromkeys(found, 1)
    marks = re.findall(r"^::error file=(.*?),line=\d+,col=\d+", ran["github"].stdout, re.MULTILINE)
    assert set(marks) == {LIST}
    log = json.loads((typed.folder / "resourcesync.sarif").read_text())
    assert list(sarif_faults(log, typed.folder)) == []
    results = log["runs"][0]["results"]
    assert len(results) >= len(marks) == 2
    assert {result["ruleId"] for result in results} >= {RULES["G17"].code, RULES["G13a"].code}
    root = ET.parse(typed.folder / "lists.xml").getroot()
    assert int(root.get("failures", "0")) > 0
    assert root.findall("testsuite/testcase/failure")


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


def test_what_is_not_what_it_seems_is_a_finding_of_this_test(typed: TypedPage) -> None:
    damage(typed)
    typed.type(steps(typed)["sarif"])
    log = json.loads((typed.folder / "resourcesync.sarif").read_text())
    result = log["runs"][0]["results"][0]

    result["ruleIndex"] += 1
    result["locations"][0]["physicalLocation"]["region"]["startLine"] = 10_000

    assert {"ruleIndex", "startLine"} <= set(sarif_faults(log, typed.folder))
