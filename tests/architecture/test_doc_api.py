"""The page of the library says everything, in Markdown that needs no other program."""

import re
from pathlib import Path

from docs.api_text import NAMES, arguments, words

import resourcesync
from resourcesync import documents

PAGE = (Path(__file__).parents[2] / "docs/reference/api.md").read_text("utf-8")
ELSEWHERE = {"ResourceSyncError", "__version__", "Entry"}


def test_every_public_name_is_explained() -> None:
    listed = {name.rpartition(".")[2] for names in NAMES.values() for name in names}
    public = {*resourcesync.__all__, *documents.__all__} - ELSEWHERE

    assert public <= listed
    for name in sorted(public):
        head = rf"^### {name}\n\n(```python\n(class )?{name}|\w)"
        assert re.search(head, PAGE, re.MULTILINE), name


def test_nothing_of_the_page_is_left_to_sphinx() -> None:
    assert "eval-rst" not in PAGE
    assert "object at 0x" not in PAGE
    assert "``" not in PAGE.replace("```", "")


def test_the_arguments_of_a_method_are_shown_with_their_meaning() -> None:
    assert "pull(" in PAGE
    assert "- `source`: Any address of the Source" in PAGE
    assert arguments(resourcesync.discover).startswith("(address")


def test_a_docstring_becomes_markdown() -> None:
    def call() -> None:
        """Do ``it``.

        Args:
            one, other: Two
                lines.

        Raises:
            ValueError: Never.
        """

    assert words(call) == (
        "Do `it`.\n\n**Arguments**\n\n- `one`, `other`: Two\n  lines.\n\n"
        "**Raises**\n\n- `ValueError`: Never.\n"
    )
