"""The rules of a room: sizes of folders and modules, names of classes, first words, predicates."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from resourcesync.cli import main

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "resourcesync"
MAX_MODULES = 24
SMALL = 100
"""A module with fewer lines of code that serves one neighbour is a part of this neighbour."""

CROWDED: dict[str, int] = {}
"""Folders that later steps of the rebuilding empty, with what they may have: less each time."""

SATELLITES: dict[str, str] = {
    "resourcesync.app.mirrors.worker_fetching": "workers import it, and few pulls have any",
    "resourcesync.destination.changes.archives": "the past, apart from the lists of the present",
    "resourcesync.destination.dumps.dump_policy": "pure decisions, apart from what fetches",
    "resourcesync.server.connection_shares": "pure decisions, apart from what serves",
}
"""Small modules with one importer in their folder, each with its reason."""

HOMONYMS: dict[str, int] = {}
"""Class names that mean several things, with how many: less each time."""

QUESTIONS = re.compile(r"(What|How|Where|Which|Whether|Who|Whom|Whose|Why|When|If|It|That|One)\b")
PREDICATE = re.compile(r"_{0,2}(is|has|can|may|should|needs)_")
WRITES = {"write", "put", "append", "add", "insert", "delete", "remove", "commit", "unlink"}
READING = re.compile(r"\s*(SELECT|PRAGMA|WITH)\b")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
NAMES = {module_name(path): path for path in TREES}


def documentation(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that are documentation or imports: nobody is to squeeze them."""
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, (ast.Import, ast.ImportFrom)):
            assert isinstance(node, ast.stmt)
            yield node


def code_size(path: Path, tree: ast.AST) -> int:
    free = {
        line
        for node in documentation(tree)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(path.read_text("utf-8").splitlines(), 1)
    return sum(
        1
        for number, line in lines
        if line.strip() and number not in free and not line.lstrip().startswith("#")
    )


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of the package that a module imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (
                full if (full := f"{node.module}.{alias.name}") in NAMES else node.module
                for alias in node.names
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def importers() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in TREES.items():
        for target in imported(tree):
            found[target].add(module_name(path))
    for command in main.COMMANDS:  # imported by their names, when they are used
        found[main.module_of(command)].add(main.__name__)
    return found


def satellites() -> list[str]:
    users = importers()
    return sorted(
        name
        for name, path in NAMES.items()
        if path.name != "__init__.py"
        and len(users[name]) == 1
        and next(iter(users[name])).rpartition(".")[0] == name.rpartition(".")[0]
        and code_size(path, TREES[path]) < SMALL
    )


def test_no_small_module_serves_only_one_neighbour() -> None:
    assert satellites() == sorted(SATELLITES), "merge it, or give the reason for it"


def test_no_folder_has_more_modules_than_a_reader_can_survey() -> None:
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in TREES)
    crowded = {folder: count for folder, count in counts.items() if count > MAX_MODULES}

    assert crowded == CROWDED, "the list only shrinks"


def test_no_folder_of_what_tests_share_has_more_modules_either() -> None:
    support = ROOT / "tests" / "support"
    counts = Counter(path.parent.name for path in support.rglob("*.py"))

    assert counts
    assert {folder: count for folder, count in counts.items() if count > MAX_MODULES} == {}


def test_a_class_name_means_one_thing() -> None:
    names = Counter(
        node.name.lstrip("_")
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )

    assert {name: count for name, count in names.items() if count > 1} == HOMONYMS


def test_a_module_docstring_begins_with_the_thing_itself() -> None:
    first = {module_name(path): ast.get_docstring(tree) or "" for path, tree in TREES.items()}

    assert [name for name, text in first.items() if QUESTIONS.match(text)] == []


def statements(tree: ast.AST) -> dict[str, str]:
    """Return the texts that a module gives names to, such as its SQL."""
    return {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def is_query(call: ast.Call, named: dict[str, str]) -> bool:
    """True if a call executes SQL that only reads."""
    match call.args:
        case [ast.Constant(value=str(text)), *_]:
            return bool(READING.match(text))
        case [ast.Name(id=name), *_]:
            return bool(READING.match(named.get(name, "")))
        case _:
            return False


def writes(function: ast.AST, named: dict[str, str]) -> Iterator[str]:
    """Yield what a function changes outside itself: attributes, entries, or calls that store."""
    local = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(function):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            yield f"line {node.lineno}: assigns"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            is_local = isinstance(owner, ast.Name) and owner.id in local
            is_write = node.func.attr in WRITES and not is_local
            if is_write or (node.func.attr == "execute" and not is_query(node, named)):
                yield f"line {node.lineno}: {node.func.attr}()"


def predicates(trees: Iterable[tuple[str, ast.AST]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each predicate with what it writes."""
    for name, tree in trees:
        named = statements(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                PREDICATE.match(node.name)
            ):
                yield f"{name}:{node.name}", list(writes(node, named))


def test_a_predicate_never_writes() -> None:
    everywhere = ((module_name(path), tree) for path, tree in TREES.items())
    found = dict(predicates(everywhere))

    assert len(found) > 100
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "body",
    [
        "self.seen = True",
        "memory[uri] = 1",
        "state.put(uri)",
        "self.rows.append(uri)",
        "state.execute('DELETE FROM copy')",
    ],
)
def test_a_predicate_that_writes_is_found(body: str) -> None:
    tree = ast.parse(f"def is_new(self, state, memory, uri):\n    {body}\n    return True\n")

    assert [found for _, found in predicates([("module", tree)])] != [[]]


def test_a_query_and_a_list_that_a_predicate_makes_for_itself_are_no_writes() -> None:
    tree = ast.parse(
        "SQL = 'SELECT 1'\n"
        "def is_new(state, uri):\n"
        "    rows = []\n"
        "    rows.append(state.execute(SQL))\n"
        "    return rows\n"
    )

    assert [found for _, found in predicates([("module", tree)])] == [[]]
