"""Each limit at one below, at, and one over it."""

import pytest

from resourcesync.documents.reader import Limits
from resourcesync.errors import DocumentLimitError
from resourcesync.model.entries import Resource
from tests.support.documents.text import document, rows, tell, url


def fails(data: bytes, limits: Limits) -> DocumentLimitError | None:
    try:
        tell(data, limits)
    except DocumentLimitError as error:
        return error
    return None


@pytest.mark.parametrize("room", [-1, 0, 1])
def test_bytes(room: int) -> None:
    data = document(*(url(f"http://a/{n}") for n in range(2000)))
    limits = Limits(bytes=len(data) + room)

    error = fails(data, limits)

    if room < 0:
        assert error is not None
        assert error.evidence == (("limit", f"{len(data) - 1:,} bytes"),)
        assert error.code == "document-limit"
    else:
        assert error is None


@pytest.mark.parametrize("room", [-1, 0, 1])
@pytest.mark.parametrize("count", [5, 3000])
@pytest.mark.parametrize("odd", [url("http://a/x"), "<url/>", url("http://a/x", "<o/>")])
def test_entries_those_refused_included(room: int, count: int, odd: str) -> None:
    data = document(*(url(f"http://a/{n}") for n in range(count - 1)), odd)

    error = fails(data, Limits(entries=count + room))

    if room < 0:
        assert error is not None
        assert error.evidence == (("limit", f"{count - 1:,} entries"),)
        assert (error.line, error.column) == (3 + count, 1)
    else:
        assert error is None


@pytest.mark.parametrize("depth", [15, 16, 17])
@pytest.mark.parametrize(
    "nest",
    [
        lambda levels: "<x>" * levels + "</x>" * levels,
        lambda levels: "<url>" + "<x>" * (levels - 1) + "</x>" * (levels - 1) + "</url>",
        lambda levels: "<url>" * levels + "</url>" * levels,
        lambda levels: "<url><loc>" + "<loc>" * (levels - 2) + "</loc>" * (levels - 1) + "</url>",
        lambda levels: (
            "<url><rs:md>" + "<x>" * (levels - 2) + "</x>" * (levels - 2) + "</rs:md></url>"
        ),
        lambda levels: "<url><x>" + "<url>" * (levels - 2) + "</url>" * (levels - 2) + "</x></url>",
    ],
)
def test_depth(depth: int, nest: object) -> None:
    assert callable(nest)
    data = document(nest(depth - 1))  # the root is the first level

    error = fails(data, Limits())

    if depth > 16:
        assert error is not None
        assert error.evidence == (("limit", "16 levels of elements"),)
        assert error.line == 4
    else:
        assert error is None


def attributes(count: int) -> str:
    return "".join(f' a{n}="1"' for n in range(count))


@pytest.mark.parametrize("count", [63, 64, 65])
@pytest.mark.parametrize(
    "element",
    [
        "<url{}><loc>http://a/1</loc></url>",
        "<url><loc{}>http://a/1</loc></url>",
        "<url><loc>http://a/1</loc><rs:md{}/></url>",
        "<url><loc>http://a/1</loc><rs:ln{}/></url>",
        "<url><loc>http://a/1</loc><x{}/></url>",
        "<url><loc>http://a/1</loc><x><y{}/></x></url>",
        "<rs:ln{}/>",
    ],
)
def test_attributes(count: int, element: str) -> None:
    error = fails(document(element.format(attributes(count))), Limits())

    if count > 64:
        assert error is not None
        assert error.evidence == (("limit", "64 attributes in one element"),)
        assert error.line == 4
        assert error.column >= 1
    else:
        assert error is None


@pytest.mark.parametrize("size", [8191, 8192, 8193])
@pytest.mark.parametrize(
    "element",
    [
        "<url><loc>http://a/1</loc><lastmod>{}</lastmod></url>",
        "<url><loc>http://a/1</loc><changefreq>{}</changefreq></url>",
        "<url><loc>http://a/1</loc><priority>{}</priority></url>",
        "<url><loc>{}</loc></url>",
        '<url><loc>http://a/1</loc><rs:md type="{}"/></url>',
        '<url><loc>http://a/1</loc><rs:ln rel="up" href="{}"/></url>',
        '<url><loc>http://a/1</loc><x y="{}"/></url>',
        '<url a="{}"><loc>http://a/1</loc></url>',
        '<rs:ln rel="up" href="{}"/>',
    ],
)
@pytest.mark.parametrize("letter", ["x", "\u6c34"])
def test_a_long_text_never_costs_the_document(size: int, element: str, letter: str) -> None:
    assert fails(document(element.format(letter * size), url()), Limits()) is None


@pytest.mark.parametrize("size", [8191, 8192, 8193])
@pytest.mark.parametrize("element", ['<x xmlns:y="{}"/>', '<rs:ln xmlns="{}"/>'])
def test_the_name_of_a_namespace(size: int, element: str) -> None:
    error = fails(document(element.format("x" * size)), Limits())

    if size > 8192:
        assert error is not None
        assert error.evidence[0][1].startswith("8,192 characters")
        assert error.line == 4
    else:
        assert error is None


@pytest.mark.parametrize("size", [8191, 8192, 8193])
def test_the_value_of_an_attribute(size: int) -> None:
    (entry,) = tell(document(url("http://a/1", f'<rs:md encoding="{"x" * size}"/>'))).entries

    assert isinstance(entry, Resource)
    assert len(entry.encoding) == (size if size <= 8192 else 0)


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("name", ["lastmod", "changefreq", "loc"])
def test_text_in_the_midst_of_regular_entries(extra: int, name: str) -> None:
    texts = {"loc": "http://a/1", "lastmod": "2013", "changefreq": "daily"}
    plain = "<url>" + "".join(f"<{n}>{t}</{n}>" for n, t in texts.items()) + "</url>"
    odd = plain.replace(f"<{name}>", f"<{name}>{'x' * (8192 + extra - len(texts[name]))}")
    data = document(*[plain] * 3000, odd, *[plain] * 3000)

    told = tell(data)

    is_entry = name != "loc"
    assert len(told.entries) == len(rows(data)) == 6000 + is_entry
    assert [(refusal.code, refusal.line) for refusal in told.refusals] == [
        ("uri-too-long", 3004)
    ] * (not is_entry)
    assert ("value-long" in told.codes) == (is_entry and extra == 1)


@pytest.mark.parametrize("size", [2047, 2048, 2049])
def test_the_uri_of_a_link(size: int) -> None:
    href = "http://a/".ljust(size, "x")
    told = tell(document(f'<rs:ln rel="up" href="{href}"/>'))

    assert len(told.header.links) == (size <= 2048)
