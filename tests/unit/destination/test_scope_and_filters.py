"""Which entries a Source may speak for, and which the operator wants: what globs mean."""

from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.destination.scope_and_filters import FilterVerdict, Scope
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.model.entries import Resource
from resourcesync.model.globs import normal_path, parse_glob
from tests.support.documents.hostile_uris import hostile_uris

HOME = "https://museum.example"
ORIGINS = frozenset({HOME})
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "uri",
    [
        *("http://museum.example/a", "https://museum.example:8443/a", "https://evil.example/a"),
        *("https://museum.example.evil.example/", "https://sub.museum.example/", "https://m/a"),
        "https://museum.exampleevil/",
    ],
)
def test_a_source_does_not_speak_for_another_origin(uri: str) -> None:
    with pytest.raises(OutOfScopeError, match=r"may list https://museum\.example, not") as raised:
        Scope(origins=ORIGINS).judge(Resource(uri=uri))

    assert (raised.value.code, raised.value.uri) == ("foreign", uri)


@given(hostile_uris())
def test_only_the_origins_given_are_ever_selected(uri: str) -> None:
    scope = Scope(origins=ORIGINS)
    try:
        verdict = scope.judge(Resource(uri=uri))
    except OutOfScopeError:
        assert not uri.startswith(f"{HOME}/")
    else:
        assert verdict is FilterVerdict.SELECTED
        host = uri.lower().replace("%2e", ".").replace(":443", "").replace("example.", "example")
        assert host.startswith(HOME)
        assert host[len(HOME) : len(HOME) + 1] in {"", "/", "?", "#"}


@pytest.mark.parametrize(
    ("types", "media_type", "verdict"),
    [
        (("text/html",), "Text/HTML; charset=UTF-8", FilterVerdict.SELECTED),
        ((" TEXT/html ",), "text/html", FilterVerdict.SELECTED),
        (("text/html",), "text/htmlx", FilterVerdict.FILTERED),
        (("text/html", "image/*"), "image/png", FilterVerdict.SELECTED),
        (("image/*",), "image", FilterVerdict.FILTERED),
        (("*/*",), "anything", FilterVerdict.SELECTED),
        (("text/html",), "", FilterVerdict.SELECTED),
        (("text/html",), " ; charset=x", FilterVerdict.SELECTED),
    ],
)
def test_a_media_type_that_is_known_must_fit(
    types: tuple[str, ...], media_type: str, verdict: FilterVerdict
) -> None:
    scope = Scope(origins=ORIGINS, types=types)

    assert scope.judge(Resource(uri=f"{HOME}/a", media_type=media_type)) is verdict


@pytest.mark.parametrize("name", ["", "html", "text/", "/html", "*", "*/html", "text/h*", "a/b/c"])
def test_what_is_no_media_type_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a media type") as raised:
        Scope(origins=ORIGINS, types=("text/html", name))

    assert raised.value.code == "type"


def test_a_deletion_is_judged_by_its_uri_alone() -> None:
    scope = Scope(origins=ORIGINS, include=("/a",), types=("text/html",), max_size=1, since=MOMENT)

    assert scope.judge(Resource(uri=f"{HOME}/a")) is FilterVerdict.SELECTED
    assert scope.judge(Resource(uri=f"{HOME}/b")) is FilterVerdict.FILTERED


@pytest.mark.parametrize(
    "origins",
    [
        *((), ("https://museum.example/",), ("https://Museum.example",), ("museum.example",)),
        *(("https://museum.example:443",), ("https://museum.example/a",), ("ftp://a",), ("",)),
        *(("https://a?b",), (HOME, "https://b@c"), ("https://a#b",)),
    ],
)
def test_what_is_no_origin_is_refused(origins: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Scope(origins=frozenset(origins))

    assert raised.value.code == "origins"


def test_a_negative_size_and_a_time_without_a_zone_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="negative"):
        Scope(origins=ORIGINS, max_size=-1)
    with pytest.raises(ConfigurationError, match="zone"):
        Scope(origins=ORIGINS, since=MOMENT.replace(tzinfo=None))


def fits(glob: str, rest: str) -> bool:
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
