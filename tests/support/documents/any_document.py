"""Documents of every kind, with all that they can say: strategies for property tests."""

import functools
import string
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from resourcesync.model.digests import ALGORITHMS, Digest
from resourcesync.model.entries import (
    CapabilityEntry,
    Change,
    DocumentChange,
    Entry,
    Extra,
    Header,
    Link,
    Package,
    Part,
    Resource,
)
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS, Capability, ChangeKind

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
uris = (
    st.one_of(
        st.text(string.ascii_letters + string.digits + "/?&=;:%~._-'\"<>", min_size=1),
        words.filter(lambda text: text.isprintable()),
    )
    .filter(is_bare)
    .map(lambda text: f"x:{text}")
)
moments = st.datetimes(timezones=st.just(UTC))
lengths = st.integers(0, 2**63 - 1)
names = st.text(string.ascii_letters + "_", min_size=1, max_size=5).filter(
    lambda name: not name.lower().startswith("xml")
)
namespaces = words.filter(lambda text: "}" not in text and text != RS_NS).map(
    lambda text: f"urn:{text}"
)


def _digests_of(name: str) -> st.SearchStrategy[Digest]:
    size = ALGORITHMS[name] // 2
    return st.builds(Digest, st.just(name), st.binary(min_size=size, max_size=size).map(bytes.hex))


# Made once: a strategy that each draw makes anew is half of what a document costs.
KNOWN_DIGESTS = st.one_of([_digests_of(name) for name in sorted(ALGORITHMS)])
ODD_DIGESTS = st.builds(
    Digest, st.sampled_from(["crc32", "x"]), st.text("ABab+/=:&", min_size=1, max_size=9)
)
SOME_DIGESTS = st.lists(
    KNOWN_DIGESTS | ODD_DIGESTS, max_size=4, unique_by=lambda digest: digest.algorithm
).map(tuple)


def digests() -> st.SearchStrategy[tuple[Digest, ...]]:
    return SOME_DIGESTS


FOREIGN_NAMES = st.builds("{{{}}}{}".format, namespaces, names) | st.sampled_from(
    ["{http://www.w3.org/XML/1998/namespace}lang"]
)


@functools.cache
def extras(known: frozenset[str]) -> st.SearchStrategy[Extra]:
    bare = names.filter(lambda name: name not in known)
    found = st.dictionaries(FOREIGN_NAMES | bare, st.text(CHARACTERS, max_size=9), max_size=3)
    return found.map(lambda extra: tuple(extra.items()))


REPRESENTATION = frozenset({"hash", "length", "type", "encoding"})
TIMES = frozenset({"at", "completed", "from", "until"})
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


COMMUNITY = st.builds('<{0} xmlns="urn:{1}" kind="k">a &amp; b<inner/></{0}>'.format, names, names)
FOREIGN = COMMUNITY | st.just(f'<tag xmlns="{RS_NS}">frogs</tag>')
PRIORITY = st.just((f'<priority xmlns="{SITEMAP_NS}">0.5</priority>',)) | st.just(())
foreigns = st.builds(tuple.__add__, PRIORITY, st.lists(FOREIGN, max_size=2).map(tuple))
paths = texts.map(lambda text: f"/{text}x")
NOWHERE = st.just("")


@functools.cache
def resources(known: frozenset[str], path: st.SearchStrategy[str]) -> st.SearchStrategy[Resource]:
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
        path=path,
        extra=extras(known),
        foreign=foreigns,
    )


@st.composite
def changes(draw: st.DrawFn, path: st.SearchStrategy[str] | None = None) -> Change:
    kind = draw(st.sampled_from(ChangeKind))
    known = REPRESENTATION | {"change", "datetime", "path"}
    if path is not None and kind is ChangeKind.DELETED:
        path |= NOWHERE
    resource = draw(resources(known, NOWHERE if path is None else path))
    # Without a datetime the time of a change is its lastmod: that is how 1.0 tells it.
    time = draw(moments | st.just(resource.lastmod))
    return Change(kind=kind, time=time, resource=resource)


@st.composite
def intervals(draw: st.DrawFn, start: str, end: str) -> dict[str, datetime]:
    first, last = sorted([draw(moments), draw(moments)])
    return {start: first, end: last} if draw(st.booleans()) else {start: first}


def times_of(capability: Capability | None) -> st.SearchStrategy[dict[str, datetime]]:
    if capability is not None and capability.is_snapshot:
        return intervals("at", "completed")
    if capability is not None and capability.is_log:
        return intervals("from_", "until")
    return st.just({})


labels = st.tuples(st.sampled_from(Capability), st.just("")).map(
    lambda item: (item[0], item[0].value)
)
any_label = labels | st.tuples(st.none(), st.sampled_from(["", "x-y"]))


@st.composite
def capability_entries(draw: st.DrawFn) -> CapabilityEntry:
    known, label = draw(any_label)
    return CapabilityEntry(
        uri=draw(uris),
        capability=known,
        label=label,
        lastmod=draw(st.none() | moments),
        links=draw(some_links),
        extra=draw(extras(frozenset({"capability"}))),
        foreign=draw(foreigns),
    )


@st.composite
def document_changes(draw: st.DrawFn) -> DocumentChange:
    known, label = draw(any_label)
    lastmod = draw(st.none() | moments)
    return DocumentChange(
        uri=draw(uris),
        kind=draw(st.sampled_from(ChangeKind)),
        capability=known,
        label=label,
        lastmod=lastmod,
        time=draw(moments | st.just(lastmod)),
        links=draw(some_links),
        extra=draw(extras(frozenset({"capability", "change", "datetime", *TIMES}))),
        foreign=draw(foreigns),
        **draw(times_of(known)),
    )


@st.composite
def pointers(draw: st.DrawFn, kind: type[Part] | type[Package], about: Capability | None) -> Entry:
    times: dict[str, Any] = draw(times_of(about) | st.just({}))
    return kind(
        uri=draw(uris),
        lastmod=draw(st.none() | moments),
        length=draw(st.none() | lengths),
        digests=draw(digests()),
        media_type=draw(texts),
        encoding=draw(texts),
        links=draw(some_links),
        extra=draw(extras(REPRESENTATION | {"path", *TIMES})),
        foreign=draw(foreigns),
        **times,
    )


def entries_of(header: Header) -> st.SearchStrategy[Entry]:
    return _entries_of(header.capability, is_index=header.is_index)


@functools.cache
def _entries_of(kind: Capability | None, *, is_index: bool) -> st.SearchStrategy[Entry]:
    if is_index or (kind is not None and kind.is_archive):
        return pointers(Part, kind.archived if kind and kind.is_archive else kind)
    if kind is not None and kind.is_dump:
        return pointers(Package, kind)
    match kind:
        case None | Capability.RESOURCE_LIST:
            return resources(REPRESENTATION | {"path"}, st.just(""))
        case Capability.RESOURCE_DUMP_MANIFEST:
            return resources(REPRESENTATION | {"path"}, paths)
        case Capability.CHANGE_LIST | Capability.CHANGE_NOTIFICATION:
            return changes()
        case Capability.CHANGE_DUMP_MANIFEST:
            return changes(paths)
        case Capability.FRAMEWORK_NOTIFICATION:
            return document_changes()
        case _:
            return capability_entries()


@st.composite
def headers(draw: st.DrawFn) -> Header:
    capability = draw(st.none() | st.sampled_from(Capability))
    has_index = capability is None or not (
        capability.is_manifest or capability.value.endswith("notification")
    )
    return Header(
        capability=capability,
        is_index=draw(st.booleans()) if has_index else False,
        links=draw(some_links),
        extra=draw(extras(frozenset({"capability", "modified", *TIMES}))) if capability else (),
        foreign=draw(st.lists(COMMUNITY, max_size=2).map(tuple)),
        **draw(times_of(capability)),
    )


@st.composite
def documents(draw: st.DrawFn) -> tuple[Header, list[Entry]]:
    header = draw(headers())
    return header, draw(st.lists(entries_of(header), max_size=5))
