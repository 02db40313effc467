"""The mapping by escapes, which rules use: tables of hostile and ordinary URIs."""

import re

import pytest

from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.escapes import EscapedMapping
from resourcesync.discovery.uris import normalise
from resourcesync.errors import ConfigurationError
from tests.support.documents.hostile_uris import BASE, assert_safe

POSIX = EscapedMapping(base=BASE, profile=FileSystemProfile.POSIX)
PORTABLE = EscapedMapping(base=BASE, profile=FileSystemProfile.PORTABLE)


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
    assert PORTABLE.path(BASE + "x" * 199 + "Ay") == "x" * 199 + "!1/!ay!9"
    assert PORTABLE.path(BASE + "x" * 198 + "Ay") == "x" * 198 + "!a!1/y!9"


def test_a_place_that_is_too_long_becomes_a_digest_of_the_normal_uri() -> None:
    below, other = f"{BASE}{'d/' * 500}", f"http://other.example/{'d/' * 500}"
    longest = BASE + "x" * (2_048 - len(BASE))
    assert normalise(longest) == longest

    path, elsewhere = POSIX.path(below), POSIX.path(other)

    for place in (path, POSIX.path(longest)):
        assert re.fullmatch(r"!7/([0-9a-f]{2})/\1[0-9a-f]{62}", place)
    assert re.fullmatch(r"!6/http/other\.example/!7/([0-9a-f]{2})/\1[0-9a-f]{62}", elsewhere)
    assert POSIX.path(below.replace("https", "HTTPS")) == path
    assert POSIX.uri(path) is None
    assert POSIX.uri(elsewhere) is None


@pytest.mark.parametrize("length", range(880, 905))
def test_a_place_has_at_most_900_characters(length: int) -> None:
    folder = "/".join(["d" * 139] * 5) + "/"
    leaf = "x" * (length - len(folder) - len("!21")) + "!"

    path = POSIX.path(f"{BASE}{folder}{leaf}")

    assert len(path) <= 900
    assert path.startswith("!7/" if length + len("!9") > 900 else "d")


def test_the_base_ends_at_a_segment() -> None:
    mapping = EscapedMapping(base="http://h/a.b(c/", profile=FileSystemProfile.POSIX)

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
        EscapedMapping(base=base, profile=FileSystemProfile.POSIX)

    assert raised.value.code == "base"
    assert base in raised.value.message
