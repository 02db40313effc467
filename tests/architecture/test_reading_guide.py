"""The reading guide and the pictures of the architecture are true of the code."""

import ast
import importlib.util
import re
from pathlib import Path

from docs import architecture_text, reading_text

from tests.support.source_files import module_path

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "explanation" / "reading-guide.md").read_text("utf-8")
MOST_LINES = 9_000
ROWS = re.findall(r"^\| `(resourcesync[\w.]*)` \| ([\d,]+) \| (.*) \|$", GUIDE, re.MULTILINE)
STEPS = sorted({where for _, where in architecture_text.PULL + architecture_text.PUBLICATION})


def definitions(module: str) -> set[str]:
    """The names that a module defines: functions, classes, methods, constants."""
    names, path = set(), module_path(module)
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def test_the_kernel_can_be_read_in_a_weekend() -> None:
    modules = [module for module, _, _ in ROWS]

    assert len(modules) == len(set(modules)) > 20
    assert sum(map(reading_text.lines_of, modules)) <= MOST_LINES


def test_a_row_of_the_guide_names_what_its_module_defines() -> None:
    for module, _, look_for in ROWS:
        named = set(re.findall(r"`(?:\w+\.)?([A-Za-z_]\w*)`", look_for))

        assert named <= definitions(module) | {"Delete"}, module


def test_each_step_of_a_picture_names_a_definition() -> None:
    for where in STEPS:
        module, _, path = where.partition(":")
        found: object = importlib.import_module(f"resourcesync.{module}")
        for name in path.split("."):
            found = getattr(found, name)

        assert callable(found), where


def test_the_picture_of_the_layers_has_every_package() -> None:
    drawn = {name for layer in architecture_text.layers() for name in layer}

    assert set(architecture_text.sizes()) - drawn == {"__init__", "__main__"}
