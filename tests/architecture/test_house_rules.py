"""The house rules that no linter knows: sizes, names, docstrings, nothing half-done."""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "resourcesync"
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 40
NAMELESS = {"base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(*folders: str) -> list[Path]:
    """Every Python file of the folders; the checks of an empty list would prove nothing."""
    found = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert found
    return found


ALL = modules("src", "tests", "docs", "benchmarks", "campaigns", "fuzz")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def code_lines(text: str) -> set[int]:
    """The lines of a module that hold code: no blank lines, no comments."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def docstring_lines(function: Function) -> set[int]:
    if ast.get_docstring(function) is None:
        return set()
    first = function.body[0]
    return set(range(first.lineno, (first.end_lineno or first.lineno) + 1))


def function_sizes(text: str) -> Iterator[tuple[str, int]]:
    """Each function's name and its lines of code, docstring left out."""
    code = code_lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function):
            own = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            yield node.name, len(own & code - docstring_lines(node))


@pytest.mark.parametrize("path", ALL, ids=name)
def test_a_module_can_be_read_at_one_sitting(path: Path) -> None:
    lines = path.read_text("utf-8").count("\n")

    assert lines <= MAX_MODULE_LINES


@pytest.mark.parametrize("path", modules("src", "tests", "docs", "campaigns"), ids=name)
def test_a_function_fits_on_one_screen(path: Path) -> None:
    sizes = function_sizes(path.read_text("utf-8"))

    assert [(it, size) for it, size in sizes if size > MAX_FUNCTION_LINES] == []


def test_the_measure_counts_code_and_nothing_else() -> None:
    text = (
        "def f(\n    a: int,\n) -> str:\n"
        '    """Says.\n\n    More.\n    """\n'
        "    # why\n\n"
        '    return """x\n\n  y"""\n'
    )

    assert list(function_sizes(text)) == [("f", 6)]


@pytest.mark.parametrize("path", modules("src", "docs", "campaigns"), ids=name)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


@pytest.mark.parametrize("path", ALL, ids=name)
def test_a_module_has_a_name_of_its_own(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts

    assert not NAMELESS.intersection(word for part in parts for word in part.split("_"))


@pytest.mark.parametrize("path", ALL, ids=name)
def test_nothing_is_left_half_done(path: Path) -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")
    found = [
        f"line {token.start[0]}: {token.string}"
        for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
        if token.type == tokenize.COMMENT and any(mark in token.string for mark in marks)
    ]

    assert found == []


def test_test_modules_have_names_of_their_own() -> None:
    names = [path.name for path in modules("tests") if path.name != "conftest.py"]

    assert sorted(names) == sorted(set(names))


LIBRARY = [path for path in modules("src") if not path.is_relative_to(SOURCE / "cli")]


@pytest.mark.parametrize("path", LIBRARY, ids=name)
def test_the_library_never_prints(path: Path) -> None:
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]

    assert calls == []
