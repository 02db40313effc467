"""The manual pages are complete, and every reader of roff understands them."""

import shutil
from pathlib import Path

import pytest

from resourcesync.cli.main import COMMANDS
from tests.support.commands.run import program

MANUAL = Path(__file__).parents[2] / "share" / "man"
PAGES = sorted(MANUAL.rglob("*.?"))
CHECKS = {"groff": ["groff", "-ww", "-man", "-Tutf8"], "mandoc": ["mandoc", "-Tlint", "-Wwarning"]}
UNKNOWN_DATE = "missing date"  # a page is made again with each change of the program


def test_every_command_has_a_page_and_so_has_the_configuration() -> None:
    expected = {"resourcesync.1", "resourcesync.toml.5"}
    expected |= {f"resourcesync-{name}.1" for name in COMMANDS}

    assert {page.name for page in PAGES} == expected


@pytest.mark.parametrize("formatter", CHECKS)
def test_a_formatter_of_manuals_has_no_warning(formatter: str) -> None:
    if shutil.which(formatter) is None:
        pytest.skip(f"{formatter} is not here")
    for page in PAGES:
        ran = program(*CHECKS[formatter], page)
        messages = (ran.stderr if formatter == "groff" else ran.stdout).splitlines()
        assert [line for line in messages if UNKNOWN_DATE not in line] == []
