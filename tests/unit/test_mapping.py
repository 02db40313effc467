"""The mapping ``tree/1``: tables of hostile and ordinary URIs."""

import re

import pytest

from resourcesync.destination.mapping import Profile, TreeMapping, normalise, origin
from resourcesync.errors import ConfigurationError, OutOfScopeError
from tests.support.hostile_uris import BASE, assert_safe

POSIX = TreeMapping(base=BASE, profile=Profile.POSIX)
PORTABLE = TreeMapping(base=BASE, profile=Profile.PORTABLE)

REFUSED = [
    *(
        (f"{BASE}d/{piece}", "URL_DOT_SEGMENT")
        for piece in (
            *("../escaped.txt", "%2e%2e/escaped.txt", ".%2e/x", "%2E%2E/x", "..%5cx", "a%5C..%5Cb"),
            *("./x", ".", "..", "..?x", ".#x", "%2e?x"),
        )
    ),
    *(
        (f"{BASE}d/{piece}", "URL_ILLEGAL")
        for piece in (
            *(
                "a\\b",
                "a\tb",
                "a\nb",
                "a b",
                "a<b",
                "a>b",
                'a"b',
                "a{b",
                "a}b",
                "a|b",
                "a^b",
                "a`b",
            ),
            *("a\0b", "a%00b", "a%0ab", "a%0Ab", "a%0d", "?a%0D", "#%00", "a%", "a%4", "a%zz"),
            *("a[b]", "?a[0]", "#a#b", "b\u00fccher", "\u0130", "\u212a", "\udc80"),
        )
    ),
    ("http://a\\@b/", "URL_ILLEGAL"),
    ("http://b\u00fccher.example/", "URL_ILLEGAL"),
    ("http://\u2460\u2461\u2466.0.0.1/", "URL_ILLEGAL"),
    ("http://museum.example:\u0668\u0660/", "URL_ILLEGAL"),
    ("http\u017f://museum.example/", "URL_ILLEGAL"),
    ("file:///etc/passwd", "URL_SCHEME"),
    ("ftp://museum.example/x", "URL_SCHEME"),
    ("data:text/plain,a b", "URL_SCHEME"),
    ('javascript:alert("x")', "URL_SCHEME"),
    ("", "URL_NOT_ABSOLUTE"),
    ("//museum.example/x", "URL_NOT_ABSOLUTE"),
    ("/objects/1", "URL_NOT_ABSOLUTE"),
    ("objects/1", "URL_NOT_ABSOLUTE"),
    ("HTTP:///x", "URL_NOT_ABSOLUTE"),
    ("http:x", "URL_NOT_ABSOLUTE"),
    ("https://", "URL_NOT_ABSOLUTE"),
    ("https://?x", "URL_NOT_ABSOLUTE"),
    ("http://user:pw@h/", "URL_USERINFO"),
    ("http://a@b@c/", "URL_USERINFO"),
    ("http://@c/", "URL_USERINFO"),
    *(
        (f"http://{host}/", "URL_HOST")
        for host in (
            *(
                "127.1",
                "0x7f.1",
                "2130706433",
                "017700000001",
                "1.2.3.04",
                "1.2.3.4.5",
                "256.1.1.1",
            ),
            *("0x7f000001", "a.0x1", "[::1%25eth0]", "[v1.a]", "[]", "[::1", "::1]"),
            *("[::1]x", ".", "a..b", ".a", "a..", ":80", "a%2Fb", "a%40b", "a$b", "a,b", "*.a"),
            *("x" * 64, ".".join(["x" * 50] * 6), "[1.2.3.4]", "%C3%BC.example"),
        )
    ),
    *(
        (f"http://museum.example:{port}/", "URL_PORT")
        for port in ("0", "65536", "080", "", "8a", "-1", "+80", "1:2", "99999999")
    ),
    (BASE + "x" * (2_049 - len(BASE)), "URL_TOO_LONG"),
    (BASE + "%41" * 700, "URL_TOO_LONG"),
    (BASE + "#" + "x" * 2_048, "URL_TOO_LONG"),
    (f"http://{'a.' * 126}bc/", "URL_HOST"),
    ("https://museum.example?" + "x" * (2_048 - len(BASE)), "URL_TOO_LONG"),
]


@pytest.mark.parametrize(("uri", "code"), REFUSED)
def test_a_hostile_uri_is_refused_with_its_reason(uri: str, code: str) -> None:
    with pytest.raises(OutOfScopeError) as raised:
        POSIX.path(uri)

    assert raised.value.code == code
    assert raised.value.uri == uri
    with pytest.raises(OutOfScopeError):
        normalise(uri)


def test_the_longest_uri_is_accepted() -> None:
    longest = BASE + "x" * (2_048 - len(BASE))

    assert normalise(longest) == longest
    assert re.fullmatch(r"!7/([0-9a-f]{2})/\1[0-9a-f]{62}", POSIX.path(longest))


def test_a_refusal_of_letters_beyond_ascii_says_how_to_write_them() -> None:
    with pytest.raises(OutOfScopeError, match=r"%XX.*xn--"):
        normalise("http://b\u00fccher.example/")


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("HTTP://EXAMPLE.org:80/", "http://example.org/"),
        ("https://example.org.:443/a", "https://example.org/a"),
        ("https://example.org", "https://example.org/"),
        ("https://example.org?q", "https://example.org/?q"),
        ("https://example.org#f", "https://example.org/"),
        ("https://ex%61mple.org/%7euser/%41", "https://example.org/~user/A"),
        ("https://example.org/%c3%a9%2f?%c3%41", "https://example.org/%C3%A9%2F?%C3A"),
        ("https://example.org//a//?b=/../c&a", "https://example.org//a//?b=/../c&a"),
        ("https://example.org/a?", "https://example.org/a?"),
        ("https://example.org/a.b/.c?.#.", "https://example.org/a.b/.c?."),
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/"),
        ("https://1.2.3.4:80/", "https://1.2.3.4:80/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        (f"http://{'a.' * 126}b/x", f"http://{'a.' * 126}b/x"),
        ("https://under_score.example-/", "https://under_score.example-/"),
    ],
)
def test_equivalent_spellings_have_one_normal_form(uri: str, normal: str) -> None:
    assert normalise(uri) == normal
    assert normalise(normal) == normal


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("HTTPS://Museum.Example:443/a/b?c", "https://museum.example"),
        ("http://museum.example:8080", "http://museum.example:8080"),
        ("http://[::1]:8080/x", "http://[::1]:8080"),
        ("http://a/x", "http://a"),
    ],
)
def test_an_origin_is_scheme_host_and_port(uri: str, expected: str) -> None:
    assert origin(uri) == expected


PLACES = [
    # below the base, as people expect
    ("https://museum.example/objects/0002.html", "objects/0002.html", "objects/0002.html"),
    ("https://museum.example/", "!9", "!9"),
    ("https://museum.example", "!9", "!9"),
    ("https://museum.example/data", "data!9", "data!9"),
    ("https://museum.example/data/", "data/!9", "data/!9"),
    ("https://museum.example/data/x", "data/x!9", "data/x!9"),
    ("https://museum.example/v1.0/x", "v1.0!8/x!9", "v1.0!8/x!9"),
    ("https://museum.example/v1.0", "v1.0", "v1.0"),
    ("https://museum.example/a//b", "a/!0/b!9", "a/!0/b!9"),
    ("https://museum.example//", "!0/!9", "!0/!9"),
    (
        "https://museum.example/data/v1.0/x.csv?sort=Asc&p=1",
        "data/v1.0!8/x.csv!3fsort=Asc!26p=1",
        "data/v1.0!8/x.csv!3fsort=!asc!26p=1",
    ),
    ("https://museum.example/?", "!3f!9", "!3f!9"),
    ("https://museum.example/a?x", "a!3fx!9", "a!3fx!9"),
    ("https://museum.example/a%3fx", "a%3Fx!9", "a%3Fx!9"),
    ("https://museum.example/a?b/c?d", "a!3fb!2fc!3fd!9", "a!3fb!2fc!3fd!9"),
    ("https://museum.example/.well-known/resourcesync",) + ("!2ewell-known/resourcesync!9",) * 2,
    ("https://museum.example/.git/config", "!2egit/config!9", "!2egit/config!9"),
    ("https://museum.example/.resourcesync/state.db",) + ("!2eresourcesync/state.db",) * 2,
    ("https://museum.example/...", "!2e.!2e", "!2e.!2e"),
    ("https://museum.example/x.", "x!2e!9", "x!2e!9"),
    ("https://museum.example/x./y", "x!2e/y!9", "x!2e/y!9"),
    ("https://museum.example/CON/aux.txt", "!43ON/!61ux.txt", "!c!o!n/!61ux.txt"),
    ("https://museum.example/con", "!63on!9", "!63on!9"),
    ("https://museum.example/com0/nul.tar.gz", "!63om0/!6eul.tar.gz", "!63om0/!6eul.tar.gz"),
    ("https://museum.example/conin$", "!63onin!24!9", "!63onin!24!9"),
    ("https://museum.example/console", "console!9", "console!9"),
    (
        "https://museum.example/a:b::$DATA~",
        "a!3ab!3a!3a!24DATA!7e!9",
        "a!3ab!3a!3a!24!d!a!t!a!7e!9",
    ),
    ("https://museum.example/%2fetc%2Fpasswd", "%2Fetc%2Fpasswd!9", "%2Fetc%2Fpasswd!9"),
    ("https://museum.example/%C3%A9.e%CC%81", "%C3%A9.e%CC%81", "%C3%A9.e%CC%81"),
    ("https://museum.example/A/a", "A/a!9", "!a/a!9"),
    ("https://museum.example/!a!9", "!21a!219!9", "!21a!219!9"),
    # all other URIs
    ("http://museum.example/x.html",) + ("!6/http/museum.example/x.html",) * 2,
    ("https://museum.example:8443/",) + ("!6/https/museum.example,8443/!9",) * 2,
    ("https://nul.example/x",) + ("!6/https/!6eul.example/x!9",) * 2,
    ("https://arxiv.org/pdf/2401.00001v1.pdf",) + ("!6/https/arxiv.org/pdf/2401.00001v1.pdf",) * 2,
    ("http://[::1]:81/a", "!6/http/!5b!3a!3a1!5d,81/a!9", "!6/http/!5b!3a!3a1!5d,81/a!9"),
    ("http://[::1]/a", "!6/http/!5b!3a!3a1!5d/a!9", "!6/http/!5b!3a!3a1!5d/a!9"),
    # not the reserved folder, however it is written
    ("https://museum.example/!6/http/x", "!216/http/x!9", "!216/http/x!9"),
    ("https://museum.example/%216/http/x", "%216/http/x!9", "%216/http/x!9"),
]


@pytest.mark.parametrize(("uri", "posix", "portable"), PLACES)
def test_a_uri_has_its_place_and_a_place_its_uri(uri: str, posix: str, portable: str) -> None:
    assert POSIX.path(uri) == posix
    assert PORTABLE.path(uri) == portable
    assert POSIX.uri(posix) == PORTABLE.uri(portable) == normalise(uri)
    assert_safe(posix)
    assert_safe(portable)


@pytest.mark.parametrize(
    ("segment", "parts"),
    [
        ("x" * 200, ["x" * 200 + "!9"]),
        ("x" * 201, ["x" * 200 + "!1", "x!9"]),
        ("x" * 199 + "!y", ["x" * 199 + "!1", "!21y!9"]),
        ("x" * 198 + "!y", ["x" * 198 + "!1", "!21y!9"]),
        ("x" * 197 + "!y", ["x" * 197 + "!21!1", "y!9"]),
        ("x" * 199 + "%C3", ["x" * 199 + "!1", "%C3!9"]),
        ("x" * 198 + "%C3", ["x" * 198 + "!1", "%C3!9"]),
        ("x" * 200 + "con", ["x" * 200 + "!1", "!63on!9"]),
        ("x" * 200 + ".con.", ["x" * 200 + "!1", "!2econ!2e!9"]),
        ("con." + "x" * 200, ["!63on." + "x" * 196 + "!1", "xxxx"]),
        ("." + "x" * 198 + "." + "y", ["!2e" + "x" * 198 + "!2e!1", "y!9"]),
    ],
)
def test_a_long_name_is_cut_between_characters(segment: str, parts: list[str]) -> None:
    uri = f"{BASE}{segment}"

    path = POSIX.path(uri)

    assert path == "/".join(parts)
    assert_safe(path)
    assert POSIX.uri(path) == uri


def test_a_long_folder_and_a_long_file_of_one_name_do_not_clash() -> None:
    for name in ("x" * 300, "x." + "y" * 300, "y" * 300 + ".x"):
        file, folder = POSIX.path(f"{BASE}{name}"), POSIX.path(f"{BASE}{name}/z")

        assert not folder.startswith(f"{file}/")
        assert POSIX.uri(file) == f"{BASE}{name}"
        assert POSIX.uri(folder) == f"{BASE}{name}/z"


def test_a_capital_is_not_cut_from_its_mark() -> None:
    path = PORTABLE.path(BASE + "x" * 199 + "Ay")

    assert path == "x" * 199 + "!1/!ay!9"
    assert PORTABLE.path(BASE + "x" * 198 + "Ay") == "x" * 198 + "!a!1/y!9"


def test_a_place_that_is_too_long_becomes_a_digest_of_the_normal_uri() -> None:
    below, other = f"{BASE}{'d/' * 500}", f"http://other.example/{'d/' * 500}"

    path, elsewhere = POSIX.path(below), POSIX.path(other)

    assert re.fullmatch(r"!7/([0-9a-f]{2})/\1[0-9a-f]{62}", path)
    assert re.fullmatch(r"!6/http/other\.example/!7/([0-9a-f]{2})/\1[0-9a-f]{62}", elsewhere)
    assert POSIX.path(below.replace("https", "HTTPS")) == path
    assert POSIX.uri(path) is None
    assert POSIX.uri(elsewhere) is None


@pytest.mark.parametrize("length", range(880, 905))
def test_a_place_has_at_most_900_characters_on_every_way_to_it(length: int) -> None:
    folder = "/".join(["d" * 139] * 5) + "/"
    warm = TreeMapping(base=BASE, profile=Profile.POSIX)
    warm.path(f"{BASE}{folder}x.html")
    leaf = "x" * (length - len(folder) - len("!21")) + "!"

    path = warm.path(f"{BASE}{folder}{leaf}")

    assert path == TreeMapping(base=BASE, profile=Profile.POSIX).path(f"{BASE}{folder}{leaf}")
    assert len(path) <= 900
    assert path.startswith("!7/" if length + len("!9") > 900 else "d")


@pytest.mark.parametrize("length", range(690, 905, 5))
def test_a_plain_name_in_a_long_folder_is_no_exception(length: int) -> None:
    folder = "/".join(["d.d" + "d" * (length // 5 - 6)] * 5)
    warm = TreeMapping(base=BASE, profile=Profile.POSIX)
    warm.path(f"{BASE}{folder}/x.html")

    for leaf in ("x" * 190, "x" * 10, "", "!" * 50):
        path = warm.path(f"{BASE}{folder}/{leaf}")

        assert len(path) <= 900
        assert path == TreeMapping(base=BASE, profile=Profile.POSIX).path(f"{BASE}{folder}/{leaf}")


@pytest.mark.parametrize("leaf", ["x" * 180, "x" * 100 + "?" + "y" * 200, "x" * 248])
@pytest.mark.parametrize("letters", [590, 600, 615, 625])
def test_a_uri_is_too_long_even_when_its_folder_is_known(letters: int, leaf: str) -> None:
    folder = "/".join(["%41" * (letters // 5)] * 5)
    warm = TreeMapping(base=BASE, profile=Profile.POSIX)
    warm.path(f"{BASE}{folder}/x.html")
    uri = f"{BASE}{folder}/{leaf}"

    if len(uri) <= 2_048:
        assert warm.uri(warm.path(uri)) == normalise(uri)
    else:
        with pytest.raises(OutOfScopeError) as raised:
            warm.path(uri)
        assert raised.value.code == "URL_TOO_LONG"


def test_the_base_ends_at_a_segment() -> None:
    mapping = TreeMapping(base="http://h/a.b(c/", profile=Profile.POSIX)

    assert mapping.path("http://h/a.b(c/x.txt") == "x.txt"
    assert mapping.path("http://h/a.b(c") == "!6/http/h/a.b!28c"
    assert mapping.path("http://h/a.b(cd/x.txt") == "!6/http/h/a.b!28cd!8/x.txt"
    assert mapping.path("http://h/aXb(c/x.txt") == "!6/http/h/aXb!28c/x.txt"
    assert mapping.uri("!6/http/h/a.b!28c!8/x.txt") is None


@pytest.mark.parametrize(
    "base",
    [
        *("https://museum.example", "https://museum.example/a", "https://Museum.example/"),
        *("https://museum.example/?a/", "https://museum.example/#", "museum.example/", "ftp://h/"),
    ],
)
def test_a_base_that_is_no_normal_folder_is_refused(base: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        TreeMapping(base=base, profile=Profile.POSIX)

    assert raised.value.code == "base"
    assert base in raised.value.message


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "/",
            "a",
            "data",
            "a/../b.txt",
            "./a.txt",
            "/a.txt",
            "a//b.txt",
            ".resourcesync/x.db",
        ),
        *(
            "data!8/x.txt",
            "v1.0/x.txt",
            "x.txt!9",
            "!41.txt",
            "%41.txt",
            "%c3.txt",
            "x!1",
            "x!1/y.z",
        ),
        *(
            "!6",
            "!6/http",
            "!6/http/h",
            "!6/ftp/h/x.txt",
            "!6/http/H/x.txt",
            "!6/https/h,443/x.txt",
        ),
        *(
            "!6/http//x.txt",
            "!6/http/h!1",
            "!7/ab",
            "a!0/x.txt",
            "con.txt",
            "a b.txt",
            "\u00e9.txt",
        ),
        *("x" * 901, "!2e/a.txt", "!2e!2e/a.txt", "a!2fb.txt", "a?b.txt", "a#b.txt", "\0.txt"),
        "!6/https/museum.example/x.txt",
    ],
)
def test_a_path_that_the_mapping_never_makes_has_no_uri(path: str) -> None:
    assert POSIX.uri(path) is None
    assert PORTABLE.uri(path) is None


def test_more_folders_than_are_remembered_change_nothing() -> None:
    mapping = TreeMapping(base=BASE, profile=Profile.POSIX)

    paths = [mapping.path(f"{BASE}{number}/x.html") for number in range(10_000)]

    assert paths == [f"{number}/x.html" for number in range(10_000)]
    assert len(mapping._folders) <= 4_096


def test_mappings_are_equal_when_they_map_alike() -> None:
    used = TreeMapping(base=BASE, profile=Profile.POSIX)
    used.path(f"{BASE}a/b.html")

    assert used == POSIX
    assert hash(used) == hash(POSIX)
    assert used != PORTABLE
    assert "folders" not in repr(used)
