"""Every kind of line that ``--json`` writes is on its page."""

import ast
import re
from collections.abc import Iterator

from tests.support.source_files import ROOT, SOURCES, python_files

PAGE = ROOT / "docs" / "reference" / "json.md"


def reported_kinds() -> Iterator[str]:
    """Yield the first argument of each call that reports an event, where it is written out."""
    for path in python_files(SOURCES):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=name),
                    args=[ast.Constant(value=str(kind)), _],
                ) if name.strip("_") == "report" and kind.islower():
                    yield kind


def test_every_kind_that_is_reported_is_on_the_page() -> None:
    kinds = set(reported_kinds())
    explained = set(re.findall(r"^- `([a-z.-]+)`: ", PAGE.read_text(), re.MULTILINE))

    assert {"item", "plan", "warning"} <= kinds
    assert sorted(kinds - explained) == []
