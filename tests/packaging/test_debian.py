"""What of a Debian package can be checked without its tools."""

import shutil
import tomllib
from pathlib import Path

import pytest

from tests.support.commands.run import Ran, program

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "distribution" / "debian"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def test_the_version_of_the_package_is_that_of_the_project() -> None:
    assert (DEBIAN / "changelog").read_text("utf-8").startswith(f"resourcesync ({VERSION}-")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_no_fault_in_the_unit_of_the_package(tmp_path: Path) -> None:
    unit = tmp_path / "resourcesync-watch.service"
    text = (DEBIAN / "resourcesync.resourcesync-watch.service").read_text("utf-8")
    unit.write_text(text.replace("/usr/bin/resourcesync", "/bin/true"))

    assert program("systemd-analyze", "verify", "--man=no", unit) == Ran(0, "", "")
