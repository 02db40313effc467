"""Each recipe is short, is found from the first page, and is typed by a test of its own."""

from pathlib import Path

import pytest

from tests.support.commands.pages import RECIPES

PAGES = sorted(RECIPES.glob("*.md"))
MOST_WORDS = 600


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_recipe_is_short_linked_and_typed(page: Path) -> None:
    index = RECIPES.parents[1] / "index.md"
    test = Path(__file__).parent / f"test_recipe_{page.stem.replace('-', '_')}.py"

    assert len(page.read_text("utf-8").split()) <= MOST_WORDS
    assert f"(how-to/recipes/{page.name})" in index.read_text("utf-8")
    assert f'"{page.name}"' in test.read_text("utf-8")


def test_every_test_of_a_recipe_has_its_page() -> None:
    names = {
        path.stem.removeprefix("test_recipe_")
        for path in Path(__file__).parent.glob("test_recipe_*.py")
    }

    assert names == {page.stem.replace("-", "_") for page in PAGES}
