"""A Debian package is built from distribution/debian, and lintian finds no fault in it."""

import shutil
import tomllib
from pathlib import Path

import pytest

from tests.support.commands.run import Ran, program

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "distribution" / "debian"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
PARTS = ("src", "share", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")


def missing() -> str:
    """The reason that nothing can be built here; empty if it can."""
    if shutil.which("dpkg-checkbuilddeps") is None:
        return "no tools of Debian here"
    return program("dpkg-checkbuilddeps", DEBIAN / "control").stderr.strip()


def test_the_version_of_the_package_is_that_of_the_project() -> None:
    assert (DEBIAN / "changelog").read_text("utf-8").startswith(f"resourcesync ({VERSION}-")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_no_fault_in_the_unit_of_the_package(tmp_path: Path) -> None:
    unit = tmp_path / "resourcesync-watch.service"
    text = (DEBIAN / "resourcesync.resourcesync-watch.service").read_text("utf-8")
    unit.write_text(text.replace("/usr/bin/resourcesync", "/bin/true"))

    assert program("systemd-analyze", "verify", "--man=no", unit) == Ran(0, "", "")


@pytest.mark.timeout(300)
def test_a_package_is_built_with_unit_pages_completions_and_configuration(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    tree = tmp_path / f"resourcesync-{VERSION}"
    tree.mkdir()
    for name in PARTS:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tree / name)
    shutil.copytree(DEBIAN, tree / "debian")

    ran = program("dpkg-buildpackage", "-us", "-uc", "-b", cwd=tree)
    assert ran.code == 0, ran.said
    (package,) = tmp_path.glob("*.deb")
    listed = program("dpkg-deb", "--contents", package).stdout
    for name in (
        "./etc/resourcesync/resourcesync.toml",
        "./usr/bin/resourcesync",
        "./usr/share/man/man1/resourcesync-pull.1.gz",
        "./usr/share/man/man5/resourcesync.toml.5.gz",
        "./usr/share/bash-completion/completions/resourcesync",
        "/systemd/system/resourcesync-watch.service",
        "/resourcesync/validator/rules.toml",
    ):
        assert name in listed
    if shutil.which("lintian") is not None:
        checked = program("lintian", "--allow-root", "--fail-on", "error,warning", package)
        assert checked.code == 0, checked.stdout
