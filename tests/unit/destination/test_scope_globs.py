"""What the globs of ``--include`` and ``--exclude`` mean."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.destination.scope import FilterVerdict, Scope
from resourcesync.errors import ConfigurationError
from resourcesync.model.globs import normal_path, parse_glob
from resourcesync.model.resources import Resource

HOME = "https://museum.example"
ORIGINS = frozenset({HOME})


def fits(glob: str, rest: str) -> bool:
    """Whether a URI with this path and query is selected by one ``--include``."""
    scope = Scope(origins=ORIGINS, include=(glob,))
    return scope.judge(Resource(uri=HOME + rest)) is FilterVerdict.SELECTED


@pytest.mark.parametrize(
    ("glob", "inside", "outside"),
    [
        # a last segment anywhere
        ("*.pdf", ["/a.pdf", "/d/a.pdf", "/.pdf", "/a.pdf?x=1"], ["/a.PDF", "/a.pdf/", "/a.pdfx"]),
        ("index.html", ["/index.html", "/a/b/index.html"], ["/xindex.html", "/index.html/a"]),
        ("*", ["/", "/a", "/a/b", "/a/"], []),
        ("a*b*c", ["/abc", "/axbxc", "/x/abcbc", "/abbcc"], ["/ab/c", "/acb", "/abcd", "/xabc"]),
        ("*a*", ["/a", "/xa", "/ax", "/b/xax"], ["/b", "/a/b"]),
        # anchored
        ("/docs/*.html", ["/docs/a.html", "/docs/.html"], ["/docs/a/b.html", "/x/docs/a.html"]),
        ("/docs", ["/docs", "/docs?x"], ["/docs/", "/docs/a", "/x/docs"]),
        ("/*", ["/", "/a"], ["/a/", "/a/b"]),
        ("/*/x", ["/a/x", "//x"], ["/x", "/a/b/x"]),
        # anywhere, on the boundary of a segment
        ("docs/*.html", ["/docs/a.html", "/x/y/docs/a.html"], ["/xdocs/a.html", "/docs/x/a.html"]),
        ("a/b", ["/a/b", "/a/a/b", "/b/a/b"], ["/a/b/", "/a/bb", "/aa/b", "/a/x/b"]),
        # folders
        ("/private/", ["/private/", "/private/a", "/private/a/b"], ["/private", "/x/private/a"]),
        ("drafts/", ["/drafts/a", "/x/drafts/y/z"], ["/drafts", "/mydrafts/a", "/x/drafts"]),
        ("/", ["/", "/a", "/a/b"], []),
        # across segments
        ("/a/**", ["/a/", "/a/b", "/a/b/c"], ["/a", "/ab/c", "/x/a/b"]),
        ("/a/**/c", ["/a/c", "/a/b/c", "/a/b/b/c"], ["/a/b/cc", "/ac", "/a/c/d"]),
        ("**/c", ["/c", "/a/c", "/a/b/c"], ["/cc", "/c/"]),
        ("**", ["/", "/a", "/a/b/"], []),
        ("/**/a/**/a/*b", ["/a/a/b", "/x/a/y/a/xb", "/a/a/a/b"], ["/a/b", "/a/x/b", "/a/a/b/c"]),
        ("/**/ab/**/c", ["/abx/ab/c", "/ab/abx/c"], ["/abx/c", "/ab/cx"]),
        ("/**/x/y/**/z", ["/x/x/y/z", "/x/y/z/z", "/x/y/a/z"], ["/x/a/y/z", "/x/y"]),
        # queries
        ("*?lang=en", ["/?lang=en", "/a/b?lang=en"], ["/a", "/a?lang=en&x", "/a?lang=e"]),
        ("?*x=1*", ["/a?x=1", "/b/c?y&x=1&z", "/?x=1/2"], ["/x=1", "/a?x=2"]),
        ("/a/**?", ["/a/b?", "/a/?"], ["/a/b", "/a/b?x"]),
        ("/a?b?c/*d", ["/a?b?c/d", "/a?b?c/x/d"], ["/a?b", "/a?b?c/"]),
        ("*.html?**", ["/a.html?", "/a.html?b/c"], ["/a.html"]),
        # what means something in a regular expression means itself
        ("/a.b+(c)$", ["/a.b+(c)$"], ["/axb+(c)$", "/a.bb(c)", "/a.b+c$"]),
        ("a^b|c", ["/a%5Eb%7Cc"], ["/a", "/c"]),
        # any spelling of one URI
        ("/%7euser/%41*", ["/~user/Ab", "/%7Euser/%41b"], ["/~user/ab"]),
        ("/a b/%c3%a9", ["/a%20b/%C3%A9", "/a%20b/%c3%A9"], ["/a+b/%C3%A9"]),
        ("/B\u00fccher/*", ["/B%C3%BCcher/x", "/B%c3%bccher/"], ["/Bucher/x"]),
        ("100%.txt", ["/100%25.txt"], ["/100.txt"]),
    ],
)
def test_a_glob_selects_what_it_says(glob: str, inside: list[str], outside: list[str]) -> None:
    assert [rest for rest in inside if not fits(glob, rest)] == []
    assert [rest for rest in outside if fits(glob, rest)] == []


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
