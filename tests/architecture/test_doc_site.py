"""The built pages of the documentation, as a browser shows them; `.ci/run` builds them."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.page_checkers import barriers, markup_faults

pytestmark = pytest.mark.night

DOCS = Path(__file__).parents[2] / "docs"
SITE = DOCS / "_build" / "html"
# An older version of the checker does not know that a checkbox has its state of itself.
KNOWN = re.compile("Element .input. is missing required attribute .aria-checked.")
SAMPLE = (
    *("index", "search", "tutorials/first-source", "how-to/monitor-mirrors", "reference/glossary"),
    *("explanation/performance", "reference/cli", "reference/api", "reference/rules/RS1"),
)


@pytest.fixture(scope="module")
def site() -> Path:
    written = max(path.stat().st_mtime for path in DOCS.rglob("*.md"))
    front = SITE / "index.html"
    if not front.exists() or front.stat().st_mtime < written:
        pytest.skip("not built, or older than the pages: sphinx-build -W -n docs docs/_build/html")
    return SITE


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_barrier_on_any_kind_of_page(
    browser: Any, site: Path, scheme: str, width: int
) -> None:
    places = [(site / f"{name}.html").as_uri() for name in SAMPLE]
    look = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}

    assert barriers(browser, places, **look) == []


def test_the_checker_of_the_w3c_finds_no_fault_on_any_page(site: Path) -> None:
    assert {fault for fault in markup_faults(site) if not KNOWN.match(fault)} == set()
