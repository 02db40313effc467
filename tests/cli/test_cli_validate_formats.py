"""``validate --format``: what other programs read."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.main import run
from resourcesync.cli.render.findings import (
    github_command,
    html_page,
    junit_suites,
    sarif_log,
    uri_reference,
)
from resourcesync.cli.render.validate import ValidationTally
from resourcesync.errors import ResourceMissingError
from resourcesync.validator.events import CutShort, Judged, ValidationEvent
from resourcesync.validator.rule import RULES, RuleFinding
from resourcesync.validator.sample import Unreached
from resourcesync.validator.summaries import DocumentSummary
from tests.support.commands.command_line import Said

LIST = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
    '<rs:md capability="capabilitylist"/>\n'
    '<url><loc>relative</loc><rs:md capability="resourcelist"/></url>\n</urlset>\n'
)
TEXTS = st.text(max_size=40)
FINDINGS = st.builds(
    RuleFinding,
    rule=st.sampled_from(list(RULES.values())),
    uri=TEXTS,
    message=TEXTS,
    line=st.integers(0, 3),
    column=st.integers(0, 30),
    length=st.integers(0, 30),
    excerpt=TEXTS,
    excerpt_column=st.integers(0, 30),
)
EVENTS = st.lists(
    FINDINGS
    | TEXTS.map(lambda name: Judged(DocumentSummary(uri=name, label=name), name))
    | TEXTS.map(lambda name: Unreached(uri=name, error=ResourceMissingError(name, uri=name)))
    | TEXTS.map(lambda name: CutShort(name, 3)),
    max_size=5,
)


@pytest.fixture
def name(here: Path) -> str:
    (here / "my list.xml").write_text(LIST)
    return "my list.xml"


def tally(events: list[ValidationEvent]) -> ValidationTally:
    found = ValidationTally(fail_on="error")
    for event in events:
        found.add(event)
    return found


def test_sarif_names_rules_places_and_the_tool(name: str, said: Said) -> None:
    assert run(["validate", name, "--format", "sarif"]) == 1

    log = json.loads(said.readouterr().out)
    (found,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert found["tool"]["driver"]["name"] == "resourcesync"
    results = {item["ruleId"]: item for item in found["results"]}
    result = results[RULES["G13a"].code]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20list.xml"
    assert place["region"]["startLine"] == 3
    rule = found["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (rule["id"], rule["name"]) == (RULES["G13a"].code, "G13a")
    assert result["level"] == "error"


def test_junit_has_a_suite_for_each_document_and_fails_where_asked(
    name: str, here: Path, said: Said
) -> None:
    (here / "good.xml").write_text(
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        "<url><loc>http://h.example/a</loc><lastmod>2026-01-01T00:00:00Z</lastmod></url></urlset>"
    )
    options = ["--format", "junit", "--profile", "sitemap"]

    assert run(["validate", name, "good.xml", *options]) == 1

    root = ET.fromstring(said.readouterr().out)
    suites = {element.get("name"): element for element in root}
    assert set(suites) == {"my list.xml", "good.xml"}
    assert suites["good.xml"].get("failures") == "0"
    assert len(suites["good.xml"].findall("testcase")) == 1
    (failure,) = suites["my list.xml"].findall("testcase/failure")
    assert failure.get("type") == "error"
    assert "fix: " in (failure.text or "")
    assert root.get("failures") == "1"


def test_github_gets_a_command_for_each_finding(name: str, said: Said) -> None:
    assert run(["validate", name, "--format", "github", "--select", "G13a"]) == 1

    lines = said.readouterr().out.splitlines()
    code = RULES["G13a"].code
    assert re.fullmatch(
        rf"::error file=my list\.xml,line=3,col=\d+,endColumn=\d+,title={code}::.*", lines[0]
    )
    assert lines[1].startswith("Checked 1 document, ")
    assert len(lines) == 2


def test_the_page_needs_nothing_from_anywhere(name: str, said: Said) -> None:
    assert run(["validate", name, "--format", "html"]) == 1

    page = said.readouterr().out
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert not re.search(r"<(script|link|img|iframe)\b|url\(|@import|src=", page)
    assert "<mark>" in page
    assert page.count("<main ") == page.count("</main>") == 1
    assert page.count("<pre") == page.count('<pre tabindex="0">') > 0  # scrolled by keys too
    assert RULES["G13a"].code in page


@pytest.mark.parametrize("form", ["sarif", "junit", "html", "github"])
def test_an_unusable_target_is_told_on_stderr_beside_the_document(form: str, said: Said) -> None:
    assert run(["validate", "no-such.xml", "--format", form]) == 2

    captured = said.readouterr()
    assert captured.err.startswith("error[config]: no such file")
    assert "exit" not in captured.out
    assert captured.out.strip()


@given(FINDINGS)
def test_a_command_is_one_line_whatever_a_document_holds(finding: RuleFinding) -> None:
    command = github_command(finding)

    assert "\n" not in command
    assert "\r" not in command
    head, _, _ = command[2:].partition("::")
    assert re.fullmatch(
        r"(error|warning|notice) file=[^,:\n]*(,(line|col|endColumn)=\d+)*"
        r",title=RS\d+",
        head,
    )


@given(EVENTS)
def test_junit_is_sound_xml_whatever_a_document_holds(events: list[ValidationEvent]) -> None:
    root = ET.fromstring(junit_suites(events, tally(events), fail_on="warning").encode())

    cases = root.findall("testsuite/testcase")
    assert int(root.get("tests", "")) == len(cases)
    bad = root.findall("testsuite/testcase/failure") + root.findall("testsuite/testcase/error")
    assert int(root.get("failures", "")) == len(bad)


@given(EVENTS)
def test_sarif_is_sound_json_whatever_a_document_holds(events: list[ValidationEvent]) -> None:
    log = json.loads(sarif_log(events, tally(events)))

    results = log["runs"][0]["results"]
    assert len(results) == sum(isinstance(event, RuleFinding) for event in events)
    for result in results:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[\x21-\x7e]*", uri)


@given(EVENTS)
def test_the_page_shows_texts_and_never_runs_them(events: list[ValidationEvent]) -> None:
    page = html_page(events, tally(events))

    tags = set(re.findall(r"<([a-zA-Z0-9]+)", page))
    assert tags <= {
        *("html", "head", "meta", "title", "style", "body", "main", "footer", "h1", "h2"),
        *("section", "article", "p", "strong", "pre", "mark"),
    }


def test_a_script_in_a_document_is_text_on_the_page() -> None:
    rule = RULES["G01"]
    finding = RuleFinding(rule=rule, uri="<script>", message="<img src=x>", excerpt="<b onload=x>")

    page = html_page([finding], tally([finding]))

    assert "<script>" not in page
    assert "<img" not in page
    assert "<b " not in page


def test_a_path_becomes_a_reference() -> None:
    assert uri_reference("a b/c:d.xml") == "a%20b/c%3Ad.xml"
    assert uri_reference("https://h.example/a?b=c#/manifest.xml").endswith("a?b=c#/manifest.xml")


def test_help_is_quick_for_validate_too() -> None:
    code = (
        "import sys; from resourcesync.cli.main import run; run(['validate', '--help']);"
        "print(sorted({'pycurl', 'sqlite3', 'rich', 'protego'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert ran.stdout.splitlines()[-1] == "[]"
