"""The sizes of modules in the tables of a page, near enough to the truth to plan a weekend."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^(\| `(resourcesync[\w.]*)` \| )([\d,]+)( \|)", re.MULTILINE)
TOTAL = re.compile(r"^(\| All \| )([\d,]+)( \|)", re.MULTILINE)
_TOLERANCE = 0.1
"""A printed figure stays while it is so near: not every commit has to change the page."""


def lines_of(module: str) -> int:
    """Return the number of lines of a module."""
    name = module.replace(".", "/")
    places = [*ROOT.glob(f"src/{name}*"), *ROOT.glob(f"annexes/*/src/{name}*")]
    (file,) = (
        path / "__init__.py" if path.is_dir() else path
        for path in places
        if path.with_suffix("").name == name.rpartition("/")[2] and path.suffix in {"", ".py"}
    )
    return len(file.read_text("utf-8").splitlines())


def modules_in(text: str) -> list[str]:
    """Return the modules that have rows in the tables of a page."""
    return [row[2] for row in ROW.finditer(text)]


def with_sizes(text: str) -> str:
    """Return a page whose tables of modules have their numbers of lines, and the sum of all."""
    total = sum(map(lines_of, modules_in(text)))
    text = ROW.sub(lambda row: row[1] + _near(row[3], lines_of(row[2])) + row[4], text)
    return TOTAL.sub(lambda row: row[1] + _near(row[2], total) + row[3], text)


def _near(printed: str, lines: int) -> str:
    """Return the printed figure if it is near the number of lines, else that number, rounded."""
    is_near = abs(int(printed.replace(",", "")) - lines) <= _TOLERANCE * lines
    return printed if is_near else f"{round(lines, -1):,}"
