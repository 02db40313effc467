"""The writer of documents: entries in, bytes out, in the order and form of the specification (§7).

Documents are written in 1.1, or in an older version that the caller names. Writing is exact where
reading is liberal: what would not be a valid document raises `ValueError`, for it is a fault of the
program, not of any input. The same input gives the same bytes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, cast

from msgspec.structs import replace

from resourcesync.documents import _entry_output, dialects
from resourcesync.documents._raw_entries import foreign_text
from resourcesync.documents._values import ROOT_KNOWN
from resourcesync.documents._xml_output import Timed, extra_attributes, link_element, root_times
from resourcesync.model.entries import (
    CapabilityEntry,
    Change,
    DocumentChange,
    Entry,
    Header,
    Link,
    Package,
    Part,
    Resource,
    ResourceRun,
)
from resourcesync.model.vocabulary import (
    NOTIFICATIONS,
    RS_NS,
    SITEMAP_NS,
    Capability,
    ChangeKind,
    Dialect,
    Relation,
)

_KINDS: Final[dict[Capability | None, type[Entry]]] = {
    None: Resource,
    Capability.DESCRIPTION: CapabilityEntry,
    Capability.CAPABILITY_LIST: CapabilityEntry,
    Capability.RESOURCE_LIST: Resource,
    Capability.RESOURCE_DUMP: Package,
    Capability.RESOURCE_DUMP_MANIFEST: Resource,
    Capability.CHANGE_LIST: Change,
    Capability.CHANGE_DUMP: Package,
    Capability.CHANGE_DUMP_MANIFEST: Change,
    Capability.RESOURCE_LIST_ARCHIVE: Part,
    Capability.RESOURCE_DUMP_ARCHIVE: Part,
    Capability.CHANGE_LIST_ARCHIVE: Part,
    Capability.CHANGE_DUMP_ARCHIVE: Part,
    Capability.CHANGE_NOTIFICATION: Change,
    Capability.FRAMEWORK_NOTIFICATION: DocumentChange,
}


def _kind_of(header: Header) -> type[Entry]:
    return Part if header.is_index else _KINDS[header.capability]


def check_header(header: Header, form: dialects.DialectForm) -> None:
    """Check a header against Appendix A and the kinds of documents that there are."""
    kind = header.capability
    if kind is not None and kind.is_snapshot and header.at is None:
        raise ValueError(f"a {header.phrase} needs its at (Appendix A)")
    if kind is not None and kind.is_log and header.from_ is None and form.times != "modified":
        raise ValueError(f"a {header.phrase} needs its from (Appendix A)")
    nests = form.nests_manifests and _is_manifest(kind)
    if header.is_index and not nests and (kind in NOTIFICATIONS or _is_manifest(kind)):
        raise ValueError(f"there is no {header.phrase} (§11.2, §13.2)")
    _check_times(header, kind, header.phrase)


def check_entries(entries: Sequence[Entry], header: Header) -> None:
    """Check entries against their document."""
    kind = _kind_of(header)
    if isinstance(entries, ResourceRun) and kind is Resource:
        if _are_placed(entries.paths, header):
            return
        entries = list(entries)
    for found in set(map(type, entries)):
        if found is not kind:
            raise ValueError(f"a {header.phrase} has no {found.__name__} in it")
    if kind is Resource and _are_usual(cast("Sequence[Resource]", entries), header):
        return
    for entry in entries:
        _check_entry(entry, header)


def _are_usual(resources: Sequence[Resource], header: Header) -> bool:
    if not _are_placed([resource.path for resource in resources], header):
        return False
    return not _is_manifest(header.capability) or not any(
        [resource.links for resource in resources]  # noqa: C419 - faster
    )


def _are_placed(paths: Sequence[str], header: Header) -> bool:
    if not _is_manifest(header.capability):
        return not any(paths)
    return bool(paths) and all([path[:1] == "/" for path in paths])  # noqa: C419 - faster


def _check_entry(entry: Entry, header: Header) -> None:
    match entry:
        case Change():
            is_there = entry.kind is not ChangeKind.DELETED
            _check_place(entry.resource, header, is_there=is_there)
        case Resource():
            _check_place(entry, header, is_there=True)
        case Part() | Package():
            _check_pointer(entry, header)
        case DocumentChange():
            _check_times(entry, entry.capability, header.phrase, is_free=entry.capability is None)
        case CapabilityEntry():
            pass


def _check_pointer(entry: Part | Package, header: Header) -> None:
    kind = header.capability
    if kind is not None and kind.is_archive:
        kind = kind.archived
    _check_times(entry, kind, header.phrase)
    if isinstance(entry, Part) and (bool(entry.path) != _is_manifest(kind)):
        raise ValueError("a path stands in manifests, and there in each entry (§11.2, §13.2)")


def _check_place(resource: Resource, header: Header, *, is_there: bool) -> None:
    if not _is_manifest(header.capability):
        if resource.path:
            raise ValueError(f"a {header.phrase} has no path in it (§7)")
        return
    if is_there and not resource.path:
        raise ValueError(f"an entry of a {header.phrase} needs its path (§11.2, §13.2)")
    if resource.path and not resource.path.startswith("/"):
        raise ValueError(f"the path {resource.path[:64]!r} does not start with a slash (§11.2)")
    for link in resource.links:
        if link.has_relation(Relation.PATCH) and not link.path:
            raise ValueError("a patch in a package needs its path (§14.4)")


def _check_times(
    told: Timed, kind: Capability | None, phrase: str, *, is_free: bool = False
) -> None:
    if (told.at or told.completed) and not (is_free or (kind and kind.is_snapshot)):
        raise ValueError(f"a {phrase} has no at and no completed here (Appendix A)")
    if (told.from_ or told.until) and not (is_free or (kind and kind.is_log)):
        raise ValueError(f"a {phrase} has no from and no until here (Appendix A)")
    for start, end in ((told.at, told.completed), (told.from_, told.until)):
        if start and end and end < start:
            raise ValueError("an interval ends before it starts")


def _is_manifest(kind: Capability | None) -> bool:
    return kind is not None and kind.is_manifest


_CHUNK: Final = 65_536
_BATCH: Final = 256


def write(
    header: Header,
    entries: Iterable[Entry],
    dialect: Dialect = Dialect.V1_1,
    *,
    texts: _entry_output.ColumnTexts = _entry_output.AS_GIVEN,
) -> Iterator[bytes]:
    """Yield a whole document in chunks of about 64 KiB, in memory that does not grow with it.

    The forms of values are not checked, as `documents.checked_writer.write` does: those that
    a publisher writes were on their way in.
    """
    text = opening(header, dialect)
    rendered = _renderer(header, dialect, texts)
    remaining = iter(entries)
    while batch := list(islice(remaining, _BATCH)):
        text += "".join(rendered(batch)).encode()
        if len(text) >= _CHUNK:
            yield text
            text = b""
    yield text + closing(header, dialect)


def render(entry: Entry, header: Header, dialect: Dialect = Dialect.V1_1) -> bytes:
    """Return one entry of a document with this header; entries are concatenated."""
    return body([entry], header, dialect)


def body(entries: Sequence[Entry], header: Header, dialect: Dialect = Dialect.V1_1) -> bytes:
    """Return some entries of a document with this header, one after the other, as `render` does.

    A `ResourceRun` is written in half the time.
    """
    return "".join(_renderer(header, dialect)(entries)).encode()


def rows(entries: Sequence[Entry], header: Header) -> list[bytes]:
    """Return each of these entries of a document in 1.1 with this header, as `render` does."""
    return [row.encode() for row in _renderer(header, Dialect.V1_1)(entries)]


def opening(header: Header, dialect: Dialect = Dialect.V1_1) -> bytes:
    """Return what comes before the entries."""
    form, told = dialects.form_of(dialect), dialects.narrow_header(header, dialect)
    check_header(told, form)
    terms = "" if form.is_plain else f' xmlns:rs="{RS_NS}"'
    root = f'<{_element(told)} xmlns="{SITEMAP_NS}"{terms}>'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', root]
    lines += [link_element(_in_dialect_relations(link, form)) for link in told.links]
    if told.capability is not None:
        attributes = root_times(told, form) + extra_attributes(told.extra, ROOT_KNOWN)
        named = form.description if told.capability is Capability.DESCRIPTION else told.capability
        lines.append(f'<rs:md capability="{named}"{attributes}/>')
    elif told.extra:
        raise ValueError("a plain sitemap has no rs:md, so nothing extra can be on it")
    if told.foreign:
        lines.append(foreign_text(told.foreign))
    return ("\n".join(lines) + "\n").encode()


def closing(header: Header, dialect: Dialect = Dialect.V1_1) -> bytes:
    """Return what comes after the entries."""
    return f"</{_element(dialects.narrow_header(header, dialect))}>\n".encode()


def _element(header: Header) -> str:
    return "sitemapindex" if header.is_index else "urlset"


def _in_dialect_relations(link: Link, form: dialects.DialectForm) -> Link:
    if not form.links_down:
        return link
    words = link.rel.split()
    said = [_LINKS_DOWN.get(word.lower(), word) for word in words]
    return link if said == words else replace(link, rel=" ".join(said))


def _renderer(
    header: Header, dialect: Dialect, texts: _entry_output.ColumnTexts = _entry_output.AS_GIVEN
) -> Callable[[Sequence[Entry]], list[str]]:
    written = _rows_of(dialects.narrow_header(header, dialect), dialects.form_of(dialect), texts)
    is_exact = dialect is Dialect.V1_1

    def checked(batch: Sequence[Entry]) -> list[str]:
        check_entries(batch, header)
        if not is_exact:
            batch = [dialects.narrow_entry(entry, header, dialect) for entry in batch]
        return written(batch)

    return checked


def _rows_of(
    header: Header, form: dialects.DialectForm, texts: _entry_output.ColumnTexts
) -> Callable[[Sequence[Any]], list[str]]:
    kind = _kind_of(header)
    in_package = header.capability is not None and header.capability.is_manifest
    if kind is Resource:
        return partial(_entry_output.resource_rows, in_package=in_package, texts=texts)
    if kind is Change:
        return partial(
            _entry_output.change_rows, in_package=in_package, dated=form.is_dated, texts=texts
        )
    if kind is Part:
        element = "sitemap" if header.is_index else "url"
        row: Callable[[Any], str] = partial(_entry_output.part_row, element=element)
    elif kind is DocumentChange:
        row = partial(_entry_output.document_change_row, dated=form.is_dated)
    else:
        row = _entry_output.package_row if kind is Package else _entry_output.capability_row

    def rows(entries: Sequence[Any]) -> list[str]:
        for entry in entries:
            texts.check_pointer(entry)
        return [row(entry) for entry in entries]

    return rows


_LINKS_DOWN: Final = {"up": "resourcesync", "index": "up"}
