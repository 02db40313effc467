"""Plain entries take the fast path, past expat; nothing about a document changes by that."""

import io
import pyexpat
import re
import time
from contextlib import suppress
from typing import Any

import pytest

from fuzz.long_lists import AROUND, LAYOUTS, ODD, PLAIN, entries, make, small_blocks, tell_both_ways
from fuzz.randomness import chance
from resourcesync.documents.reader import Limits, read
from resourcesync.errors import DocumentError
from resourcesync.model.entries import Resource
from tests.support.documents.text import CHANGE_LIST, RESOURCE_LIST, URI, document

HASHED = PLAIN[3]
LINKED = PLAIN[9]
ALIAS = b'<urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:x="urn:x" '


def written(*parts: str, md: str = RESOURCE_LIST) -> bytes:
    return document(*parts, md=md).replace(b"<urlset ", ALIAS)


@pytest.mark.parametrize("seed", range(8))
def test_the_fast_path_changes_nothing_of_what_a_list_tells(seed: int) -> None:
    endings = set()
    for number in range(40):
        data = make(chance("fast path", seed, number))
        endings.add(tell_both_ways(data, strict=number % 5 == 0).ending[0])
        endings.add(tell_both_ways(data, as_rows=True).ending[0])

    assert "read" in endings
    assert len(endings) > 2


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("layout", [PLAIN[1], HASHED, PLAIN[5], LINKED])
def test_what_stands_between_regular_entries_or_in_one_means_what_it_always_means(
    odd: str, layout: str
) -> None:
    many = entries(layout, 60)
    for text in ("".join([*many[:50], odd, *many[50:]]), "".join(many) + odd):
        tell_both_ways(written(text))
        tell_both_ways(written(text), as_rows=True)
    few = many[:30]
    for at in range(ODD.index(odd) % 11, len(few[25]), 11):
        few[25] = few[24][:at] + odd + few[24][at:]
        tell_both_ways(written(*few))


@pytest.mark.parametrize("around", AROUND, ids=lambda pair: pair[0])
@pytest.mark.parametrize("layout", [PLAIN[1], HASHED])
def test_what_stands_around_regular_entries_hides_them(
    around: tuple[str, str], layout: str
) -> None:
    many = entries(layout, 60)
    for first, last in ((0, 20), (30, 31), (20, 58)):
        parts = [*many[:first], around[0], *many[first:last], around[1], *many[last:]]
        told = tell_both_ways(written("".join(parts)))

        assert len(told.entries) <= 60 - (last - first) or told.ending[0] != "read"


@pytest.mark.parametrize("element", ["loc", "lastmod", "changefreq", "priority"])
def test_an_element_without_text_means_what_it_always_means(element: str) -> None:
    layout = "<url><loc>{loc}</loc><lastmod>2013</lastmod></url>\n"
    usual = "<url><loc>{loc}</loc><lastmod>2013</lastmod><changefreq>daily</changefreq>"
    many = entries(usual + "<priority>1</priority></url>", 30) + entries(layout, 30)
    many[25] = re.sub(f"<{element}>[^<]+", f"<{element}>", many[25])

    tell_both_ways(written(*many))
    tell_both_ways(written(*many), as_rows=True)


def test_a_list_that_is_cut_anywhere_is_found_to_be_cut_there() -> None:
    data = written(*entries(HASHED, 30))
    for length in range(len(data) - 200, len(data) - 1):
        assert tell_both_ways(data[:length], as_rows=True).ending[0] == "xml-cut-short"


@pytest.mark.parametrize(
    ("limits", "ending"),
    [
        (Limits(entries=90), "document-limit"),
        (Limits(text=30), "document-limit"),
        (Limits(text=80), "read"),
        (Limits(bytes=4_000), "document-limit"),
        (Limits(uri=9), "read"),
    ],
)
def test_limits_hold_for_plain_entries(limits: Limits, ending: str) -> None:
    told = tell_both_ways(written(*entries(HASHED, 100)), limits=limits)

    assert told.ending[0] == ending
    if limits.uri == 9:
        assert {refusal.code for refusal in told.refusals} == {"uri-too-long"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_way_to_write_an_entry_means_what_it_always_means(layout: str) -> None:
    data = written("".join(entries(layout, 60)))

    tell_both_ways(data)
    tell_both_ways(data, as_rows=True)
    tell_both_ways(data, strict=True)


@pytest.mark.parametrize("layout", [PLAIN[i] for i in (1, 2, 3, 5, 11, 13)])
def test_the_place_of_every_entry_is_told_right(layout: str) -> None:
    text = written("".join(entries(layout, 200))).decode()
    with small_blocks():
        rows = list(read(io.BytesIO(text.encode()), uri=URI).rows())

    at = [index for index in range(len(text)) if text.startswith("<url>", index)]
    lines = [text.count("\n", 0, index) + 1 for index in at]
    columns = [index - text.rfind("\n", 0, index) for index in at]
    assert [(row.line, row.column) for row in rows] == list(zip(lines, columns, strict=True))


@pytest.mark.parametrize(
    "entry",
    [
        f"<url>{' ' * 60_000}<loc>http://a/1</loc></url>",
        f'<url><loc>http://a/1</loc><rs:md{" " * 60_000}length="1"/></url>',
        f'<url><loc>http://a/1</loc><rs:md length="1"{" " * 60_000}/></url>',
        f"<url><loc>http://a/1{' ' * 8_000}</loc></url>",
        "<url><loc>http://a/1</loc>" + "<rs:ln/>" * 300 + "</url>",
    ],
    ids=["between", "before", "behind", "text", "links"],
)
def test_an_entry_that_is_made_to_cost_much_costs_little(entry: str) -> None:
    """Each stands where the fast path learns, again and again."""
    data = written(*[f"{entry}\n<url><loc>http://a/{n}</loc></url>" for n in range(40)])
    begin = time.process_time()
    count = sum(1 for _ in read(io.BytesIO(data), uri=URI).rows())

    assert count == 80
    assert time.process_time() - begin < 1


def test_an_element_of_others_that_is_dropped_tells_nothing_of_the_resource() -> None:
    layout = '<url><loc>{loc}</loc><x:md length="{n}"/></url>\n'
    told = tell_both_ways(written("".join(entries(layout, 60))), limits=Limits(foreign=0))

    assert {entry.length for entry in told.entries if isinstance(entry, Resource)} == {None}
    assert len(told.entries) == 60


def test_an_entry_without_end_is_not_kept() -> None:
    data = written("".join(entries(HASHED, 40)), f"<url>{'<!-- c -->' * 2_000}")

    assert max(fed_to_expat(data)) < 2_000


@pytest.mark.parametrize("letter", ["\u00f6", "\u6c34", "\U0001f600"])
def test_letters_beyond_ascii_are_read_wherever_a_block_ends(letter: str) -> None:
    many = entries(HASHED, 60)
    octets = letter.encode()
    for cut in range(len(octets) + 1):
        many[50] = f"<url><loc>http://a/{letter}</loc></url>\n"
        before = -cut - written("".join(many)).index(octets)
        many[50] = f"<url><loc>http://a/{'x' * (before % 1_000)}{letter}</loc></url>\n"
        data = written("".join(many))

        assert data.index(octets) % 1_000 == -cut % 1_000
        assert len(tell_both_ways(data).entries) == 60
        assert tell_both_ways(data.replace(octets, octets[:-1])).ending[0] == "xml"
        assert tell_both_ways(data.replace(octets, octets[:1])).ending[0] == "xml"
        assert tell_both_ways(data + octets[:1]).ending[0] != "read"
        assert tell_both_ways(data[: data.index(octets) + 1]).ending[0] == "xml-cut-short"


def size(data: bytes) -> int:
    return len(data.translate(None, b" \n"))


class Noting:
    """A parser of expat that notes how many bytes it is given each time, without blanks."""

    def __init__(self, real: Any, sizes: list[int]) -> None:
        self.__dict__.update(real=real, sizes=sizes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.real, name, value)

    def Parse(self, block: bytes, is_final: bool) -> object:
        self.sizes.append(size(block))
        return self.real.Parse(block, is_final)


def fed_to_expat(data: bytes) -> list[int]:
    """Return how many bytes expat was given each time, without blanks."""
    sizes: list[int] = []
    make = pyexpat.ParserCreate

    with pytest.MonkeyPatch.context() as patch, small_blocks(), suppress(DocumentError):
        patch.setattr(pyexpat, "ParserCreate", lambda *given: Noting(make(*given), sizes))
        for _ in read(io.BytesIO(data), uri=URI).rows():
            pass
    return sizes


@pytest.mark.parametrize("layout", PLAIN)
def test_expat_sees_little_of_plain_entries(layout: str) -> None:
    md = CHANGE_LIST if "change" in layout else RESOURCE_LIST
    data = written("".join(entries(layout, 2_000)), md=md)

    assert sum(fed_to_expat(data)) < 0.06 * size(data)
