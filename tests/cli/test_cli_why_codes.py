"""``why CODE``: every code of the judge and of the errors is explained."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from resourcesync.validator.rule import RULES, Rule
from tests.support.commands.command_line import Said

ROOT = Path(__file__).parents[2]


def test_a_rule_is_explained_by_its_code_and_by_its_id(said: Said) -> None:
    rule = RULES["CH05"]

    assert run(["why", rule.code]) == 0
    by_code = said.readouterr().out
    assert run(["why", "ch05"]) == 0

    assert said.readouterr().out == by_code
    lines = by_code.splitlines()
    assert lines[0].startswith(f"{rule.code} (CH05)  MUST, error  ")
    assert lines[0].endswith("section 12.1")
    assert lines[1] == f"  rule      {rule.sentence}"
    assert lines[2] == f"  why       {rule.why}"
    assert lines[3] == f"  fix       {rule.fix}"


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_every_rule_has_its_page(rule: Rule, said: Said) -> None:
    assert run(["why", rule.code]) == 0

    lines = said.readouterr().out.splitlines()
    assert len(lines) == 7
    page, _, anchor = lines[6].removeprefix("  page      ").partition("#")
    assert f"\n## {anchor.upper()}\n" in (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("name", ["RS4o2", "", "nothing", " "])
def test_an_unknown_code_is_a_mistake(name: str, said: Said) -> None:
    assert run(["why", name]) == 2

    err = said.readouterr().err
    assert err.startswith("error[config]: there is no rule")
    assert "RS4  Times" in err
    assert "the rules of a family: resourcesync why RS4;" in err
