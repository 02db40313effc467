"""Each code that the program prints can be explained by ``resourcesync why CODE``."""

import re

import pytest

from resourcesync import errors
from resourcesync.cli.explained_codes import CODES
from resourcesync.cli.main import run
from tests.support.source_files import SOURCES, python_files

_PRINTED = re.compile(
    r"""(?:code=|"code":\s*|\.warn\(\s*)"([a-z]+(?:-[a-z]+)*)"|E_[A-Z0-9_]+: \("([a-z-]+)","""
)
_NO_ERROR = {"error", "error-code"}


def printed() -> set[str]:
    """Return the codes that are written in the source."""
    found: set[str] = set()
    for path in python_files(SOURCES):
        for match in _PRINTED.finditer(path.read_text(encoding="utf-8")):
            found.update(filter(None, match.groups()))
    return found - _NO_ERROR


def test_codes_are_found_in_the_source() -> None:
    assert {"connect", "empty-tree", "no-plugin", "usage", "omitted", "bad-package"} <= printed()


def test_each_printed_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for code in sorted(printed() | {"tolerated", "output"}):
        assert run(["why", code]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{code}  ")
        assert "  exit    " in said


def test_each_explained_code_is_of_a_kind_of_error_that_there_is() -> None:
    for code, (kind, meaning) in CODES.items():
        assert kind == "warning" or issubclass(getattr(errors, kind), errors.ResourceSyncError)
        assert meaning.endswith("."), code
