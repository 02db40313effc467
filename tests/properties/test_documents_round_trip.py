"""What is written is read again as it was, whatever it was."""

import io
import string
from datetime import UTC, datetime
from pyexpat import ParserCreate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.documents.reading import Limits, read
from resourcesync.documents.writing import write
from resourcesync.errors import DocumentError, TruncatedDocumentError
from resourcesync.model.capabilities import CapabilityEntry, Entry, Header, Part
from resourcesync.model.digests import ALGORITHMS, Digest
from resourcesync.model.links import Extra, Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import RS_NS, Capability, ChangeKind
from tests.support.documents import URI, tell

BLANKS = " \t\r\n"
CHARACTERS = st.characters(
    exclude_categories=["Cs"],
    exclude_characters=[chr(code) for code in range(32) if chr(code) not in "\t\n\r"]
    + ["\ufffe", "\uffff"],
)


def is_bare(text: str) -> bool:
    return text == text.strip(BLANKS)


texts = st.text(CHARACTERS, max_size=20).filter(is_bare)
words = st.text(CHARACTERS, min_size=1, max_size=20).filter(is_bare)
uris = st.one_of(
    st.text(string.ascii_letters + string.digits + "/?&=;:%~._-'\"<>", min_size=1),
    words.filter(lambda text: text.isprintable()),
).filter(is_bare)
moments = st.datetimes(timezones=st.just(UTC))
lengths = st.integers(0, 10**19 - 1)
names = st.text(string.ascii_letters + "_", min_size=1, max_size=5).filter(
    lambda name: not name.lower().startswith("xml")
)
namespaces = words.filter(lambda text: "}" not in text and text != RS_NS).map(
    lambda text: f"urn:{text}"
)


@st.composite
def digests(draw: st.DrawFn) -> tuple[Digest, ...]:
    known = st.sampled_from(sorted(ALGORITHMS)).flatmap(
        lambda name: st.builds(
            Digest,
            st.just(name),
            st.text("0123456789abcdef", min_size=ALGORITHMS[name], max_size=ALGORITHMS[name]),
        )
    )
    odd = st.builds(Digest, st.sampled_from(["crc32", "x"]), st.text("ABab+/=:&", max_size=9))
    found = draw(st.lists(known | odd, max_size=4, unique_by=lambda digest: digest.algorithm))
    return tuple(found)


@st.composite
def extras(draw: st.DrawFn, known: frozenset[str]) -> Extra:
    foreign = st.builds("{{{}}}{}".format, namespaces, names)
    xml = st.sampled_from(["{http://www.w3.org/XML/1998/namespace}lang"])
    bare = names.filter(lambda name: name not in known)
    found = draw(st.dictionaries(foreign | xml | bare, st.text(CHARACTERS, max_size=9), max_size=3))
    return tuple(found.items())


REPRESENTATION = frozenset({"hash", "length", "type", "encoding"})
links = st.builds(
    Link,
    rel=words,
    href=uris,
    media_type=texts,
    length=st.none() | lengths,
    digests=digests(),
    encoding=texts,
    modified=st.none() | moments,
    path=texts,
    priority=st.none() | st.integers(1, 999_999),
    extra=extras(REPRESENTATION | {"rel", "href", "modified", "path", "pri"}),
)
some_links = st.lists(links, max_size=2).map(tuple)


def resources(known: frozenset[str]) -> st.SearchStrategy[Resource]:
    return st.builds(
        Resource,
        uri=uris,
        lastmod=st.none() | moments,
        length=st.none() | lengths,
        digests=digests(),
        media_type=texts,
        encoding=texts,
        changefreq=texts,
        links=some_links,
        extra=extras(known),
    )


@st.composite
def changes(draw: st.DrawFn) -> Change:
    resource = draw(resources(REPRESENTATION | {"change", "datetime"}))
    # Without a datetime the time of a change is its lastmod: that is how 1.0 tells it.
    time = draw(moments | st.just(resource.lastmod))
    return Change(kind=draw(st.sampled_from(ChangeKind)), time=time, resource=resource)


@st.composite
def intervals(draw: st.DrawFn, start: str, end: str) -> dict[str, datetime]:
    first, last = sorted([draw(moments), draw(moments)])
    return {start: first, end: last} if draw(st.booleans()) else {start: first}


@st.composite
def capability_entries(draw: st.DrawFn) -> CapabilityEntry:
    known = draw(st.none() | st.sampled_from(Capability))
    label = known.value if known else draw(st.sampled_from(["", "resourcedump", "x-y"]))
    return CapabilityEntry(
        uri=draw(uris),
        capability=known,
        label=label,
        lastmod=draw(st.none() | moments),
        links=draw(some_links),
    )


@st.composite
def documents(draw: st.DrawFn) -> tuple[Header, list[Entry]]:
    capability = draw(st.none() | st.sampled_from(Capability))
    times: dict[str, Any] = {}
    part = st.builds(Part, uri=uris, lastmod=st.none() | moments)
    if capability is Capability.RESOURCE_LIST:
        times = draw(intervals("at", "completed"))
        part = st.builds(
            lambda told, uri: Part(uri=uri, **told), intervals("at", "completed"), uris
        )
    elif capability is Capability.CHANGE_LIST:
        times = draw(intervals("from_", "until"))
        part = st.builds(lambda told, uri: Part(uri=uri, **told), intervals("from_", "until"), uris)
    root = frozenset({"capability", "at", "completed", "from", "until"})
    header = Header(
        capability=capability,
        is_index=draw(st.booleans()),
        links=draw(some_links),
        extra=draw(extras(root)) if capability else (),
        **times,
    )
    kind: st.SearchStrategy[Entry]
    if header.is_index:
        kind = part
    elif capability in {None, Capability.RESOURCE_LIST}:
        kind = resources(REPRESENTATION)
    elif capability is Capability.CHANGE_LIST:
        kind = changes()
    else:
        kind = capability_entries()
    return header, draw(st.lists(kind, max_size=6))


@given(documents())
def test_reading_what_was_written_gives_it_back(told: tuple[Header, list[Entry]]) -> None:
    header, entries = told

    data = b"".join(write(header, entries))

    again = tell(data)
    assert again.refusals == []
    assert again.header == header
    assert again.entries == entries


@given(documents())
def test_the_same_input_gives_the_same_bytes_and_they_are_xml(
    told: tuple[Header, list[Entry]],
) -> None:
    data = b"".join(write(*told))

    assert data == b"".join(write(*told))
    parser = ParserCreate(namespace_separator="\x1f")  # expat refuses one that a URI could hold
    parser.Parse(data, True)


@settings(max_examples=40, deadline=None)
@given(documents(), st.sampled_from([1, 2, 130, 300]))
def test_entries_repeated_many_times_come_back_as_often(
    told: tuple[Header, list[Entry]], times: int
) -> None:
    header, entries = told
    repeated = entries[:2] * times

    data = b"".join(write(header, repeated))

    assert tell(data).entries == repeated


@given(documents(), st.data())
def test_a_written_document_cut_anywhere_is_an_error(
    told: tuple[Header, list[Entry]], data: st.DataObject
) -> None:
    whole = b"".join(write(*told)).rstrip()
    size = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(TruncatedDocumentError):
        tell(whole[:size])


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_with_our_own_error(data: bytes) -> None:
    head = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>'
    for document in (data, head + data, b"\x1f\x8b" + data, b"\xff\xfe" + data):
        faults: list[DocumentError] = []
        try:
            list(read(io.BytesIO(document), uri=URI, limits=Limits(bytes=10_000)).entries())
        except DocumentError as error:
            faults.append(error)
        assert all(fault.uri == URI and fault.message for fault in faults)
