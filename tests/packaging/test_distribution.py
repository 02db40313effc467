"""The wheel and the source archive: complete, reproducible, and working outside the checkout."""

import importlib.util
import os
import re
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from tests.support.commands.run import Ran, program
from tests.support.source_files import ANNEXES

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
WHEEL = f"resourcesync-{VERSION}-py3-none-any.whl"
ARCHIVE = f"resourcesync-{VERSION}.tar.gz"
MISSING = [
    name for name in ("build", "hatchling", "twine") if importlib.util.find_spec(name) is None
]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


def build(tree: Path, out: Path, *options: str) -> Path:
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir")
    ran = program(
        *build, out, *options, tree, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    )
    assert ran.code == 0, ran.said
    return out


def assert_accepted(*distributions: Path) -> None:
    ran = program(sys.executable, "-m", "twine", "check", "--strict", *distributions)
    assert ran.code == 0, ran.said


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("built"))


def metadata(built: Path) -> Message:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        return message_from_bytes(wheel.read(f"resourcesync-{VERSION}.dist-info/METADATA"))


def test_two_builds_and_a_build_from_the_archive_have_equal_bytes(
    built: Path, tmp_path: Path
) -> None:
    again = build(ROOT, tmp_path / "again", "--sdist")
    direct = build(ROOT, tmp_path / "direct", "--wheel")

    assert (again / ARCHIVE).read_bytes() == (built / ARCHIVE).read_bytes()
    assert (direct / WHEEL).read_bytes() == (built / WHEEL).read_bytes()


def test_the_wheel_has_every_file_of_the_package(built: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        packed = {name: wheel.read(name) for name in wheel.namelist()}
    found = (SOURCES / "resourcesync").rglob("*")
    files = [path for path in found if path.is_file() and path.suffix != ".pyc"]

    assert {path.suffix for path in files} >= {".py", ".pyi", ".css", ".toml"}
    assert "resourcesync/py.typed" in packed
    for name in ("man/man1/resourcesync.1", "resourcesync/alerts.yml"):
        assert f"resourcesync-{VERSION}.data/data/share/{name}" in packed
    for path in files:
        assert packed[path.relative_to(SOURCES).as_posix()] == path.read_bytes()


def test_the_archive_has_what_the_tests_and_the_pages_need(built: Path) -> None:
    with tarfile.open(built / ARCHIVE) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"hatch_build.py", "LICENSE", "CHANGELOG.md", "requirements/main.txt"} <= names
    assert {"docs/generate.py", "conftest.py", ".ci/run", "annexes/s3/pyproject.toml"} <= names
    assert [name for name in names if re.search(r"__pycache__|\.venv|_build/", name)] == []


def test_a_package_index_accepts_both(built: Path) -> None:
    assert_accepted(built / ARCHIVE, built / WHEEL)


def test_an_annex_is_a_distribution_of_its_own(tmp_path: Path) -> None:
    for annex in ANNEXES:
        build(annex.parent, tmp_path, "--wheel")
    wheels = sorted(tmp_path.iterdir())

    assert len(wheels) == len(ANNEXES) == 7
    assert_accepted(*wheels)
    for wheel, annex in zip(wheels, ANNEXES, strict=True):
        name = f"resourcesync_{annex.parent.name}"
        with zipfile.ZipFile(wheel) as packed:
            names = set(packed.namelist())
            about = packed.read(f"{name}-{VERSION}.dist-info/METADATA").decode()
        assert f"Requires-Dist: resourcesync=={VERSION}" in about
        assert f"{name}/py.typed" in names
        assert not [one for one in names if not one.startswith(name)]


def test_the_page_of_the_project_has_links_that_work_there(built: Path) -> None:
    page = metadata(built)
    links = re.findall(r"\]\(([^)]+)\)", str(page.get_payload()))
    base = f"/blob/v{VERSION}/"

    assert len(links) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    files = [link.partition(base)[2].partition("#")[0] for link in links if base in link]
    assert [name for name in files if not (ROOT / name).is_file()] == []
    assert {item.partition(",")[0] for item in page.get_all("Project-URL", [])} == {
        "Homepage",
        "Documentation",
        "Source",
        "Issues",
        "Changelog",
    }


@pytest.mark.timeout(300)
def test_the_installed_wheel_works_outside_the_checkout(built: Path, tmp_path: Path) -> None:
    venv, tree = tmp_path / "venv", tmp_path / "tree"
    tree.mkdir()
    (tree / "page.html").write_text("<p>a page</p>")
    pip: list[str | Path] = [venv / "bin" / "python", "-m", "pip", "install", "-q"]
    pip.append("--disable-pip-version-check")
    pins = ROOT / "requirements" / "main.txt"

    def run(*command: str | Path) -> Ran:
        return program(*command, cwd=tmp_path, env={"HOME": "."})

    assert run(sys.executable, "-m", "venv", venv).code == 0
    if run(*pip, "--no-compile", "--require-hashes", "-r", pins).code:
        pytest.skip("the pinned requirements cannot be installed: no package index")
    assert run(*pip, "--no-deps", "--no-index", built / WHEEL).code == 0
    script = venv / "bin" / "resourcesync"

    assert run(script, "--version").stdout == f"resourcesync {VERSION}\n"
    assert run(script, "demo", tree, "-q").code == 0
