"""What the documents that ResourceSync began with say that one can do, from the marks of tests."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
DOCUMENTS: Final = {
    "D-Lib": "A Technical Framework for Resource Synchronization, D-Lib Magazine, January 2013",
    "WWW": "ResourceSync: Leveraging Sitemaps for Resource Synchronization, WWW 2013",
    "0.9": "ResourceSync Framework Specification 0.9, June 2013",
    "DSpace": "Generating ResourceSync Documents in DSpace, Cottage Labs, May 2013",
    "DIT-ES": "DIT-ES ResourceSync protocol, OpenMinTeD",
}
OPEN: Final = Path(__file__).with_name("founding_open.toml")
"""The rows that no test proves, each with the reason."""

MARK: Final = "pytest.mark.founding"


class Row(NamedTuple):
    """One thing that a founding document names; ``why`` where no test proves it."""

    where: str
    row: str
    how: str
    test: str = ""
    why: str = ""

    @property
    def document(self) -> str:
        return next((name for name in DOCUMENTS if self.where.startswith(name)), self.where)

    @property
    def section(self) -> str:
        return self.where.removeprefix(self.document).lstrip(": ")


def texts(path: Path) -> Iterator[list[str]]:
    """Yield the arguments of each mark in a file, without importing it."""
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if "mark.founding" in text else ():
        for call in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func) == MARK:
                yield [ast.literal_eval(arg) for arg in call.args]


def rows() -> list[Row]:
    """Return all rows, by document and section."""
    found = [Row(**row) for row in tomllib.loads(OPEN.read_text("utf-8"))["row"]]
    tests = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("annexes/*/tests/**/test_*.py")]
    for path in sorted(tests):
        place = path.relative_to(ROOT).as_posix().removeprefix("tests/")
        found += [Row(where, row, how, place) for where, row, how in texts(path)]
    return sorted(found, key=_order)


def _order(row: Row) -> tuple[int, list[int], str, bool]:
    numbers = [int(number) for number in re.findall(r"\d+", row.section)]
    return ([*DOCUMENTS].index(row.document), numbers, row.section, bool(row.why))


def tables() -> str:
    """Return for each document the table of its rows."""
    found = rows()
    proved = sum(1 for row in found if row.test)
    parts = [f"{proved} of {len(found)} rows are proved by a test; the others say why not.\n"]
    for name, title in DOCUMENTS.items():
        parts.append(f"\n### {name}\n\n{title}.\n\n|Section|Row|How|Test|\n|---|---|---|---|\n")
        parts += [
            f"|{row.section}|{row.row}|{row.how}|{f'`{row.test}`' if row.test else row.why}|\n"
            for row in found
            if row.document == name
        ]
    return "".join(parts)
