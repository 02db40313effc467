"""What the globs of ``--include`` and ``--exclude`` mean."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.destination.scope_and_filters import FilterVerdict, Scope
from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import Resource
from resourcesync.model.globs import normal_path, parse_glob

HOME = "https://museum.example"
ORIGINS = frozenset({HOME})


def fits(glob: str, rest: str) -> bool:
    """Whether a URI with this path and query is selected by one ``--include``."""
    scope = Scope(origins=ORIGINS, include=(glob,))
    return scope.judge(Resource(uri=HOME + rest)) is FilterVerdict.SELECTED


@pytest.mark.parametrize(
    "glob",
    [
        *("", "x" * 2_049, "[abc].txt", "*.{a,b}", "a\\*", "!*.pdf", "/docs/**.html", "a**b"),
        *("/***/x", "a#b", "/x**?y"),
    ],
)
def test_a_glob_that_cannot_mean_what_was_meant_is_refused(glob: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a valid glob") as raised:
        parse_glob(glob)

    assert raised.value.code == "glob"
    with pytest.raises(ConfigurationError):
        Scope(origins=ORIGINS, include=(glob,))
    with pytest.raises(ConfigurationError):
        Scope(origins=ORIGINS, exclude=(glob,))


def test_an_exclusion_wins_over_an_inclusion() -> None:
    scope = Scope(origins=ORIGINS, include=("/docs/**", "*.pdf"), exclude=("drafts/", "*?draft"))

    selected = [
        rest
        for rest in ("/docs/a", "/x.pdf", "/x", "/docs/drafts/a", "/x.pdf?draft", "/drafts/a.pdf")
        if scope.judge(Resource(uri=HOME + rest)) is FilterVerdict.SELECTED
    ]

    assert selected == ["/docs/a", "/x.pdf"]


@pytest.mark.parametrize(
    ("uri", "fits"),
    [
        (f"{HOME}/a/../b", True),
        (f"{HOME}/a b", True),
        (f"{HOME}/a?b", True),
        (f"{HOME}/\u00e4/b", True),
        (f"{HOME}/old/\u00e4", False),
        ("//other.example/old/x", False),
        ("old/x", False),
        ("", True),
    ],
)
def test_a_uri_that_cannot_be_used_is_compared_as_far_as_it_has_a_path(
    uri: str, *, fits: bool
) -> None:
    assert Scope(origins=ORIGINS, exclude=("/old/**",)).fits(uri) is fits


HEAVY = ["*a" * 500 + "*b", "/**/*a*a" * 100 + "/b", "**/a/" * 300 + "b", "*?" + "*a" * 500 + "*b"]


@pytest.mark.parametrize("glob", HEAVY)
@pytest.mark.parametrize("unit", ["a", "a/", "/", "aa/a/", "*a"])
def test_a_heavy_glob_on_a_long_path_comes_to_an_end(glob: str, unit: str) -> None:
    path = "/" + (unit * 10_000)[:10_000]

    assert not parse_glob(glob).matches(path, None)
    assert not parse_glob(glob).matches(path, "a" * 10_000)


def slowly_fits(glob: str, path: str) -> bool:
    """The meaning of a glob without a query, written down as directly as can be."""
    pattern = tuple(glob[1:].split("/")) if glob.startswith("/") else ("**", *glob.split("/"))
    if pattern[-1] == "":
        pattern = (*pattern[:-1], "**")
    segments = tuple(path[1:].split("/"))

    @cache
    def segment_fits(text: str, segment: str) -> bool:
        if not text:
            return not segment
        if text[0] == "*":
            return segment_fits(text[1:], segment) or (
                bool(segment) and segment_fits(text, segment[1:])
            )
        return bool(segment) and text[0] == segment[0] and segment_fits(text[1:], segment[1:])

    @cache
    def rest_fits(i: int, j: int) -> bool:
        if i == len(pattern):
            return j == len(segments)
        if pattern[i] == "**" and set(pattern[i:]) == {"**"}:
            return j < len(segments)
        if pattern[i] == "**":
            return any(rest_fits(i + 1, k) for k in range(j, len(segments) + 1))
        return (
            j < len(segments) and segment_fits(pattern[i], segments[j]) and rest_fits(i + 1, j + 1)
        )

    return rest_fits(0, 0)


GLOBS = st.builds(
    lambda anchor, parts: anchor + "/".join(parts),
    st.sampled_from(["", "/"]),
    st.lists(
        st.one_of(st.just("**"), st.text("ab*", max_size=5).filter(lambda text: "**" not in text)),
        min_size=1,
        max_size=6,
    ),
).filter(bool)
PATHS = st.lists(st.text("ab", max_size=4), min_size=1, max_size=7).map(
    lambda segments: "/" + "/".join(segments)
)


@settings(max_examples=300)
@given(GLOBS, PATHS)
def test_a_glob_means_what_its_plain_definition_says(glob: str, path: str) -> None:
    assert parse_glob(glob).matches(path, None) == slowly_fits(glob, path)


@given(GLOBS, PATHS)
def test_a_folder_that_a_glob_matches_whole_has_no_file_that_it_does_not(
    glob: str, path: str
) -> None:
    parsed = parse_glob(glob)

    if parsed.matches_all_below(path):
        assert all(parsed.matches(f"{path}/{name}", None) for name in ("", "a", "b/a", "a/b/a"))


@pytest.mark.parametrize(
    ("name", "glob"),
    [("100%.txt", "100%.txt"), ("a?b", "a%3Fb"), ("a b/ü", "ü"), ("x\udcff", "/x%FF")],
)
def test_the_path_of_a_file_matches_as_its_uri_does(name: str, glob: str) -> None:
    assert parse_glob(glob).matches(normal_path(name), None)
