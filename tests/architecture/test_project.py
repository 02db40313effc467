"""The project's own papers agree with each other: README, CI, requirements, version, facade."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import resourcesync

ROOT = Path(__file__).parents[2]
REQUIREMENTS = sorted(
    set((ROOT / "requirements").glob("*.txt")) - {ROOT / "requirements/checkout.txt"}
)


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def readme_commands() -> list[str]:
    text = (ROOT / "README.md").read_text("utf-8")
    return [line for line in text.splitlines() if line.startswith("python3 -m venv")]


def named(requirements: list[str]) -> set[str]:
    """The packages of requirement strings, without versions and markers."""
    return {
        re.sub(r"[-_.]+", "-", found[0]).lower()
        for requirement in requirements
        if (found := re.match(r"[\w.-]+", requirement))
    }


def tracked() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no git here to say which files are the project's")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_the_readme_has_two_commands_a_demo_and_the_tests() -> None:
    demo, tests = readme_commands()

    assert demo.endswith("resourcesync demo")
    assert " -m pytest" in tests


def test_ci_runs_the_test_command_of_the_readme_to_the_letter_and_last() -> None:
    steps = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()

    assert steps[-1] == readme_commands()[1]


def test_the_readme_fits_on_one_screen_of_a_forge() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 80


def test_the_version_is_the_same_everywhere() -> None:
    assert project()["project"]["version"] == resourcesync.__version__


def test_the_facade_exports_what_it_says_and_nothing_else() -> None:
    exported = list(vars(resourcesync)["__all__"])
    present = {
        name
        for name, item in vars(resourcesync).items()
        if not name.startswith("_") and not isinstance(item, ModuleType)
    }

    assert exported == sorted(set(exported))
    assert present - {"export_lazily", "TYPE_CHECKING"} <= set(exported)
    assert [name for name in exported if not hasattr(resourcesync, name)] == []


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_every_requirement_is_pinned_by_hash_and_names_no_host(path: Path) -> None:
    text = path.read_text("utf-8").replace("\\\n", " ")
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]

    assert pins
    assert [pin for pin in pins if not re.match(r"[\w.-]+==\S+ ", pin)] == []
    assert [pin for pin in pins if not re.search(r"--hash=sha256:[0-9a-f]{64}", pin)] == []
    assert "://" not in text
    assert "index" not in text


def test_what_the_project_asks_for_is_pinned() -> None:
    groups = project()["dependency-groups"]
    dependencies = project()["project"]["dependencies"]
    extras = project()["project"]["optional-dependencies"]
    wanted = {
        "main": named(dependencies),
        "image": named(dependencies + extras["watch"] + extras["xml"]),
        "test": named(groups["test"]),
        "night": named(groups["night"]),
        "dev": named(groups["lint"] + groups["test"] + groups["docs"]),
    }
    for annex in ROOT.glob("annexes/*/pyproject.toml"):
        needs = tomllib.loads(annex.read_text("utf-8"))["project"]
        libraries = {*named(needs["dependencies"])}
        wanted["test"] |= {name for name in libraries if not name.startswith("resourcesync")}
    pinned = {path.stem: named(path.read_text("utf-8").splitlines()) for path in REQUIREMENTS}

    assert set(pinned) == set(wanted)
    assert {name: sorted(wanted[name] - pinned[name]) for name in wanted if wanted[name]} == {
        name: [] for name in wanted
    }
    assert pinned["main"] <= pinned["test"] <= pinned["dev"]


def test_no_file_names_a_machine_or_a_package_index() -> None:
    hosts = "|".join(rf"{name}\.org" for name in ("pypi", "pythonhosted"))
    forbidden = re.compile(rf"(?<![\w.~)}}\]-])/(?:work|tmp|root|home/[a-z]+)/|{hosts}".encode())
    found = [
        f"{path.relative_to(ROOT)}: {hit[0].decode()}"
        for path in tracked()
        for hit in forbidden.finditer(path.read_bytes())
    ]

    assert found == []
