"""The pages agree with the code: generated parts, tables of columns, links, rules."""

import re
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from resourcesync.adapters.catalogue import database
from resourcesync.adapters.mirror import state

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts),
]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_generated_parts_of_the_pages_are_up_to_date() -> None:
    ran = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_to_a_page_leads_to_one(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)

    assert [it for it in links if "://" not in it and not (path.parent / it).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_has_one_title_and_it_comes_first(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)

    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


@pytest.mark.parametrize(
    ("page", "scripts"),
    [("state-schema", [state._SCHEMA]), ("catalogue-schema", [*database._MIGRATIONS])],
)
def test_every_table_and_column_of_a_store_is_explained(page: str, scripts: list[str]) -> None:
    text = (DOCS / "reference" / f"{page}.md").read_text("utf-8")
    explained = set(re.findall(r"`(\w+)`", text))
    store = sqlite3.connect(":memory:")
    for script in scripts:
        store.executescript(script)
    tables = [row[0] for row in store.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
    own = [it for it in tables if not it.startswith("sqlite_")]
    columns = [row[1] for it in own for row in store.execute(f"PRAGMA table_info({it})")]
    store.close()

    assert own
    assert columns
    assert sorted({*own, *columns} - explained) == []


def rules() -> list[dict[str, str]]:
    text = (DOCS / "reference" / "conformance-rules.toml").read_text("utf-8")
    found: list[dict[str, str]] = tomllib.loads(text)["rule"]
    return found


def test_every_rule_of_the_standard_is_told_once_and_whole() -> None:
    ids = [rule["id"] for rule in rules()]

    assert ids
    assert sorted(ids) == sorted(set(ids))
    assert {rule["level"] for rule in rules()} == {"MUST", "SHOULD", "GUIDE"}
    assert [it for it in rules() if not it["sentence"].endswith(".") or not it["clause"]] == []


def test_a_test_names_only_rules_that_exist() -> None:
    ids = {rule["id"] for rule in rules()}
    mark = re.compile(r'mark\.conformance\(((?:\s*"\w+",?)*)\s*\)')
    named = {
        rule
        for path in (ROOT / "tests").rglob("test_*.py")
        for found in mark.finditer(path.read_text("utf-8"))
        for rule in re.findall(r'"(\w+)"', found[1])
    }

    assert sorted(named - ids) == []
