"""The reading guide and the pictures of the architecture are true of the code."""

import ast
import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from docs import architecture_text, reading_text

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "explanation" / "reading-guide.md").read_text("utf-8")
MOST_LINES = 9_000
ROWS = re.findall(r"^\| `(resourcesync[\w.]*)` \| ([\d,]+) \| (.*) \|$", GUIDE, re.MULTILINE)
STEPS = sorted({where for _, where in architecture_text.PULL + architecture_text.PUBLICATION})
ARROWS = architecture_text.without_detours(architecture_text.imports())


def source_of(module: str) -> str:
    return (ROOT / "src").joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")


def definitions(module: str) -> set[str]:
    """The names that a module defines: functions, classes, methods, constants."""
    names = set()
    for node in ast.walk(ast.parse(source_of(module))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def test_the_kernel_can_be_read_in_a_weekend() -> None:
    modules = [module for module, _, _ in ROWS]

    assert len(modules) == len(set(modules)) > 20
    assert sum(map(reading_text.lines_of, modules)) <= MOST_LINES


@pytest.mark.parametrize(("module", "lines", "look_for"), ROWS)
def test_a_row_of_the_guide_is_true_of_its_module(module: str, lines: str, look_for: str) -> None:
    actual = reading_text.lines_of(module)
    named = re.findall(r"`(?:\w+\.)?([A-Za-z_]\w*)`", look_for)

    assert int(lines.replace(",", "")) == pytest.approx(actual, rel=0.1, abs=10)
    assert sorted(set(named) - definitions(module) - {"Delete"}) == []


def test_the_guide_names_modules_that_exist() -> None:
    for module in re.findall(r"`(resourcesync(?:\.\w+)+)`", GUIDE):
        assert importlib.util.find_spec(module), module


@pytest.mark.parametrize("where", STEPS)
def test_each_step_of_a_picture_names_a_definition(where: str) -> None:
    module, _, path = where.partition(":")
    found: object = importlib.import_module(f"resourcesync.{module}")
    for name in path.split("."):
        found = getattr(found, name)

    assert callable(found)


def test_the_picture_of_the_layers_has_every_package() -> None:
    drawn = {name for layer in architecture_text.layers() for name in layer}

    assert set(architecture_text.sizes()) - drawn == {"__init__", "__main__"}


def test_the_arrows_that_are_drawn_imply_every_import() -> None:
    drawn: architecture_text.Imports = {}
    for upper, lower in ARROWS:
        drawn.setdefault(upper, set()).add(lower)

    for name, used in architecture_text.imports().items():
        assert used <= architecture_text.reachable(drawn, name)


@pytest.mark.parametrize("name", architecture_text.PICTURES)
def test_a_picture_is_well_formed_and_its_text_is_inside(name: str) -> None:
    root = ET.fromstring((ROOT / "docs" / name).read_text("utf-8"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    texts = [element for element in root.iter() if element.tag.endswith("}text")]

    assert len(texts) > 20
    for element in texts:
        wide = 7.3 * len(element.text or "")
        left = float(element.attrib["x"]) - (wide / 2 if "text-anchor" in element.attrib else 0)
        assert left >= 0
        assert left + wide <= width
        assert float(element.attrib["y"]) < height
