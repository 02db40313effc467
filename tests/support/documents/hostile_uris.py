"""URIs made of pieces that have hurt somebody: for laws and for long seeded campaigns."""

import random
import re
from collections.abc import Iterable, Iterator
from typing import Final

from hypothesis import strategies as st

BASE: Final = "https://museum.example/"

STARTS: Final = (
    "https://museum.example",
    "https://museum.example",
    "https://museum.example",
    "HTTPS://Museum.Example:443",
    "https://museum.example.",
    "https://museum%2Eexample",
    "http://museum.example",
    "https://museum.example:8443",
    "https://museum.example.org",
    "https://con",
    "https://nul.example",
    "https://192.0.2.1",
    "https://[2001:DB8::1]:81",
    "https://" + ".".join(["label-of-a-long-host-name"] * 9),
    "https://museum.example@evil.example",
    "https://127.1",
    "ftp://museum.example",
)

SEGMENTS: Final = (
    *("", "", "a", "A", "b", "objects", "data", "v1.0", "x.csv", "X.CSV", "index.html"),
    *(".", "..", "%2e", "%2E%2e", "..%5c", "a%5C..%5Cb", "%2fetc%2fpasswd", "..%2fescaped"),
    *(".git", ".resourcesync", ".htaccess", "web.config", "...", "a.", "a..", ".a.", "a%2E"),
    *(".ReSourceSync.", "RESOUR~1", "%EF%BC%8Eresourcesync"),
    *("CON", "con", "con.txt", "Aux", "NUL.tar.gz", "com1", "COM9.x", "lpt0", "LPT%C2%B9"),
    *("CONIN$", "conout$.x", "CLOCK$", "prn%20", "a:b", "a::$DATA", "GIT~1", "~", "%7e", "%7E"),
    *(
        "%41",
        "a%20b",
        "a+b",
        "%C3%A9",
        "e%CC%81",
        "%e1%ba%9e",
        "%C3%9F",
        "ss",
        "%c4%b0",
        "%E2%84%AA",
    ),
    *(
        "!",
        "!0",
        "!1",
        "!2e",
        "!3f",
        "!6",
        "!7",
        "!8",
        "!9",
        "!a",
        "a!8",
        "a!9",
        "a!1",
        "%21",
        "%3F",
    ),
    *("http", "https", "museum.example", "95", "(a)", "a,b", "a;b=c", "'", "*", "&", "@", "=", "$"),
    *("x" * 199, "x" * 200, "x" * 201, "x" * 300, "A" * 250, "%E2%82%AC" * 60, "." * 210),
    *(
        "x" * 199 + "!",
        "x" * 198 + "A!",
        "x" * 200 + "con",
        "x" * 200 + ".con.",
        "x" * 197 + "%C3%A9y",
    ),
    *(
        "con." + "y" * 250,
        "con%00",
        "a%0Ab",
        "%zz",
        "a b",
        "a\\b",
        "a\tb",
        "b\u00fccher",
        "<",
        "[",
        "]",
    ),
)

QUERIES: Final = (
    *("", "", "", "?", "??", "?a=b", "?A=b", "?a=1&b=2", "?b=2&a=1", "?a=/../x", "?x?y", "?%41"),
    *("?.", "?x.csv", "?" + "q" * 300, "?!8", "?a%2Fb", "?a/b/c.html", "?%3f", "?a[0]=1"),
)

FRAGMENTS: Final = ("", "", "", "#top", "#", "#a/b")


def _assemble(start: str, segments: Iterable[str], query: str, fragment: str) -> str:
    return start + "".join(f"/{segment}" for segment in segments) + query + fragment


def hostile_uris() -> st.SearchStrategy[str]:
    """URIs of hostile pieces, of random legal text, and of both; many of them are refused."""
    legal = st.text(st.sampled_from("abAB01-._~!$&'()*+,;=:@%"), max_size=12)
    segment = st.one_of(
        st.sampled_from(SEGMENTS),
        legal,
        st.lists(st.sampled_from(SEGMENTS), min_size=2, max_size=3).map("".join),
    )
    query = st.one_of(st.sampled_from(QUERIES), legal.map(lambda text: f"?{text}"))
    return st.builds(
        _assemble,
        st.sampled_from(STARTS),
        st.lists(segment, max_size=6),
        query,
        st.sampled_from(FRAGMENTS),
    )


def seeded_uris(seed: int, count: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        segments = [
            "".join(rng.choices(SEGMENTS, k=1 if rng.random() < 0.8 else 2))
            for _ in range(rng.randint(0, 4))
        ]
        yield _assemble(rng.choice(STARTS), segments, rng.choice(QUERIES), rng.choice(FRAGMENTS))


_RESERVED: Final = {
    *("con", "prn", "aux", "nul", "conin$", "conout$", "clock$"),
    *(f"{device}{digit}" for device in ("com", "lpt") for digit in "0123456789"),
}
_PORTABLE_NAME: Final = re.compile(r"[A-Za-z0-9_.=+,@%!-]{1,206}")


def assert_safe(path: str) -> None:
    """Check the grammar of a place: no name that any file system or tool takes for another."""
    assert len(path) <= 900
    for name in path.split("/"):
        assert _PORTABLE_NAME.fullmatch(name), path
        assert not name.startswith("."), path
        assert not name.endswith((".", " ")), path
        assert name.partition(".")[0].lower() not in _RESERVED, path


def ancestors(path: str) -> Iterator[str]:
    for found in re.finditer("/", path):
        yield path[: found.start()]
