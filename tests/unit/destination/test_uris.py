"""URIs that are refused, and the normal form of those that are not."""

import pytest

from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.escapes import EscapedMapping
from resourcesync.discovery.uris import normalise
from resourcesync.errors import OutOfScopeError
from tests.support.documents.hostile_uris import BASE

POSIX = EscapedMapping(base=BASE, profile=FileSystemProfile.POSIX)

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
            *("a\\b", "a\tb", "a\nb", "a b", "a<b", "a>b", 'a"b', "a{b", "a}b", "a|b", "a^b"),
            "a`b",
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
            *("127.1", "0x7f.1", "2130706433", "017700000001", "1.2.3.04", "1.2.3.4.5"),
            "256.1.1.1",
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


def test_a_refusal_of_letters_beyond_ascii_says_how_to_write_them() -> None:
    with pytest.raises(OutOfScopeError, match=r"%XX.*xn--"):
        normalise("http://b\u00fccher.example/")
