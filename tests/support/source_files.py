"""The source of the project: the kernel and its annexes, for tests that read code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ANNEXES: Final = sorted(ROOT.glob("annexes/*/src"))
SOURCES: Final = [ROOT / "src", *ANNEXES]
TESTS: Final = [ROOT / "tests", *sorted(ROOT.glob("annexes/*/tests"))]


def python_files(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.rglob("*.py"))


def module_name(path: Path) -> str:
    folder = next(folder for folder in SOURCES if path.is_relative_to(folder))
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def module_path(name: str) -> Path:
    """Return where a module or a package of ours is, without its suffix."""
    places = [folder.joinpath(*name.split(".")) for folder in SOURCES]
    return next(path for path in places if path.is_dir() or path.with_suffix(".py").is_file())
