"""A sitemap in any accepted form gives the entries of its canonical form, wherever blocks end."""

import gzip
import io
import string
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents.reader import read as read_document
from resourcesync.errors import DocumentError
from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import format_w3c, parse_loosely, parse_w3c
from tests.support.documents.sitemap_forms import URI, atom, entry, rss, urlset

HOME: Final = "https://site.example/"
Page = tuple[str, datetime]
"""An address and a time in whole seconds."""

NAMES = st.text(string.ascii_letters + "äß日-_.~&'()*+,;=:@/?%", max_size=20)
MOMENTS = st.integers(0, 2**31 - 1).map(
    lambda s: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(0, s)
)
PAGES = st.lists(st.tuples(NAMES.map(HOME.__add__), MOMENTS), max_size=40)
BEFORE = st.lists(
    st.sampled_from([" ", "\t", "\n", "\r\n", "\ufeff", "<!-- - a -->", "<!---->"]), max_size=9
).map("".join)


def zoned(moment: datetime) -> str:
    return format_datetime(moment.astimezone(UTC))


def xml(pages: list[Page], spell: Callable[[datetime], str] = format_w3c, **more: str) -> bytes:
    return urlset(*(entry(escape(uri), spell(moment)) for uri, moment in pages), **more)


def rss_feed(pages: list[Page]) -> bytes:
    return rss(
        *(f"<link>{escape(uri)}</link><pubDate>{zoned(moment)}</pubDate>" for uri, moment in pages)
    )


def atom_feed(pages: list[Page]) -> bytes:
    return atom(
        *(
            f"<link href={quoteattr(uri)}/><updated>{format_w3c(moment)}</updated>"
            for uri, moment in pages
        )
    )


FORMS: Final[dict[str, Callable[[list[Page]], bytes]]] = {
    "gzip": lambda pages: gzip.compress(xml(pages)),
    "no namespace": lambda pages: xml(pages, attributes=""),
    "a wrong namespace": lambda pages: xml(pages, attributes=' xmlns="urn:x"'),
    "no declaration": lambda pages: xml(pages, declaration=""),
    "mail": lambda pages: xml(pages, zoned),
    "a database": lambda pages: xml(pages, lambda moment: f"{moment:%Y-%m-%d %H:%M:%S}+00"),
    "slashes": lambda pages: xml(pages, lambda moment: f"{moment:%Y/%m/%d %H:%M:%S} UTC"),
    "no zone": lambda pages: xml(pages, lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S}"),
    "blanks": lambda pages: xml(pages, lambda moment: f"\n {format_w3c(moment)} \t"),
    "relative": lambda pages: xml([(uri.removeprefix("https:"), moment) for uri, moment in pages]),
    "RSS": rss_feed,
    "Atom": atom_feed,
}


class Parts(io.BytesIO):
    """A stream that yields few bytes at a time."""

    size = 1

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(self.size, size or self.size))


def read(data: bytes, size: int = 1 << 16) -> list[tuple[str, datetime | None]]:
    stream = Parts(data)
    stream.size = size
    document = read_document(stream, uri=URI)
    found = [entry for entry in document.entries() if isinstance(entry, Resource)]
    assert document.refused == 0
    return [(resource.uri, resource.lastmod) for resource in found]


@given(PAGES, st.sampled_from(sorted(FORMS)), st.integers(1, 5_000))
def test_a_form_gives_the_entries_of_the_canonical_form(
    pages: list[Page], form: str, size: int
) -> None:
    assert read(FORMS[form](pages), size) == read(xml(pages)) == pages


@given(PAGES, BEFORE, st.integers(1, 5_000))
def test_what_precedes_the_declaration_changes_nothing(
    pages: list[Page], before: str, size: int
) -> None:
    assert read(before.encode() + xml(pages), size) == pages


@given(
    st.lists(NAMES.map(HOME.__add__), min_size=1, max_size=40),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n", " \n\t"]),
    st.integers(1, 5_000),
    st.booleans(),
)
def test_a_text_gives_the_addresses_of_its_lines(
    uris: list[str], end: str, size: int, is_packed: bool
) -> None:
    data = "".join(f"{uri}{end}" for uri in uris).encode()

    assert read(gzip.compress(data) if is_packed else data, size) == [(uri, None) for uri in uris]


@given(st.binary(max_size=200), st.sampled_from([b"", b"https://h/\n", b"<rss><channel><item>"]))
def test_no_bytes_make_the_reader_fail_in_another_way(data: bytes, start: bytes) -> None:
    with suppress(DocumentError):
        for found in read_document(io.BytesIO(start + data), uri=URI).entries():
            assert found.uri


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_a_time_of_mail_is_the_time_that_the_standard_library_writes(
    moment: datetime, minutes: int
) -> None:
    local = moment.astimezone(timezone(timedelta(minutes=minutes)))

    assert parse_loosely(format_datetime(local)) == moment == parse_w3c(format_w3c(moment))
    leap = format_w3c(moment.replace(second=59, microsecond=7)).replace(":59.", ":60.")
    assert parse_loosely(leap) == moment.replace(second=59, microsecond=7)
