"""The house rules that no linter knows: sizes, names, docstrings, nothing half-done."""

import ast
import gc
import io
import re
import textwrap
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
IMPORTS = (ast.Import, ast.ImportFrom)


def modules(*folders: str) -> list[Path]:
    """Every Python file of the folders; the checks of an empty list would prove nothing."""
    found = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert found
    return found


@pytest.fixture(autouse=True)
def _no_garbage() -> Iterator[None]:
    """Trees of syntax hold no cycles, and to look for some takes longer than to make them."""
    gc.disable()
    yield
    gc.enable()


ALL = modules("src", "tests", "docs", "benchmarks", "campaigns", "fuzz")


def texts(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """The modules with what they hold: one test looks at all, and names every one that fails."""
    return ((path, path.read_text("utf-8")) for path in paths)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def code_lines(text: str) -> set[int]:
    """The lines of a module that hold code: no blank lines, no comments."""
    lines: set[int] = set()
    for token in tokens(text):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield all functions, also those within others; no expression is looked into."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting.extend(getattr(node, part, ()))


def docstring(text: str) -> str:
    """What a module begins with, if that is a string; the rest is not read."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            return str(ast.literal_eval(token.string)) if token.type == tokenize.STRING else ""
    return ""


def docstring_lines(function: Function) -> set[int]:
    if ast.get_docstring(function) is None:
        return set()
    first = function.body[0]
    return set(range(first.lineno, (first.end_lineno or first.lineno) + 1))


def function_sizes(text: str, *, over: int) -> Iterator[tuple[str, int]]:
    """Each function's name and its lines of code, docstring left out, if there are more of them."""
    code: set[int] | None = None
    for node in functions(ast.parse(text)):
        last = node.end_lineno or node.lineno
        if last - node.lineno >= over:  # else it is not worth to look which of them hold code
            code = code_lines(text) if code is None else code
            size = len(code.intersection(range(node.lineno, last + 1)) - docstring_lines(node))
            if size > over:
                yield node.name, size


def module_size(text: str) -> int:
    """The lines of code of a module: documentation and imports are free."""
    code, tree = code_lines(text), ast.parse(text)
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and (is_text or isinstance(node, IMPORTS)):
            code -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(code)


def test_a_module_can_be_read_at_one_sitting() -> None:
    long = ((path, text) for path, text in texts(ALL) if text.count("\n") > MAX_MODULE_LINES)
    lines = {name(path): module_size(text) for path, text in long}

    assert {name: count for name, count in lines.items() if count > MAX_MODULE_LINES} == {}


def test_documentation_does_not_make_a_module_long() -> None:
    text = '"""One.\n\nTwo."""\n\nimport os\nfrom sys import (\n    path,\n)\n\n# why\nA = os\n'

    assert module_size(text) == 1


def test_a_function_fits_on_one_screen() -> None:
    large = [
        (name(path), item, size)
        for path, text in texts(modules("src", "tests", "docs", "campaigns"))
        for item, size in function_sizes(text, over=MAX_FUNCTION_LINES)
    ]

    assert large == []


def test_the_measure_counts_code_and_nothing_else() -> None:
    text = (
        "def f(\n    a: int,\n) -> str:\n"
        '    """Says.\n\n    More.\n    """\n'
        "    # why\n\n"
        '    return """x\n\n  y"""\n'
    )

    assert list(function_sizes(text, over=5)) == [("f", 6)]
    within = f"try:\n    pass\nexcept E:\n{textwrap.indent(text, '    ')}"
    assert list(function_sizes(within, over=5)) == [("f", 6)]
    assert list(function_sizes(text, over=6)) == []


def test_a_module_says_what_it_is_for() -> None:
    told = {
        name(path): docstring(text) for path, text in texts(modules("src", "docs", "campaigns"))
    }

    assert [name for name, found in told.items() if not found.strip()] == []
    assert docstring('# c\n\n"""Says."""\nimport os\n') == "Says."
    assert docstring('import os\n"""Says."""\n') == docstring("") == ""


def test_a_module_has_a_name_of_its_own() -> None:
    parts = {name(path): path.relative_to(ROOT).with_suffix("").parts for path in ALL}

    assert [
        name
        for name, names in parts.items()
        if NAMELESS.intersection(word for part in names for word in part.split("_"))
    ] == []


def test_nothing_is_left_half_done() -> None:
    marks = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")))
    found = [
        f"{name(path)}, line {token.start[0]}: {token.string}"
        for path, text in texts(ALL)
        if marks.search(text)  # most have none even outside their comments
        for token in tokens(text)
        if token.type == tokenize.COMMENT and marks.search(token.string)
    ]

    assert found == []


def test_test_modules_have_names_of_their_own() -> None:
    shared = {"conftest.py", "__init__.py"}
    names = [path.name for path in modules("tests") if path.name not in shared]

    assert sorted(names) == sorted(set(names))


def test_no_class_is_compiled_when_its_module_is_imported() -> None:
    """A dataclass takes a millisecond of each start, a struct a hundredth of that."""
    makers = [name(path) for path, text in texts(modules("src")) if "dataclass" in text]

    assert makers == []


def test_the_library_never_prints() -> None:
    library = [path for path in modules("src") if not path.is_relative_to(SOURCE / "cli")]
    calls = [
        f"{name(path)}, line {node.lineno}"
        for path, text in texts(library)
        if "print" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]

    assert calls == []
