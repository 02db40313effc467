"""The glossary and the code agree: one noun, one sentence, one class."""

import importlib
import re
from collections import Counter
from pathlib import Path

from tests.architecture.code_rules import PRIVATE_WORDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8")
ROW = re.compile(r"^- \*\*([^*]+)\*\*: (.*?[^`])(?: `([\w.]+:\w+)`)?$", re.MULTILINE)
ROWS = [(row[1], row[2], row[3]) for row in ROW.finditer(PAGE)]
NAMED = [name for _, _, name in ROWS if name]


def resolve(name: str) -> object:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)}


def test_every_row_of_the_glossary_is_read() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("- ")]

    assert len(ROWS) == len(lines) > 50


def test_every_class_that_the_glossary_names_exists() -> None:
    assert [name for name in NAMED if not isinstance(resolve(name), type)] == []


def test_each_noun_and_each_class_is_in_the_glossary_once() -> None:
    nouns = Counter(noun.casefold() for noun, _, _ in ROWS)
    classes = Counter(resolve(name) for name in NAMED)

    assert [noun for noun, count in nouns.items() if count > 1] == []
    assert [value for value, count in classes.items() if count > 1] == []


def test_the_glossary_defines_no_private_words() -> None:
    defined = [noun for noun, _, _ in ROWS if words(noun) & PRIVATE_WORDS]

    assert defined == []
