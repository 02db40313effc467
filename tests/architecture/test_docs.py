"""The pages agree with the code: links, tables, the glossary, settings, the session, rules."""

import importlib
import re
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs import founding_text
from docs.api_text import NAMES
from docs.concept_drawings import PICTURES
from docs.session import FILE, TITLE, picture, record

import resourcesync
from resourcesync import documents
from resourcesync.app.configured_mirrors import TABLES, MirrorConfiguration
from resourcesync.catalogue import schema
from resourcesync.discovery.uris import normalise
from resourcesync.model.globs import parse_glob
from resourcesync.settings import config_file
from resourcesync.validator.rule import FAMILIES, RULES, Level

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DECISIONS = sorted((DOCS / "adr").glob("0*.md"))
MAX_DECISIONS = 40
STATES = ("Open: ", "Refused: ")
LEAST_ROWS = 125
MOST_UNPROVED = 4
MAX_DECISION_WORDS = 500
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "tests" / "founding.md",
    ROOT / "annexes" / "simulator" / "scenarios.md",
    *(path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts),
]


def test_a_decision_fits_on_one_page_and_there_are_few() -> None:
    words = {path.name: len(path.read_text("utf-8").split()) for path in DECISIONS}

    assert 0 < len(words) <= MAX_DECISIONS
    assert {name: count for name, count in words.items() if count > MAX_DECISION_WORDS} == {}


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
    texts = [text for rule in RULES.values() for text in (rule.sentence, rule.why, rule.fix)]
    pages = {path.stem for path in (DOCS / "reference" / "rules").glob("RS*.md")}

    assert sorted(codes) == sorted(set(codes))
    assert {rule.level for rule in RULES.values()} == set(Level)
    assert [text for text in texts if not text.endswith((".", "`"))] == []
    assert [rule.id for rule in RULES.values() if not rule.clause or not rule.document] == []
    assert {rule.family for rule in RULES.values()} == set(FAMILIES) == pages
    advice = {rule.family for rule in RULES.values() if rule.level is Level.GUIDE}
    assert advice == {"RS8", "RS9"}
    assert {rule.level for rule in RULES.values() if rule.family == "RS9"} == {Level.GUIDE}


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


def test_each_row_of_the_founding_documents_is_proved_or_says_why_not() -> None:
    rows = founding_text.rows()
    places = [(row.where, row.row) for row in rows]

    assert len(rows) >= LEAST_ROWS, (
        "a test that goes leaves its row to another one, or to the open ones"
    )
    assert {row.document for row in rows} == set(founding_text.DOCUMENTS)
    assert [place for place, count in Counter(places).items() if count > 1] == []
    assert [row for row in rows if not (row.section and row.row)] == []
    assert [row for row in rows if bool(row.test) == bool(row.why)] == []
    assert [row.why for row in rows if not row.test and not row.why.startswith(STATES)] == []
    assert [row for row in rows if row.test and not row.how] == []
    assert [row for row in rows if "|" in row.row + row.how + row.why] == []
    assert sum(1 for row in rows if row.why) <= MOST_UNPROVED


PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
MOST_PAGES = 90
MOST_WORDS_OF_ALL = 80_000


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page: those of its headings, as GitHub makes them, and named ones."""
    text = FENCED.sub("", path.read_text("utf-8"))
    found: Counter[str] = Counter()
    slugs = set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        slugs.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return slugs


ANCHORS = {path.resolve(): anchors(path) for path in PAGES}


def test_the_pages_of_the_site_are_few_and_short() -> None:
    pages = [path for path in PAGES if DOCS in path.parents and path.parent.name != "adr"]

    assert 0 < len(pages) <= MOST_PAGES
    assert sum(len(path.read_text("utf-8").split()) for path in pages) <= MOST_WORDS_OF_ALL


def test_every_link_leads_to_a_page_and_to_a_heading_of_it() -> None:
    wrong = []
    for path in ANCHORS:
        for page, anchor in re.findall(
            r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", FENCED.sub("", path.read_text("utf-8"))
        ):
            target = (path.parent / page).resolve() if page else path
            if page.partition(":")[0] in {"http", "https", "mailto"}:
                continue
            if not target.exists() or (anchor and anchor not in ANCHORS.get(target, {anchor})):
                wrong.append(f"{path.name}: {page}#{anchor}")

    assert wrong == []


def test_every_picture_is_on_a_page_and_has_words_for_who_does_not_see_it() -> None:
    shown: dict[Path, list[str]] = {}
    for page in PAGES:
        for words, target in PICTURE.findall(page.read_text("utf-8")):
            shown.setdefault((page.parent / target).resolve(), []).append(words)

    for place in [*(DOCS / drawn for drawn in PICTURES), *(DOCS / "_static").glob("*.png")]:
        assert min(map(len, shown[place])) > 100, place.name
        assert place.suffix == ".png" or "<title>" in place.read_text("utf-8"), place.name


def test_the_picture_shows_what_the_program_prints_today(tmp_path: Path) -> None:
    assert FILE.read_text("utf-8") == picture(record(tmp_path)), "renew it: python docs/session.py"


def test_the_first_page_shows_the_picture_with_its_text() -> None:
    [(text, address)] = re.findall(
        r"!\[([^]]+)\]\(([^)]+\.svg)\)", (ROOT / "README.md").read_text("utf-8")
    )

    assert (ROOT / address) == FILE
    assert text == TITLE


GLOSSARY = (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8")
ROW = re.compile(r"^- \*\*([^*]+)\*\*: (.*?[^`])(?: `([\w.]+:\w+)`)?$", re.MULTILINE)
ROWS = [(row[1], row[2], row[3]) for row in ROW.finditer(GLOSSARY)]


def resolve(name: str) -> object:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def test_each_noun_and_each_class_is_in_the_glossary_once() -> None:
    nouns = Counter(noun.casefold() for noun, _, _ in ROWS)
    classes = Counter(resolve(name) for _, _, name in ROWS if name)

    assert len(ROWS) > 50
    assert [noun for noun, count in nouns.items() if count > 1] == []
    assert [value for value in classes if not isinstance(value, type)] == []
    assert [value for value, count in classes.items() if count > 1] == []


API = (ROOT / "docs/reference/api.md").read_text("utf-8")
ELSEWHERE = {"ResourceSyncError", "__version__", "Entry"}


def test_every_public_name_is_explained() -> None:
    listed = {name.rpartition(".")[2] for names in NAMES.values() for name in names}
    exported = (vars(package)["__all__"] for package in (resourcesync, documents))
    public = set().union(*exported) - ELSEWHERE

    assert public <= listed
    for name in sorted(public):
        head = rf"^### {name}\n\n(```python\n(class )?{name}|\w)"
        assert re.search(head, API, re.MULTILINE), name


GLOBS = ROOT / "docs" / "how-to" / "choose-what-is-mirrored.md"


def shown_tables() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in re.findall(
            r"^ *```toml\n(.*?)^ *```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            if not tomllib.loads(block).keys() - set(TABLES):
                yield page.relative_to(ROOT).as_posix(), block


def test_a_table_of_configuration_that_a_page_shows_is_understood(tmp_path: Path) -> None:
    path, shown = tmp_path / config_file.NAME, [*shown_tables()]
    for page, block in shown:
        path.write_text(block, "utf-8")
        configuration = MirrorConfiguration(config_file.find(path))
        for name in configuration.names:
            assert configuration.mirror(name).name == name, page

    assert len(shown) > 10


def test_an_extra_that_a_page_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for page in PAGES:
        for names in re.findall(r"resourcesync\[([a-z0-9,]+)\]", page.read_text("utf-8")):
            assert set(names.split(",")) <= project["optional-dependencies"].keys(), page


def glob_rows(heading: str) -> Iterator[tuple[str, str, bool]]:
    """Yield glob, path and whether it fits, as a section of the page says."""
    section = GLOBS.read_text("utf-8").partition(f"## {heading}")[2].partition("\n## ")[0]
    for glob, fits, fits_not in re.findall(
        r"^\| `(.+?)` \| (.*?) \| (.*?) ?\|$", section, re.MULTILINE
    ):
        yield from ((glob, path, True) for path in re.findall("`(.+?)`", fits))
        yield from ((glob, path, False) for path in re.findall("`(.+?)`", fits_not))


@pytest.mark.parametrize(("glob", "path", "fits"), list(glob_rows("Globs")))
def test_a_glob_of_a_mirror_fits_what_the_page_says(glob: str, path: str, fits: bool) -> None:
    uri = normalise(f"https://museum.example{path}").removeprefix("https://museum.example")
    name, question, query = uri.partition("?")
    assert parse_glob(glob).matches(name, query if question else None) is fits
