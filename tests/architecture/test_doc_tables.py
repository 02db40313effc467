"""The page on tables is true: its examples read, and register, a table as it is described."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from resourcesync.cluster.tables import copies_to_parts
from resourcesync.ports.mirror import Copy

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "tables.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ROWS = 1_000


def make_table(folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = copies_to_parts(map(copy, range(ROWS)), into=folder, stem=stem, rows=400)
    told = {"format": "parquet", "parts": [part._asdict() for part, _ in parts]}
    (folder / "copies.json").write_text(json.dumps(told))


def copy(number: int) -> Copy:
    moment = 1_800_000_000_000_000 + number if number % 2 else None
    uri, fixity = f"http://a.example/{number:04}", "weak" if number % 4 else "verified"
    return Copy(uri, "path", number, "md5:1", "", moment, "", "", "signature", fixity, 5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    found = tmp_path / "museum" / ".resourcesync" / "copies"
    make_table(found, "one")
    make_table(found, "two")  # the parts of the table before are still there
    return found


@pytest.mark.parametrize(
    ("needs", "says"),
    [
        ("duckdb", ["750"]),
        ("polars", ["750", "250"]),
        ("pyiceberg", [str(ROWS)]),
        ("deltalake", [str(ROWS)]),
    ],
)
def test_an_example_reads_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str], needs: str, says: list[str]
) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    (example,) = [
        block for block in BLOCKS if f"import {needs}\n" in block or f"from {needs}" in block
    ]
    names: dict[str, Any] = {"__name__": "example"}
    exec(BLOCKS[0], names)

    for stem in ("three", "four"):
        exec(example.replace("/var/lib/iceberg", str(folder.parents[1] / "iceberg")), names)
        shown = capsys.readouterr().out
        assert all(word in shown for word in says), shown
        make_table(folder, stem)
    names.clear()


def test_the_example_for_the_shell_reads_the_table(folder: Path) -> None:
    (example,) = re.findall(r"^```sql\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    first, second = example.strip().rstrip(";").split(";\n")

    # Here: what is imported while tests are collected is never let go, of which it complains.
    import duckdb

    with duckdb.connect() as base:
        base.execute(first)
        [(count, newest)] = base.execute(
            second.replace("max(lastmod)", "epoch_us(max(lastmod))")
        ).fetchall()

    assert (count, newest) == (ROWS, 1_800_000_000_000_999)


def test_the_page_names_all_columns() -> None:
    table = PAGE.partition("## Columns")[2].partition("## Read it")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]

    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == list(Copy._fields)
