"""The page of faults names tests for every row of the threat and fault models, and they exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITES = [path.read_text("utf-8") for path in (ROOT / "tests/contracts").glob("*_suite.py")]
PAGE = (ROOT / "tests" / "faults.md").read_text("utf-8")
NOT_OF_A_MIRROR = {"F38", "F39", "F41", "F42", "F43", "F44", "F45"}
WANTED = [
    *(f"U{number:02}" for number in range(1, 25)),
    *(f"N{number:02}" for number in range(1, 40)),
    *(f"P{number:02}" for number in range(1, 27)),
    *(f"F{number:02}" for number in range(1, 49) if f"F{number:02}" not in NOT_OF_A_MIRROR),
    *(f"S{number:02}" for number in range(1, 20)),
    *(f"W{number:02}" for number in range(1, 29)),
]


def rows() -> dict[str, list[str]]:
    found = re.findall(r"^\| ([UNPFSW]\d\d) \| [^|]+ \| ([^|]*) \|$", PAGE, re.MULTILINE)
    return {row: re.findall(r"`([^`]+)`", tests) for row, tests in found}


def test_every_row_is_on_the_page_and_none_twice() -> None:
    named = re.findall(r"^\| ([A-Z]\d\d) \|", PAGE, re.MULTILINE)

    assert named == WANTED
    assert list(rows()) == WANTED


def test_every_row_names_tests_and_all_of_them_exist() -> None:
    for row, tests in rows().items():
        assert tests, f"{row} names no test"
        for named in tests:
            path, *suite, name = named.split("::")
            text = (ROOT / "tests" / path).read_text("utf-8")
            if suite:  # a class that runs the checks of a port
                (base,) = re.findall(rf"^class {suite[0]}\((\w+)\)", text, re.MULTILINE)
                (checks,) = [
                    text for text in SUITES if re.search(rf"^class {base}\b", text, re.MULTILINE)
                ]
                assert re.search(rf"^    def {name}\(", checks, re.MULTILINE), f"{row}: {named}"
            else:
                assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{row}: {named}"
