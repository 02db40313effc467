"""What the package exports: all of it documented, nothing else, and nothing paid before its use."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import resourcesync
from resourcesync import documents, server
from resourcesync.errors import ConfigurationError

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "api.md"
MODULES = (resourcesync, documents, server)
PUBLIC = [(module, name) for module in MODULES for name in module.__all__]


def ids(value: object) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", "")


def test_the_page_has_every_public_name_and_no_other() -> None:
    elsewhere = {"__version__", "ResourceSyncError", "Entry"}  # errors have a page of their own

    headings = re.findall(r"^### (\S+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted({name for _, name in PUBLIC} - elsewhere)


@pytest.mark.parametrize("module", MODULES, ids=ids)
def test_type_checkers_see_the_names_that_there_are(module: ModuleType) -> None:
    assert module.__file__ is not None
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text("utf-8"))
    homes = {
        alias.asname: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert set(homes) == {*module.__all__} - {"__version__"}
    for name, (home, own) in homes.items():
        place = f"{home}".replace("keyword_types", "keywords")  # those are for type checkers only
        assert getattr(module, f"{name}") is getattr(importlib.import_module(place), own)


def imported(statement: str) -> set[str]:
    code = (
        f"import sys; before = set(sys.modules); {statement};"
        "print(*sorted(set(sys.modules) - before))"
    )
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT / "src")
    return set(ran.stdout.split())


def test_only_what_is_needed_is_imported() -> None:
    assert imported("import resourcesync") == {"resourcesync"}
    reading = imported("from resourcesync import read, write, Resource")
    assert "resourcesync.documents.reader" in reading
    assert {"pycurl", "click", "sqlite3", "starlette", "asyncio"}.isdisjoint(reading)


def test_an_unknown_profile_is_an_error_before_anything_is_read() -> None:
    with pytest.raises(ConfigurationError, match="RS-2"):
        resourcesync.validate(b"", profile="RS-2")  # type: ignore[arg-type]  # what is tested


def test_an_option_that_does_not_exist_is_refused_as_python_does(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="deleting"):
        resourcesync.Mirror(None, tmp_path, deleting=True)  # type: ignore[call-arg]  # tested
    with pytest.raises(TypeError, match="adress"):
        resourcesync.Publisher(tmp_path, adress="x")  # type: ignore[call-arg]  # tested
