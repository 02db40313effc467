"""The glossary and the code agree: one noun, one sentence, one class."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "resourcesync"
PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8")
ROW = re.compile(r"^- \*\*([^*]+)\*\*: (.*?[^`])(?: `([\w.]+:\w+)`)?$", re.MULTILINE)
ROWS = [(row[1], row[2], row[3]) for row in ROW.finditer(PAGE)]
NAMED = [name for _, _, name in ROWS if name]

_NOT_OURS = """
anew aside bring brought doubt doubted doubts heed heeding heeds held kept regretted said seldom
settle settled settles tell telling tells told took whereabouts
"""
PRIVATE_WORDS = frozenset(_NOT_OURS.split())
"""Words that no other program of this field uses as names; CONTRIBUTING.md has the better ones."""


def resolve(name: str) -> object:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def public_names(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Yield the names of public classes, functions and methods."""
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if not node.name.startswith("_"):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from public_names(node)


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)}


def test_every_row_of_the_glossary_is_read() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("- ")]

    assert len(ROWS) == len(lines) > 50


@pytest.mark.parametrize("name", NAMED)
def test_every_class_that_the_glossary_names_exists(name: str) -> None:
    assert isinstance(resolve(name), type)


def test_each_noun_and_each_class_is_in_the_glossary_once() -> None:
    nouns = Counter(noun.casefold() for noun, _, _ in ROWS)
    classes = Counter(resolve(name) for name in NAMED)

    assert [noun for noun, count in nouns.items() if count > 1] == []
    assert [value for value, count in classes.items() if count > 1] == []


def test_the_glossary_defines_no_private_words() -> None:
    defined = [noun for noun, _, _ in ROWS if words(noun) & PRIVATE_WORDS]

    assert defined == []


def test_no_public_definition_is_named_in_private_words() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in public_names(ast.parse(path.read_text("utf-8")))
        if words(name) & PRIVATE_WORDS and not name.startswith("test_")
    }

    assert sorted(found) == []
