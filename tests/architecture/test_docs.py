"""The pages agree with the code: generated parts, tables of columns, links, rules."""

import re
import sqlite3
from pathlib import Path

from resourcesync.catalogue import schema
from resourcesync.validator.rule import FAMILIES, RULES, Level

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DECISIONS = sorted((DOCS / "adr").glob("0*.md"))
MAX_DECISIONS = 40
MAX_DECISION_WORDS = 500
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts),
]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_link_to_a_page_leads_to_one() -> None:
    def missing(path: Path) -> list[str]:
        text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
        links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
        return [link for link in links if "://" not in link and not (path.parent / link).exists()]

    assert {name(path): links for path in PAGES if (links := missing(path))} == {}


def test_no_page_of_the_site_leads_to_a_decision_which_is_not_in_it() -> None:
    pages = [path for path in PAGES if DOCS in path.parents and path.parent.name != "adr"]

    assert pages
    assert [name(path) for path in pages if "](../adr/" in path.read_text("utf-8")] == []


def test_a_page_has_one_title_and_it_comes_first() -> None:
    texts = {
        name(path): re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
        for path in PAGES
    }
    titles = re.compile(r"^# ", re.MULTILINE)

    wrong = [
        page
        for page, text in texts.items()
        if not text.startswith("# ") or len(titles.findall(text)) > 1
    ]
    assert wrong == []


def test_a_decision_fits_on_one_page_and_there_are_few() -> None:
    words = {name(path): len(path.read_text("utf-8").split()) for path in DECISIONS}

    assert 0 < len(words) <= MAX_DECISIONS
    assert {name: count for name, count in words.items() if count > MAX_DECISION_WORDS} == {}


def test_the_title_of_a_decision_begins_with_the_number_of_its_file() -> None:
    titles = {name(path): path.read_text("utf-8").partition("\n")[0] for path in DECISIONS}

    assert titles
    wrong = [
        name for name, title in titles.items() if not title.startswith(f"# {Path(name).stem[:4]} ")
    ]
    assert wrong == []


def test_a_decision_that_the_code_names_has_a_page() -> None:
    numbers = {path.stem[:4] for path in DECISIONS}
    named = {
        found
        for folder in ("src", "tests", "annexes", "campaigns", "fuzz", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for found in re.findall(r"ADR (\d{4})", path.read_text("utf-8"))
    }

    assert named
    assert sorted(named - numbers) == []


def test_every_column_that_other_programs_may_use_is_explained() -> None:
    explained = set(re.findall(r"`(\w+)`", (DOCS / "reference" / "files.md").read_text("utf-8")))
    store = sqlite3.connect(":memory:")
    store.executescript(schema.SCHEMA)
    used = ("resource", "change", "post")
    columns = [row[1] for item in used for row in store.execute(f"PRAGMA table_info({item})")]
    store.close()

    assert len(columns) > 20
    assert sorted({*used, *columns} - explained) == []


def test_every_rule_of_the_standard_is_told_once_and_whole() -> None:
    codes = [rule.code for rule in RULES.values()]

    assert codes
    assert sorted(codes) == sorted(set(codes))
    assert {rule.level for rule in RULES.values()} == set(Level)
    texts = [text for rule in RULES.values() for text in (rule.sentence, rule.why, rule.fix)]
    assert [text for text in texts if not text.endswith((".", "`"))] == []
    assert [rule.id for rule in RULES.values() if not rule.clause or not rule.document] == []


def test_the_code_of_a_rule_tells_its_family_and_what_is_only_advice() -> None:
    assert {rule.family for rule in RULES.values()} == set(FAMILIES)
    advice = {rule.family for rule in RULES.values() if rule.level is Level.GUIDE}
    assert advice == {"RS8", "RS9"}
    assert {rule.level for rule in RULES.values() if rule.family == "RS9"} == {Level.GUIDE}


def test_every_family_of_rules_has_its_page() -> None:
    pages = {path.stem for path in (DOCS / "reference" / "rules").glob("RS*.md")}

    assert pages == set(FAMILIES)


def test_a_test_names_only_rules_that_exist() -> None:
    ids = {name for rule in RULES for name in (rule, rule.rstrip("abc"))}
    mark = re.compile(r'mark\.conformance\(((?:\s*"\w+",?)*)\s*\)')
    named = {
        rule
        for path in (ROOT / "tests").rglob("test_*.py")
        for found in mark.finditer(path.read_text("utf-8"))
        for rule in re.findall(r'"(\w+)"', found[1])
    }

    assert sorted(named - ids) == []
