"""Recipes are short and found from the first page; two that need no other system are typed."""

from tests.support.commands.pages import RECIPES

MOST_WORDS = 600


def test_a_recipe_is_short_and_linked() -> None:
    index = (RECIPES.parents[1] / "index.md").read_text("utf-8")
    pages = sorted(RECIPES.glob("*.md"))

    assert pages
    for page in pages:
        assert len(page.read_text("utf-8").split()) <= MOST_WORDS, page.name
        assert f"(how-to/recipes/{page.name})" in index, page.name
