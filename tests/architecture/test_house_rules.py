"""The house rules that no linter knows: the whole code is read once, and each rule is tried."""

import ast
from collections import Counter, defaultdict
from typing import Final, NamedTuple

import pytest

from resourcesync.cli import main
from tests.architecture import code_rules
from tests.architecture.code_rules import EVERYWHERE, RULES, CodeFile, files
from tests.support.source_files import ROOT, SOURCES, TESTS, module_name, python_files

MAX_MODULES: Final = 24
SMALL: Final = 100
"""A module with fewer lines of code that serves one neighbour is a part of this neighbour."""

SATELLITES: Final = {
    "resourcesync.destination.clock_skew": "a question of its own, apart from the pull",
    "resourcesync.destination.dumps.dump_policy": "pure decisions, apart from what fetches",
    "resourcesync.destination.lists.usable_links": "loaded where entries have links",
    "resourcesync.destination.transfers.present_files": "loaded where files are or large ones come",
    "resourcesync.documents.mislabelled": "what labels are not believed, apart from what reads",
    "resourcesync.documents.relative_addresses": "loaded where an address is relative",
    "resourcesync.server.dashboard.mirror_page": "a page of HTML, apart from what serves it",
    "resourcesync.server.dashboard.source_page": "a page of HTML, apart from what serves it",
    "resourcesync.server.front_page": "a page of HTML, apart from what serves it",
    "resourcesync_cluster.fetcher": "the port, apart from who opens its workers",
    "resourcesync_cluster.worker": "what a worker's process runs",
    "resourcesync_s3.listing": "what a page says, apart from requests",
    "resourcesync_simulator.live_server": "loaded only where a simulation is served",
}
"""Small modules with one importer in their folder, each with its reason."""

WAITS: Final = {
    "annexes/s3/tests/test_cli_buckets.py": 1,
    "tests/cli/test_cli_stopping.py": 3,
    "tests/cli/test_cli_watch.py": 1,
    "tests/journeys/test_library_keeping.py": 1,
    "tests/journeys/test_transfer_resume.py": 1,
    "annexes/postgresql/tests/test_changes_in_order.py": 1,
    "tests/server/test_server_running.py": 2,
    "tests/support/cluster/unit_work.py": 2,
    "tests/support/crashes/killed.py": 1,
    "tests/unit/app/test_watched_publisher.py": 1,
    "tests/unit/storage/test_files_measuring.py": 1,
    "tests/unit/storage/test_mirror_syncing.py": 1,
    "tests/watch/test_watch_keeping.py": 2,
}
"""Fixed waits that tests still have, with how many: less each time."""

ALLOWED: Final = {
    "tests/architecture/test_doc_scenario.py knows _event",  # the events that the code can report
    "tests/architecture/test_house_rules.py knows _limit",  # a sample
    *(f"{name} waits {count} times for a fixed time" for name, count in WAITS.items()),
}
"""What breaks a rule and may: the list only shrinks."""


class Module(NamedTuple):
    name: str
    is_folder: bool
    size: int
    imports: frozenset[str]
    classes: tuple[str, ...]


def module_of(file: CodeFile, names: set[str]) -> Module:
    imports = set()
    for node in file.nodes:  # also inside functions
        if isinstance(node, ast.ImportFrom) and node.module:
            found = (f"{node.module}.{alias.name}" for alias in node.names)
            imports |= {name if name in names else node.module for name in found}
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
    classes = (node.name.lstrip("_") for node in file.nodes if isinstance(node, ast.ClassDef))
    is_folder = file.name.endswith("__init__.py")
    return Module(file.module, is_folder, file.size(), frozenset(imports), tuple(classes))


def satellites(modules: list[Module]) -> set[str]:
    users: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for name in module.imports:
            users[name].add(module.name)
    for command in main.COMMANDS:  # imported by their names, when they are used
        users[main.module_of(command)].add(main.__name__)
    return {
        module.name
        for module in modules
        if not module.is_folder and module.size < SMALL and len(users[module.name]) == 1
        if users[module.name].pop().rpartition(".")[0] == module.name.rpartition(".")[0]
    }


def test_the_code_keeps_the_rules_of_the_house() -> None:
    names = {module_name(path) for path in python_files(SOURCES)}
    faults, modules = [], []
    for file in files(*EVERYWHERE):
        for rule, folders in RULES:
            if file.folder in folders:
                faults += [f"{file.name} {fault}" for fault in rule(file)]
        if file.folder == "src":
            modules.append(module_of(file, names))
    classes = Counter(name for module in modules for name in module.classes)

    assert len(modules) > 300
    assert set(faults) - ALLOWED == set()
    assert ALLOWED - set(faults) == set(), "no longer needed"
    assert [name for name, count in classes.items() if count > 1] == []
    assert satellites(modules) == set(SATELLITES), "merge it, or give the reason for it"


def test_no_folder_has_more_modules_than_a_reader_can_survey() -> None:
    counts = Counter(path.parent for path in python_files(SOURCES))
    counts.update(path.parent for path in (ROOT / "tests" / "support").rglob("*.py"))

    assert {folder: count for folder, count in counts.items() if count > MAX_MODULES} == {}


def test_test_modules_have_names_of_their_own() -> None:
    names = Counter(path.name for path in python_files(TESTS))

    assert {name for name, count in names.items() if count > 1} <= {"conftest.py", "__init__.py"}


FUNCTION = 'def f(\n    a: int,\n) -> str:\n    """Says.\n\n    More.\n    """\n    # why\n\n'
FUNCTION += '    return """x\n\n  y"""\n'
PREDICATE = "def is_new(self, state, memory, uri):\n    {}\n    return True\n"
LOOP = "for _ in range(99):\n    if is_here():\n        break\n    sleep(1)"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("long_functions", FUNCTION * 1, ["f has 6 lines of code"]),
        ("long_functions", f"if a:\n    {FUNCTION.replace(chr(10), chr(10) + '    ')}", ["f has"]),
        ("nameless", "", ["has a name"]),
        ("asking", "'''What it is.'''", ["has a docstring that begins with"]),
        ("compiled_classes", "from dataclasses import dataclass", ["makes a dataclass"]),
        (
            "private_words",
            "class Kept:\n    def is_told(self): ...",
            ["names Kept", "names is_told"],
        ),
        ("writing_predicates", PREDICATE.format("self.seen = True"), ["is_new assigns"]),
        ("writing_predicates", PREDICATE.format("memory[uri] = 1"), ["is_new assigns"]),
        ("writing_predicates", PREDICATE.format("state.put(uri)"), ["is_new calls put"]),
        ("writing_predicates", PREDICATE.format("self.rows.append(1)"), ["is_new calls append"]),
        ("writing_predicates", PREDICATE.format("a = []; a.append(state.execute(uri))"), []),
        ("fixed_waits", "time.sleep(3)\nthreading.Timer(3, act).start()", ["waits 2 times"]),
        ("fixed_waits", "clock.sleep(3); asyncio.sleep(3)", []),
        ("fixed_waits", LOOP, []),
        ("private", "from resourcesync.model import _limit", ["knows _limit"]),
        ("private", "monkeypatch.setattr('resourcesync.module._limit', 3)", ["knows _limit"]),
        ("private", "{'_index': 3, 'words': 'of a sentence with a _limit'}", []),
    ],
)
def test_a_rule_finds_what_breaks_it_and_nothing_else(
    name: str, text: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_rules, "MAX_FUNCTION_LINES", 5)
    rules = {rule.__name__: rule for rule, _ in RULES} | {
        "private": code_rules.private_names({"_limit"})
    }

    found = list(rules[name](CodeFile("src/resourcesync/utils/a.py", text)))

    assert [fault[: len(start)] for fault, start in zip(found, expected, strict=True)] == expected
