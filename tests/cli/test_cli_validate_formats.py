"""``validate --format``: what other programs read."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.main import run
from resourcesync.cli.render.validate import encode_event, render_github
from resourcesync.validator.rule import RULES, RuleFinding
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


@pytest.fixture
def name(here: Path) -> str:
    (here / "my list.xml").write_text(LIST)
    return "my list.xml"


def test_github_gets_a_command_for_each_finding(name: str, said: Said) -> None:
    assert run(["validate", name, "--format", "github", "--select", "G13a"]) == 1

    lines = said.readouterr().out.splitlines()
    code = RULES["G13a"].code
    assert re.fullmatch(
        rf"::error file=my list\.xml,line=3,col=\d+,endColumn=\d+,title={code}::.*", lines[0]
    )
    assert lines[1].startswith("Checked 1 document, ")
    assert len(lines) == 2


@given(FINDINGS)
def test_a_command_is_one_line_whatever_a_document_holds(finding: RuleFinding) -> None:
    (line,) = render_github(*encode_event(finding))
    command = line.text

    assert "\n" not in command
    assert "\r" not in command
    head, _, _ = command[2:].partition("::")
    assert re.fullmatch(
        r"(error|warning|notice) file=[^,:\n]*(,(line|col|endColumn)=\d+)*"
        r",title=RS\d+",
        head,
    )
