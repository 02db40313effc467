"""What else is distributed: manual pages, the bill of materials, and a Debian package."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from resourcesync.cli.main import COMMANDS
from tests.support.commands.run import Ran, program

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "distribution" / "debian"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
PAGES = sorted((ROOT / "share" / "man").rglob("*.?"))
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


def written() -> bytes:
    return subprocess.run(
        [sys.executable, ROOT / "distribution" / "sbom.py"], check=True, capture_output=True
    ).stdout


def test_the_bill_of_materials_has_each_pin_with_its_digests_and_equal_bytes() -> None:
    text = written()
    bill = json.loads(text)
    pins = (ROOT / "requirements" / "main.txt").read_text("utf-8")

    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert {(item["name"], item["version"]) for item in bill["components"]} == set(
        re.findall(r"^([\w.-]+)==([\w.]+)", pins, re.MULTILINE)
    )
    digests = [
        file["hashes"][0] for item in bill["components"] for file in item["externalReferences"]
    ]
    assert len(digests) == pins.count("--hash=sha256:") > 50
    refs = [item["bom-ref"] for item in bill["components"]]
    assert bill["dependencies"][0]["dependsOn"] == refs
    assert written() == text


def test_the_version_of_the_package_is_that_of_the_project() -> None:
    assert (DEBIAN / "changelog").read_text("utf-8").startswith(f"resourcesync ({VERSION}-")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_no_fault_in_the_unit_of_the_package(tmp_path: Path) -> None:
    unit = tmp_path / "resourcesync-watch.service"
    text = (DEBIAN / "resourcesync.resourcesync-watch.service").read_text("utf-8")
    unit.write_text(text.replace("/usr/bin/resourcesync", "/bin/true"))

    assert program("systemd-analyze", "verify", "--man=no", unit) == Ran(0, "", "")
