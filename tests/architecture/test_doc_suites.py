"""The suites are public: the example on the page is run, and nothing but pytest is needed."""

import ast
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from resourcesync import testing

ROOT = Path(__file__).parents[2]
PAGE = "".join(
    (ROOT / "docs/how-to" / name).read_text("utf-8")
    for name in ("write-a-plug-in.md", "write-a-store-or-transport.md", "write-an-account.md")
)
REFERENCE = (ROOT / "docs/reference/contract-suites.md").read_text("utf-8")
SOURCE = ROOT / "src/resourcesync"


def shown(marker: str, name: str) -> ModuleType:
    """Make a module of the block of the page that has a line."""
    (block,) = [
        item for item in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if marker in item
    ]
    module = ModuleType(name)
    exec(compile(block, name, "exec"), module.__dict__)  # it is our own page
    return module


sys.modules["acme_sync"] = shown("class Table:", "acme_sync")
TestTable = shown("class TestTable", "test_table").TestTable
del sys.modules["acme_sync"]


def test_what_the_example_leaves_open_would_be_found(tmp_path: Path) -> None:
    class Down(TestTable):  # type: ignore[misc, valid-type]  # it is of the page
        def outage(self) -> object:
            self.path.rename(tmp_path / "elsewhere")
            return open("/dev/null")

    table = Down()
    table.path, table.lengths = tmp_path / "table.csv", {}
    table.put("a", b"x")

    with pytest.raises(FileNotFoundError):
        table.test_an_outage_raises_an_error(shown("class Table:", "acme_sync").Table(table.path))


def test_the_suites_import_no_framework_of_tests() -> None:
    imported = {
        name.split(".")[0]
        for path in (SOURCE / "testing").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in (
            [name.name for name in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }

    assert "resourcesync" in imported
    assert imported <= {*sys.stdlib_module_names, "resourcesync"}


def test_nothing_of_the_package_imports_the_suites() -> None:
    others = [path for path in SOURCE.rglob("*.py") if "testing" not in path.parts]

    assert [other for other in others if "resourcesync.testing" in other.read_text("utf-8")] == []
    assert len(others) > 300


def test_every_suite_and_every_check_is_on_the_page() -> None:
    for name in testing.__all__:
        assert f"\n## {name}\n" in REFERENCE
        assert getattr(testing, name).__doc__.startswith("The promises of ")
    assert {var for var in vars(testing) if var.endswith("Suite")} == set(testing.__all__)
