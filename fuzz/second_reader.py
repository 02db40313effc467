"""A second reader of documents, on lxml: slow, simple, and written from the specification.

It shares no code with ours, not even for times, digests and numbers. It reads the whole document
as a tree and says what each part means, one rule after the other.
"""

import gzip
import zlib
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

from fuzz.accounts import OVER_STRICT, Account, Fields
from fuzz.second_values import digests, disagree, loose_time, number, sound
from fuzz.second_values import time as strict_time

SM: Final = (
    "http://www.sitemaps.org/schemas/sitemap/0.9",
    "https://www.sitemaps.org/schemas/sitemap/0.9",
    "http://www.google.com/schemas/sitemap/0.84",
    "http://sitemaps.org/schemas/sitemap/0.9",
)
RS: Final = ("http://www.openarchives.org/rs/terms/", "https://www.openarchives.org/rs/terms/")
CAPABILITIES: Final = frozenset(
    {
        "description",
        "capabilitylist",
        "change-notification",
        "framework-notification",
        *(
            f"{side}{kind}"
            for side in ("resource", "change")
            for kind in ("list", "dump", "dump-manifest", "list-archive", "dump-archive")
        ),
    }
)
_WORDS: Final = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "created": "created",
    "updated": "updated",
    "deleted": "deleted",
}
_BYTES: Final = frozenset({"hash", "length", "type", "encoding"})
_INTERVAL: Final = frozenset({"at", "completed", "from", "until"})
_RESOURCE: Final = _BYTES | {"changefreq"}
PLACES: Final = {
    "": _RESOURCE,
    "resourcelist": _RESOURCE,
    "resourcedump-manifest": _RESOURCE | {"path"},
    "changelist": _RESOURCE | {"change", "datetime"},
    "change-notification": _RESOURCE | {"change", "datetime"},
    "changedump-manifest": _RESOURCE | {"path", "change", "datetime"},
    "resourcedump": _BYTES | _INTERVAL,
    "changedump": _BYTES | _INTERVAL,
    "description": frozenset({"capability"}),
    "capabilitylist": frozenset({"capability"}),
    "framework-notification": _INTERVAL | {"capability", "change", "datetime"},
}
"""What an entry of each kind of document has a place for; an index or archive has that of parts."""
PART: Final = _BYTES | _INTERVAL | {"path"}
_OVER_STRICT: Final = frozenset({"WAR_NS_URI", "ERR_UNKNOWN_VERSION"})
_BLANK: Final = " \t\r\n"
_MOST: Final = 8_192
"""Characters of a value that is said."""
_TEXTS: Final = ("loc", "lastmod", "changefreq", "priority")
_INVISIBLE: Final = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    0xFFF9,
    0xFFFA,
    0xFFFB,
)
_ILLEGAL: Final = frozenset(map(chr, _INVISIBLE))


class UnusableError(Exception):
    """The document cannot be used; says with which code."""


def parse(data: bytes) -> Any:
    """Return the root of the tree."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, zlib.error, OSError, EOFError, ValueError) as error:
        # libxml2 refuses a namespace whose name is no URI, and XML 2.0; expat does not care.
        if parser.error_log and {item.type_name for item in parser.error_log} <= _OVER_STRICT:
            raise UnusableError(OVER_STRICT) from error
        raise UnusableError("xml") from error


def theirs(data: bytes) -> Account:
    """Return what the second reader says."""
    account = Account()
    try:
        root = parse(data)
        account.odd_names = any(not name.isascii() for name in _all_names(root))
        _fill(account, root)
    except UnusableError as error:
        account.failure = str(error)
    return account


def _fill(account: Account, root: Any) -> None:
    namespace, name = _names(root)
    if name not in {"urlset", "sitemapindex"}:
        raise UnusableError("not-a-list")
    if namespace not in SM:
        _rename_plain(root, namespace)
    is_index = name == "sitemapindex"
    found, links, entries = _root_children(root)
    header: Fields = {"is_index": is_index}
    kind = _header(header, found)
    if told := _links(links):
        header["links"] = tuple(told)
    account.header = header
    for entry in entries:
        if _mark(entry) in {"url", "sitemap"}:
            _entry(account, entry, kind=kind, wanted="sitemap" if is_index else "url")
        else:
            account.refusals.append(frozenset({"entry-unknown"}))


def _rename_plain(root: Any, namespace: str) -> None:
    """Put a plain sitemap into the namespace that it should have."""
    inside = list(root.iter("*"))
    for element in inside:
        found, name = _names(element)
        if found == namespace and not (found in RS and name in {"md", "ln"}):
            element.tag = f"{{{SM[0]}}}{name}"
    for child in root.iterchildren("*"):
        if _mark(child) in {"url", "sitemap"}:
            break
        if namespace and _mark(child) == "md":
            raise UnusableError("not-a-list")


def _root_children(root: Any) -> tuple[Any, list[Any], list[Any]]:
    found: Any = None
    links: list[Any] = []
    entries: list[Any] = []
    began = False
    for child in root.iterchildren("*"):
        mark = _mark(child)
        if mark in {"url", "sitemap"}:
            began = True
            entries.append(child)
        elif mark == "md":
            if began or found is not None:
                raise UnusableError("xml-metadata")
            found = child
        elif mark == "ln" and not began:
            links.append(child)
        elif mark == "loc" or _is_unknown(child):
            entries.append(child)
    return found, links, entries


def _header(header: Fields, found: Any) -> str:
    if found is None:
        return ""
    values, extra = _attributes(found)
    if "capability" not in values:
        raise UnusableError("xml-metadata")
    kind = values["capability"].strip(_BLANK).lower()
    if kind not in CAPABILITIES:
        raise UnusableError("unexpected-document")
    header["capability"] = kind
    for name in ("at", "completed", "from", "until"):
        if name in values:
            moment = loose_time(values[name].strip(_BLANK))
            if moment is None:
                raise UnusableError("time-invalid")
            header[name] = moment
    if extra:
        header["extra"] = tuple(extra.items())
    return kind


# --- entries -----------------------------------------------------------------------------------


def _entry(account: Account, entry: Any, *, kind: str, wanted: str) -> None:
    faults: set[str] = set()
    fields: Fields = {}
    if _mark(entry) != wanted:
        faults.add("entry-misplaced")
    texts, metadata, links = _children(entry, faults)
    values, extra = _attributes(metadata)
    places = PART if wanted == "sitemap" else PLACES.get(kind, PART)
    values = {name: text for name, text in values.items() if name in places}
    if "changefreq" not in places:
        texts.pop("changefreq", None)
    if "change" in places:
        fields["kind"] = _change(values, faults)
    _uri(fields, texts, faults)
    _times(fields, texts, values)
    if "kind" in fields and fields.get("lastmod") is not None:
        fields.setdefault("time", fields["lastmod"])
    _sizes(fields, values)
    _words(fields, texts, values)
    if found := _links(links):
        fields["links"] = tuple(found)
    if extra:
        fields["extra"] = tuple(extra.items())
    if faults:
        account.refusals.append(frozenset(faults))
    else:
        # What cannot be read is not said.
        account.entries.append({name: item for name, item in fields.items() if item is not None})


def _change(values: dict[str, str], faults: set[str]) -> str | None:
    word = _WORDS.get(values.get("change", "").strip(_BLANK).lower())
    if word is None:
        faults.add("change-unknown")
    return word


def _children(entry: Any, faults: set[str]) -> tuple[dict[str, str], Any, list[Any]]:
    texts: dict[str, str] = {}
    metadata: Any = None
    links: list[Any] = []
    for child in entry.iterchildren("*"):
        mark = _mark(child)
        if mark in _TEXTS:
            has_children = next(child.iterchildren("*"), None) is not None
            if has_children or (mark in texts and mark in {"loc", "lastmod"}):
                faults.add("entry-invalid")
            _keep_text(texts, mark, "".join(child.itertext()), faults)
        elif mark == "md":
            if metadata is not None:
                faults.add("entry-invalid")
            metadata = child if metadata is None else metadata
        elif mark == "ln":
            links.append(child)
        elif mark in {"url", "sitemap"}:
            faults.add("entry-invalid")
    return texts, metadata, links


def _keep_text(texts: dict[str, str], mark: str, text: str, faults: set[str]) -> None:
    """Keep a text; one that is too long is not said, and a ``loc`` spoils its entry."""
    if len(text) <= _MOST:
        texts.setdefault(mark, text)
    elif mark == "loc":
        faults.add("uri-too-long")
        texts.setdefault(mark, "x" * _MOST)


def _uri(fields: Fields, texts: dict[str, str], faults: set[str]) -> None:
    uri = texts.get("loc", "").strip(_BLANK)
    if not uri:
        faults.add("entry-invalid")
    if len(uri) > 2048:  # noqa: PLR2004 - the limit of the Sitemap protocol
        faults.add("uri-too-long")
    if _ILLEGAL.intersection(uri):
        faults.add("uri-illegal")
    fields["uri"] = uri


def _times(fields: Fields, texts: dict[str, str], values: dict[str, str]) -> None:
    told: dict[str, str] = {name: values[name] for name in _ENTRY_TIMES if name in values}
    if texts.get("lastmod", "").strip(_BLANK):
        told["lastmod"] = texts["lastmod"]
    for name, text in told.items():
        fields[name] = loose_time(text.strip(_BLANK))
    if "datetime" in fields:
        fields["time"] = fields.pop("datetime")


_ENTRY_TIMES: Final = ("at", "completed", "from", "until", "datetime")


def _sizes(fields: Fields, values: dict[str, str]) -> None:
    if "length" in values:
        fields["length"] = number(values["length"].strip(_BLANK))
    found = sound(digests(values.get("hash", "")))
    if found and not disagree(found):
        fields["digests"] = found


def _words(fields: Fields, texts: dict[str, str], values: dict[str, str]) -> None:
    told = {
        "media_type": values.get("type", ""),
        "encoding": values.get("encoding", ""),
        "path": values.get("path", ""),
        "label": values.get("capability", ""),
        "changefreq": texts.get("changefreq", ""),
    }
    fields.update({name: text.strip(_BLANK) for name, text in told.items() if text.strip(_BLANK)})


def _links(elements: list[Any]) -> list[tuple[tuple[str, Any], ...]]:
    return [tuple(sorted(link.items())) for link in map(_link, elements) if link is not None]


def _link(element: Any) -> Fields | None:
    values, extra = _attributes(element)
    told = {name: text.strip(_BLANK) for name, text in values.items()}
    href, rel = told.get("href", ""), told.get("rel", "")
    if not href or not rel or len(href) > 2048 or _ILLEGAL.intersection(href):  # noqa: PLR2004
        return None
    found = digests(told.get("hash", ""))
    priority = number(told.get("pri", ""))
    fields: Fields = {
        "rel": rel,
        "href": href,
        "media_type": told.get("type"),
        "length": number(told.get("length", "")),
        "digests": () if disagree(found) else found,
        "encoding": told.get("encoding"),
        "modified": strict_time(told.get("modified", "")),
        "path": told.get("path"),
        "priority": priority if priority is not None and 1 <= priority <= 999_999 else None,  # noqa: PLR2004
        "extra": tuple(extra.items()),
    }
    return {name: value for name, value in fields.items() if value not in (None, "", ())}


# --- names -------------------------------------------------------------------------------------


def _names(element: Any) -> tuple[str, str]:
    return _split(element.tag)


def _split(name: str) -> tuple[str, str]:
    """Part a name into namespace, which may hold any sign, and local name."""
    namespace, _, local = name.rpartition("}")
    return namespace[1:], local


def _all_names(root: Any) -> Iterator[str]:
    for element in root.iter("*"):
        yield _split(element.tag)[1]
        yield from (prefix or "" for prefix in element.nsmap)
        yield from (_split(key)[1] for key in element.attrib)


def _mark(element: Any) -> str:
    """Return the name of an element that matters, or nothing."""
    namespace, name = _names(element)
    if namespace in SM and name in {"url", "sitemap", *_TEXTS}:
        return name
    return name if namespace in RS and name in {"md", "ln"} else ""


def _is_unknown(element: Any) -> bool:
    """Whether an element under the root is nobody else's, and has no place there."""
    namespace, name = _names(element)
    return namespace in ("", *SM) and name not in {"expires", *_TEXTS}


def _attributes(element: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return the attributes by plain name, and those of other communities by their whole name."""
    plain: dict[str, str] = {}
    ours: dict[str, str] = {}
    extra: dict[str, str] = {}
    for key, value in () if element is None else element.attrib.items():
        namespace, local = _split(key)
        if len(value) > _MOST:
            continue
        if not namespace:
            plain[local] = value
        elif namespace in RS:
            ours.setdefault(local, value)
        else:
            extra[key] = value
    return ours | plain, extra
