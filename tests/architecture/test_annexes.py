"""The kernel stands without its annexes, and each annex says what it is and what it needs."""

import os
import re
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import resourcesync
from resourcesync.app import plugins
from tests.support.commands.run import Ran, program
from tests.support.source_files import ANNEXES, ROOT

NAMES = [folder.parent.name for folder in ANNEXES]
RUN = "from resourcesync.cli.main import main; main()"


def project(name: str) -> dict[str, Any]:
    text = (ROOT / "annexes" / name / "pyproject.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


@pytest.fixture(scope="module")
def without_annexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that has the kernel and its libraries, and no annex."""
    site = tmp_path_factory.mktemp("site")
    for path in Path(pytest.__file__).parents[1].iterdir():
        if path.suffix != ".pth" and not re.match(r"_?resourcesync_", path.name):
            (site / path.name).symlink_to(path)
    return {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(site))), "PATH": os.defpath}


def run(env: dict[str, str], folder: Path, *words: str) -> Ran:
    command, home = (sys.executable, "-S", "-c", RUN, *words), {"HOME": str(folder)}
    return program(*command, cwd=folder, env={**env, **home})


def test_no_module_of_the_kernel_names_an_annex() -> None:
    assert len(NAMES) == 7
    named = re.compile(rf"\bresourcesync_({'|'.join(NAMES)})\b")
    found = [
        path.name
        for path in sorted((ROOT / "src").rglob("*"))
        if path.suffix in {".py", ".pyi", ".toml"} and named.search(path.read_text("utf-8"))
    ]

    assert found == []
    assert not named.search((ROOT / "pyproject.toml").read_text("utf-8").partition("[tool")[0])


@pytest.mark.parametrize("name", NAMES)
def test_an_annex_has_the_version_of_the_kernel_and_its_page(name: str) -> None:
    annex = project(name)
    page = annex["urls"]["Documentation"].partition("/docs/")[2].removesuffix(".html")

    assert annex["name"] == f"resourcesync-{name}"
    assert annex["version"] == resourcesync.__version__
    assert f"resourcesync=={resourcesync.__version__}" in annex["dependencies"]
    assert (ROOT / "docs" / f"{page}.md").is_file()
    assert f"-e annexes/{name}" in (ROOT / "requirements" / "checkout.txt").read_text("utf-8")


@pytest.mark.parametrize("name", ["", *NAMES])
def test_the_installed_entry_points_are_those_of_the_project(name: str) -> None:
    file = ROOT / "annexes" / name / "pyproject.toml" if name else ROOT / "pyproject.toml"
    wanted = tomllib.loads(file.read_text("utf-8"))["project"]["entry-points"]
    points = distribution(f"resourcesync-{name}".rstrip("-")).entry_points
    installed = {
        group: {point.name: point.value for point in points.select(group=group)} for group in wanted
    }

    assert set(wanted) <= set(plugins.GROUPS)
    assert installed == wanted, "older: pip install --no-deps -r requirements/checkout.txt"
    assert all(callable(plugins.load(group, point)) for group in wanted for point in wanted[group])


def test_without_an_annex_all_commands_of_the_kernel_are_there(
    without_annexes: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "page.html").write_text("<p>a page</p>")

    shown = run(without_annexes, tmp_path, "--help")
    assert (shown.code, "simulate" in shown.stdout) == (0, False)
    # It publishes, serves, pulls and audits.
    assert run(without_annexes, tmp_path, "demo", "tree", "-q").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("simulate",),
        ("config", "postgres"),
        ("pull", "http://localhost:9/", "mirror", "-o", "engine=dask://localhost:8786"),
        ("pull", "http://localhost:9/", "s3://bucket/mirror", "-o", "state=state"),
        ("publish", "s3://bucket/prefix", "--url", "https://h.example", "--out", "lists"),
        ("publish", "oai:https://h.example/oai", "--out", "lists"),
    ],
)
def test_without_its_annex_an_error_says_where_to_look(
    words: tuple[str, ...], without_annexes: dict[str, str], tmp_path: Path
) -> None:
    ran = run(without_annexes, tmp_path, *words)

    assert ran.code == 2, ran.stderr
    assert "an annex may have it (docs/how-to/install.md)" in ran.stderr
