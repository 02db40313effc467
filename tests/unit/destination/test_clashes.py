"""Who yields in a set of URIs, by examples."""

import random

import pytest

from resourcesync.destination.path_assignment import relocated_uris


def who(*named: tuple[str, str]) -> set[str]:
    """Who yields, of names and URIs; whatever comes twice is said once."""
    return set(relocated_uris(sorted(named)))


@pytest.mark.parametrize(
    ("named", "yields"),
    [
        ([], set()),
        ([("a", "a"), ("b", "b"), ("a-b", "a-b"), ("ab/c", "ab/c")], set()),
        ([("a", "a"), ("a/b", "a/b")], {"a"}),
        ([("a", "a"), ("a-b", "a-b"), ("a.b", "a.b"), ("a/b/c", "a/b/c")], {"a"}),
        ([("a", "a"), ("a/b", "a/b"), ("a/b/c", "a/b/c")], {"a", "a/b"}),
        ([("a+b", "a+b"), ("a+b", "a%2Bb")], {"a+b"}),
        ([("d/index.html", "d/"), ("d/index.html", "d/index.html")], {"d/"}),
        ([("a", "a"), ("a", "A"), ("a/b", "a/b")], {"a", "A"}),
        ([("a", "a"), ("a", "a")], set()),
    ],
)
def test_the_folder_keeps_its_name_and_of_equals_the_first(
    named: list[tuple[str, str]], yields: set[str]
) -> None:
    assert who(*named) == yields
    assert who(*random.Random(1).sample(named, len(named)), *named) == yields
