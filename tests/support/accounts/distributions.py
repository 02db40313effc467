"""Tiny installed distributions: a folder with a module and its ``entry_points.txt``."""

from collections.abc import Mapping
from pathlib import Path


def install(
    site: Path, name: str, entry_points: Mapping[str, Mapping[str, str]], code: str
) -> Path:
    site.mkdir(parents=True, exist_ok=True)
    (site / f"{name}.py").write_text(code, encoding="utf-8")
    info = site / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = []
    for group, points in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return site
