"""Documents in blocks of any size, by the fast path or not, tell what another parser tells."""

import io
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.long_lists import small_blocks
from resourcesync.documents.reader import read
from resourcesync.errors import DocumentError
from resourcesync.model.entries import RefusedEntry
from resourcesync.model.timestamps import parse_w3c
from tests.support.documents.text import CHANGE_LIST, RESOURCE_LIST, URI, document

SHA = "sha-256:" + "ab" * 32
W3C = re.compile(  # of W3C Datetime, with times of no zone, and as many digits as there may be
    r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}"
    r"(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,30})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)
ATTRIBUTES = {
    "hash": st.sampled_from(
        [SHA, SHA.upper(), "md5:ab", "", f"{SHA} md5:cd", f"{SHA} sha-256:{'cd' * 32}", " " + SHA]
    ),
    "length": st.sampled_from(["0", "17", " 8 ", "-1", "", "9" * 19, "9" * 18, "9" * 20, "\u0663"]),
    "type": st.sampled_from(["text/html", " a/b ", "", "x&amp;y", "\u6c34"]),
    "encoding": st.sampled_from(["gzip", " br"]),
    "datetime": st.sampled_from(
        ["2013-01-03T09:00:00Z", "2013-01-03T09:00:00.5Z", "soon", "", "2013-01-03 09:00:00"]
    ),
    "change": st.sampled_from(["created", "updated", "deleted", "Create"]),
    "path": st.sampled_from(["/a/b", "a", " /c ", ""]),
    "rs:length": st.sampled_from(["1"]),
    "x:y": st.sampled_from(["z"]),
    "odd": st.sampled_from(["z"]),
}
ELEMENTS = {
    "loc": st.sampled_from(
        [
            "http://a/1",
            " http://a/2\n",
            "",
            "http://a/&amp;",
            "a<!-- c -->b",
            "\u202e",
            "x" * 2049,
            "../up",
        ]
    ),
    "lastmod": st.sampled_from(
        [
            "2013-01-02T13:00:00Z",
            "2013",
            "",
            " 2013-01-02T13:00:00.123456Z ",
            "soon",
            "2013-01-02T13:00:00",
            "2013-01-02T13:00:00+0000",
        ]
    ),
    "changefreq": st.sampled_from(["daily", " ", ""]),
    "priority": st.sampled_from(["0.5", ""]),
    "x:foreign": st.sampled_from(["text", "<url/>"]),
    "rs:size": st.sampled_from(["5", ""]),
    "expires": st.sampled_from(["2013", "soon"]),
}
GOOD = {
    "loc": "http://a/1",
    "lastmod": "2013-01-02T13:00:00Z",
    "hash": SHA,
    "length": "5",
    "type": "a/b",
    "encoding": "gzip",
    "datetime": "2013-01-03T09:00:00Z",
    "path": "/a/1",
}


@st.composite
def kinds_of_entry(draw: st.DrawFn) -> str:
    """Return a format for an entry, with the names of its values in braces."""
    blank = draw(st.sampled_from(["", " ", "\n  ", "text"]))
    elements = draw(st.lists(st.sampled_from(sorted(ELEMENTS)), max_size=3))
    parts = [f"<{name}>{{{name}}}</{name}>" for name in ["loc", *elements]]
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), max_size=4, unique=True))
        if {"length", "rs:length"} <= set(names):
            names.remove("rs:length")
        parts.append("<rs:md" + "".join(f' {name}="{{{name}}}"' for name in names) + "/>")
    if draw(st.integers(0, 9)) == 0:
        parts.append('<rs:ln rel="via" href="http://b/"/>')
    if draw(st.integers(0, 9)) == 0:
        parts.pop(draw(st.integers(0, len(parts) - 1)))
    if draw(st.booleans()):
        parts.reverse()
    return f"<url>{blank}{blank.join(parts)}{blank}</url>{draw(st.sampled_from(['', chr(10)]))}"


@st.composite
def bodies(draw: st.DrawFn) -> str:
    kinds = draw(st.lists(kinds_of_entry(), min_size=1, max_size=4))
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(kinds))
        names = [name for name in (*ELEMENTS, *ATTRIBUTES) if f"{{{name}}}" in kind]
        for _ in range(draw(st.sampled_from([1, 2, 5, 12]))):
            values = dict(GOOD)
            if draw(st.integers(0, 3)) == 0:
                for name in names:
                    values[name] = draw({**ELEMENTS, **ATTRIBUTES}[name])
            entry = kind
            for name in names:
                entry = entry.replace(f"{{{name}}}", values.get(name, "created"))
            parts.append(entry)
    return "".join(parts)


HEADERS = [
    RESOURCE_LIST,
    CHANGE_LIST,
    '<rs:md capability="changelist" modified="2013"/>',
    *(
        f'<rs:md capability="{name}"/>'
        for name in (
            "resourcedump-manifest",
            "changedump-manifest",
            "change-notification",
            "resourcedump",
            "changelist-archive",
            "capabilitylist",
            "framework-notification",
        )
    ),
]
Told = tuple[list[object], list[RefusedEntry], str]


def tell_in_blocks(data: bytes, size: int, *, as_rows: bool, is_fast: bool = True) -> Told:
    """Read with blocks of another size."""
    refusals: list[RefusedEntry] = []
    told: list[object] = []
    failure = ""
    with small_blocks(is_fast=is_fast, size=size):
        try:
            opened = read(io.BytesIO(data), uri=URI, on_refused=refusals.append)
            told.extend(opened.rows() if as_rows else opened.entries())
            codes = sorted(found.code for found in opened.tolerated)
            failure = " ".join([opened.dialect, *codes, str(opened.dropped)])
        except DocumentError as error:
            failure = f"{type(error).__name__} {error.message} {error.line} {error.column}"
    return told, refusals, failure


@settings(max_examples=25, deadline=None)
@given(bodies(), st.sampled_from([*HEADERS, ""]), st.booleans())
def test_the_size_of_the_blocks_changes_nothing(body: str, md: str, as_rows: bool) -> None:
    data = document(body, md=md).replace(b"<urlset ", b'<urlset xmlns:x="urn:x" ')

    slow = tell_in_blocks(data, 16, as_rows=as_rows, is_fast=False)

    for size in (100, 700, 5000):
        assert tell_in_blocks(data, size, as_rows=as_rows) == slow
        assert tell_in_blocks(data, size, as_rows=as_rows, is_fast=False) == slow


@given(
    st.one_of(
        st.text("0123456789-:TZ.W+, ", min_size=8, max_size=28),
        st.from_regex(W3C, fullmatch=True),
        st.from_regex(
            r"[0-9]{4}.[0-9]{2}.[0-9]{2}.[0-9]{2}.[0-9]{2}.[0-9]{2}(.[0-9]{6})?.", fullmatch=True
        ),
        st.from_regex(r".{4}-.{2}-.{2}T.{2}:.{2}:.{2}(\..{6})?Z", fullmatch=True),
    )
)
def test_the_quick_way_of_reading_a_time_takes_only_what_the_grammar_takes(text: str) -> None:
    try:
        moment = parse_w3c(text)
    except ValueError:
        return
    assert W3C.fullmatch(text)
    assert moment.utcoffset() is not None
