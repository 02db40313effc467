"""Tests know the package by its public names: what is private may change without a test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[2]
FOREIGN: Final = {"_Element", "_asdict", "_exit", "_fields", "_is_protocol", "_make", "_replace"}
"""Names of Python's library and of lxml, which have no other name or are public by tradition."""
QUOTED: Final = {"_id", "_index", "_shards", "_source", "_proxy"}
"""Strings of other systems: fields of Elasticsearch, and the end of ``http_proxy``."""
ALLOWED: Final = {
    "tests/architecture/test_doc_scenario.py": {"_event"},  # the events that the code can report
}
"""The private names that a test still knows: rewrite it, and take its name from here."""


def is_private(name: str) -> bool:
    return bool(re.fullmatch(r"_(?!_)\w+", name)) and name not in FOREIGN


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def names_of_the_package() -> set[str]:
    """Every private function, class, module, constant and attribute of the package."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        found |= {path.stem, *re.findall(r"\b_\w+", path.read_text("utf-8"))}
    return set(filter(is_private, found)) - QUOTED


def is_own(value: ast.expr) -> bool:
    """True for ``self``, ``cls`` and ``super()``: a class may have private names."""
    match value:
        case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super")):
            return True
        case _:
            return False


def known(tree: ast.AST, private: set[str]) -> Iterator[str]:
    """Yield the private names that a test uses: attributes, imports, and names in strings."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=value, attr=name) if not is_own(value):
                yield from filter(is_private, [name])
            case ast.ImportFrom(module=str(module), names=names):
                if module.partition(".")[0] in {"resourcesync", "tests", "fuzz", "campaigns"}:
                    yield from filter(is_private, module.split("."))
                    yield from filter(is_private, (alias.name for alias in names))
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.startswith("resourcesync."):
                        yield from filter(is_private, alias.name.split("."))
            case ast.Constant(value=str(text)):
                path, _, name = text.rpartition(".")
                if name in private and re.fullmatch(r"[\w.]*", path):
                    yield name
            case _:
                pass


def named_in(text: str) -> set[str]:
    return set(known(ast.parse(text), {"_limit"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("store._rows", {"_rows"}),
        ("store.rows()._first.second", {"_first"}),
        ("self._rows; cls._rows; super()._rows; row._replace(a=1); row.__dict__", set()),
        ("from resourcesync.model import _one", {"_one"}),
        ("from resourcesync._model import one", {"_model"}),
        ("import resourcesync._model as model", {"_model"}),
        ("from _pytest.mark import ParameterSet", set()),
        ("monkeypatch.setattr(module, '_limit', 3)", {"_limit"}),
        ("monkeypatch.setattr('resourcesync.module._limit', 3)", {"_limit"}),
        ("{'_index': 3, 'words': 'of a sentence with a _limit'}", set()),
    ],
)
def test_a_private_name_is_found_wherever_it_is_used(text: str, expected: set[str]) -> None:
    assert named_in(text) == expected


def test_no_test_knows_a_private_name() -> None:
    private = names_of_the_package()
    assert len(private) > 1_000
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != Path(__file__) and (names := set(known(tree_of(path), private)))
    }

    assert found == ALLOWED
