"""The floor of the tests' own coverage can be missed: a small project is measured by it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = {
    "pyproject.toml": '[tool.slipcover]\nsource = "src"\nfail-under = 60\nexclude-also = []\n',
    "conftest.py": "from tests.support import line_coverage\n"
    "COVERAGE = line_coverage.plugin()\n"
    "def pytest_configure(config):\n"
    "    config.pluginmanager.register(COVERAGE)\n",
    "src/counted.py": "def f(n):\n    if n:\n        return 1\n    return 2\n",
    "test_one.py": "from counted import f\ndef test_one():\n    assert f(1) == 1\n",
    "test_two.py": "from counted import f\ndef test_two():\n    assert f(0) == 2\n",
}


def measured(folder: Path, *words: str, wanted: str = "check") -> subprocess.CompletedProcess[str]:
    """Run the tests of the project; two modules of four lines, of which nobody imports one."""
    for name, text in (PROJECT | {"src/unseen.py": "a = 1\nb = 2\nc = 3\nd = 4\n"}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    paths = os.pathsep.join((str(ROOT), str(folder / "src")))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={**ours, "PYTHONPATH": paths, "TESTS_COVERAGE": wanted},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_what_no_test_imports_counts_and_a_run_below_the_floor_fails(tmp_path: Path) -> None:
    done = measured(tmp_path, "-n", "0")

    assert "2 passed" in done.stdout
    assert "the tests execute 50.00 % of the lines" in done.stdout
    assert "less than the 60 % of pyproject.toml" in done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED


def test_the_lines_of_all_workers_are_added_up(tmp_path: Path) -> None:
    done = measured(tmp_path, "-n", "2", "--dist", "load")

    assert "the tests execute 50.00 % of the lines" in done.stdout


def test_who_looks_at_the_lines_is_shown_them_and_nothing_fails(tmp_path: Path) -> None:
    done = measured(tmp_path, "-n", "0", "test_one.py", wanted="show")

    assert "1-4" in done.stdout
    assert done.returncode == pytest.ExitCode.OK
