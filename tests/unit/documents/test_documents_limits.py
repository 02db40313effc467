"""Each limit at one below, at, and one over it."""

import pytest

from resourcesync.documents.reader import Limits
from resourcesync.errors import DocumentLimitError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Resource
from tests.support.documents.text import document, rows, tell, uris, url


def limit_of(data: bytes, limits: Limits | None = None) -> tuple[str, int] | None:
    """Return the limit that a document breaks, and its line; ``None`` if it breaks none."""
    try:
        tell(data, limits or Limits())
    except DocumentLimitError as error:
        return error.evidence[0][1], error.line
    return None


@pytest.mark.parametrize("room", [-1, 0, 1])
def test_bytes(room: int) -> None:
    data = document(*(url(f"http://a/{n}") for n in range(2000)))

    found = limit_of(data, Limits(bytes=len(data) + room))

    assert (found and found[0]) == (f"{len(data) - 1:,} bytes" if room < 0 else None)


@pytest.mark.parametrize("room", [-1, 0, 1])
@pytest.mark.parametrize("count", [5, 3000])
@pytest.mark.parametrize("odd", [url("http://a/x"), "<url/>", url("http://a/x", "<o/>")])
def test_entries_those_refused_included(room: int, count: int, odd: str) -> None:
    data = document(*(url(f"http://a/{n}") for n in range(count - 1)), odd)

    expected = (f"{count - 1:,} entries", 3 + count) if room < 0 else None
    assert limit_of(data, Limits(entries=count + room)) == expected


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

    assert limit_of(data) == (("16 levels of elements", 4) if depth > 16 else None)


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
    data = document(element.format("".join(f' a{n}="1"' for n in range(count))))

    assert limit_of(data) == (("64 attributes in one element", 4) if count > 64 else None)


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
    assert limit_of(document(element.format(letter * size), url())) is None


@pytest.mark.parametrize("size", [8191, 8192, 8193])
@pytest.mark.parametrize("element", ['<x xmlns:y="{}"/>', '<rs:ln xmlns="{}"/>'])
def test_the_name_of_a_namespace(size: int, element: str) -> None:
    found = limit_of(document(element.format("x" * size)))

    assert (found is None) == (size <= 8192)
    assert found is None or (found[0].startswith("8,192 characters") and found[1] == 4)


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


def test_the_longest_loc_is_accepted_and_a_longer_one_is_refused() -> None:
    base = "http://a/"
    fits, over = (base + "x" * (size - len(base)) for size in (2048, 2049))

    told = tell(document(url(fits), url(over), url(f" {fits} ")))

    assert uris(told.entries) == [fits, fits]
    assert [(r.code, r.uri) for r in told.refusals] == [("uri-too-long", over[:2048])]


def test_digests_of_unknown_algorithms_are_kept_and_only_sixteen_count() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md hash="sha-256:f4OxZX_x_DFGFDgghg crc32:1 SHA256:AB odd"/>'),
            url("http://a/2", f'<rs:md hash="{" ".join(f"x{i}:{i}" for i in range(500))}"/>'),
        )
    )

    first, second = told.entries
    assert isinstance(first, Resource)
    assert isinstance(second, Resource)
    assert first.digests == (Digest("crc32", "1"),)
    assert len(second.digests) == 16
    assert told.codes == ["hash-invalid"]
