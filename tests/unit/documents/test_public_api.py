"""What the package exports: all of it documented, nothing else, and nothing paid before its use."""

import ast
import importlib
import json
import re
import subprocess
import sys
from datetime import datetime
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


# --- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=ids)
def test_every_public_name_is_on_the_page(module: ModuleType, name: str) -> None:
    elsewhere = {"__version__", "ResourceSyncError", "Entry"}  # errors have a page of their own

    assert headings().count(name) == (name not in elsewhere)


def test_the_page_names_nothing_that_is_not_public() -> None:
    public = {name for _, name in PUBLIC}

    assert set(headings()) <= public


def headings() -> list[str]:
    return re.findall(r"^### (\S+)$", PAGE.read_text("utf-8"), re.MULTILINE)


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


def test_importing_the_package_imports_nothing_of_it() -> None:
    code = (
        "import sys; before = set(sys.modules); import resourcesync;"
        "print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT / "src"
    )

    assert ran.stdout.split() == ["resourcesync", "resourcesync.lazy_exports"]


def test_reading_a_document_needs_no_network_and_no_command_line() -> None:
    code = (
        "import sys; from resourcesync import read, write, Resource; import json;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT / "src"
    )

    assert {"pycurl", "click", "sqlite3", "starlette", "asyncio"}.isdisjoint(json.loads(ran.stdout))


# --- documents -----------------------------------------------------------------------------------


def test_an_unknown_profile_is_an_error_before_anything_is_read() -> None:
    with pytest.raises(ConfigurationError, match="RS-2"):
        resourcesync.validate(b"", profile="RS-2")  # type: ignore[arg-type]  # what is tested


# --- options -------------------------------------------------------------------------------------


def test_an_option_that_does_not_exist_is_refused_as_python_does(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="deleting"):
        resourcesync.Mirror(None, tmp_path, deleting=True)  # type: ignore[call-arg]  # tested
    with pytest.raises(TypeError, match="adress"):
        resourcesync.Publisher(tmp_path, adress="x")  # type: ignore[call-arg]  # tested


@pytest.mark.parametrize(
    "options",
    [
        {"delete": "all"},
        {"verify": "maybe"},
        {"max_delete": "many"},
        {"since": datetime(2026, 1, 1)},  # noqa: DTZ001 - the fault
        {"include": "*.html"},
        {"types": 3},
    ],
    ids=lambda item: next(iter(item)),
)
def test_a_value_that_cannot_work_is_refused_at_once(
    tmp_path: Path, options: dict[str, object]
) -> None:
    with pytest.raises(ConfigurationError):
        resourcesync.Mirror(None, tmp_path, **options)  # type: ignore[arg-type]  # tested
