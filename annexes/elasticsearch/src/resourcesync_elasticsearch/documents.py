"""The seed's documents of resources and changes, and the two indices that hold them.

They are ``INDEX-resource`` and ``INDEX-change``. The seed's own layout, two types in one index, was
possible only with servers from before 2019.
"""

import json
import logging
import posixpath
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from resourcesync.errors import ConfigurationError, SourceNotFoundError
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.entries import Link, Resource
from resourcesync.model.timestamps import from_microseconds, parse_w3c
from resourcesync_elasticsearch.client import SearchServer, segment
from resourcesync_elasticsearch.settings import IndexSettings

IndexDocument = Mapping[str, Any]

_ZONE: Final = re.compile(r"([+-]\d\d)(\d\d)")
_BARE_MD5: Final = re.compile(r"[0-9A-Fa-f]{32}")
_MOST_MILLIS: Final = 253_402_300_799_999
_MOST_LENGTH: Final = (1 << 63) - 1
_MOST_LINKS: Final = 10_000

_log = logging.getLogger(__name__)


class Locations:
    """The mapping of locations of the three types to URIs, and back."""

    def __init__(self, settings: IndexSettings) -> None:
        self._prefix = settings.url_prefix
        self._root = settings.resource_root_dir

    def uri(self, location: object) -> str:
        """Return the URI of a location; an invalid URI where there is none."""
        found = _first(location)
        if not isinstance(found, Mapping):
            return str(found or "")
        kind, value = _text(found.get("type")), _text(found.get("value"))
        if kind == "rel_path":
            return self._joined(value.replace("\\", "/"))
        if kind == "abs_path":
            return self._below(value.replace("\\", "/"))
        return value if kind in {"url", ""} else f"{kind} {value}"

    def spellings(self, uri: str) -> list[str]:
        """Return the values of all locations that may stand for a URI."""
        found = [uri]
        if self._prefix and uri.startswith(self._prefix):
            path = unquote(uri.removeprefix(self._prefix))
            found += [path, f"/{path}"]
            if self._root:
                whole = f"{self._root.rstrip('/')}/{path}"
                found += [whole, whole.replace("/", "\\")]
            if "/" in path:
                found.append(path.replace("/", "\\"))
        return found

    def _joined(self, path: str) -> str:
        if not self._prefix:
            raise ConfigurationError(
                "there are relative locations; it is not known what they are relative to",
                hint="say it by the option url_prefix: --with url_prefix=https://HOST/",
            )
        return self._prefix + quote(path.lstrip("/"))

    def _below(self, path: str) -> str:
        if not self._root:
            raise ConfigurationError(
                f"there are locations by absolute path, such as {path[:200]}",
                hint="say what they are relative to by the option resource_root_dir: "
                "--with resource_root_dir=DIR",
            )
        whole, root = posixpath.normpath(path), self._root.rstrip("/")
        if not whole.startswith(f"{root}/"):
            return path
        return self._joined(whole[len(root) + 1 :])


class ResourceDecoder:
    """A decoder of documents to resources; it counts invalid values.

    An invalid value is left out, not its resource: a copy must not be deleted because of a bad
    date. A document without a valid location is returned as it is, to be left out by name.
    """

    def __init__(self, locations: Locations) -> None:
        self._locations = locations
        self._odd = 0

    def resource(self, name: str, document: IndexDocument) -> Resource:
        """Return the resource of a document."""
        uri = self._locations.uri(document.get("location"))
        return Resource(
            uri=uri or f"{name} (a document without a location)",
            lastmod=self._moment(document.get("lastmod")),
            length=self._length(document.get("length")),
            digests=self._digests(document.get("md5")),
            media_type=_text(_first(document.get("mime"))).strip(),
            links=self._links(document.get("ln")),
        )

    def finish(self) -> None:
        """Log the number of values that were left out."""
        if self._odd:
            _log.warning("%d invalid values of the index were left out", self._odd)

    def _moment(self, value: object) -> datetime | None:
        found = _first(value)
        if found is None or found == "":
            return None
        moment = parse_date(found)
        self._odd += moment is None
        return moment

    def _length(self, value: object) -> int | None:
        found = _first(value)
        if isinstance(found, str) and found.isascii() and found.isdecimal():
            found = int(found[:20])
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if type(found) is int and 0 <= found <= _MOST_LENGTH:
            return found
        self._odd += found is not None and found != ""
        return None

    def _digests(self, value: object) -> tuple[Digest, ...]:
        if value is None or value == "":
            return ()
        if isinstance(value, str) and _BARE_MD5.fullmatch(value):
            return (Digest("md5", value.lower()),)
        found = []
        for item in value if isinstance(value, list) else [value]:
            for digest in map(_prefixed, _text(item).split()):
                found += [digest for digest in parse_digests(digest) if digest.is_usable]
        self._odd += not found
        return tuple(dict.fromkeys(found))

    def _links(self, value: object) -> tuple[Link, ...]:
        if value is None:
            return ()
        found = []
        for item in (value if isinstance(value, list) else [value])[:_MOST_LINKS]:
            link = item if isinstance(item, Mapping) else {}
            rel, href = _text(_first(link.get("rel"))), self._locations.uri(link.get("href"))
            if rel and href:
                media_type = _text(_first(link.get("mime")) or _first(link.get("type")))
                found.append(Link(rel=rel, href=href, media_type=media_type))
            else:
                self._odd += 1
        return tuple(found)


def parse_date(value: object) -> datetime | None:
    """Return the time of a document's date; ``None`` for none.

    The seed's own form has an offset without a colon; a date without an offset is UTC.
    """
    try:
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            return from_microseconds(int(value * 1000)) if 0 <= value <= _MOST_MILLIS else None
        text = _text(value).strip()
        if text.isascii() and text.isdecimal() and len(text) > len("20130101"):
            return parse_date(int(text[:20]))
        return parse_w3c(_ZONE.sub(r"\1:\2", text) if "T" in text and _is_compact(text) else text)
    except (ValueError, OverflowError):
        return None


def _prefixed(digest: str) -> str:
    return f"md5:{digest}" if _BARE_MD5.fullmatch(digest) else digest


def _is_compact(text: str) -> bool:
    return text[-5:-4] in {"+", "-"} and text[-4:].isdecimal()


def _first(value: object) -> Any:
    """Return a value, or the first of several: any field of a document may have several."""
    while isinstance(value, list):
        value = value[0] if value else None
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


Query = dict[str, Any]

TIMES: Final = ("timestamp", "datetime")
"""Fields that date a change: the time of writing, else of the change."""
_EXACT: Final = frozenset({"keyword", "constant_keyword", "wildcard"})
_DATES: Final = frozenset({"date", "date_nanos"})
_LONGEST_VALUE: Final = 8191
_DATE: Final[Query] = {
    "type": "date",
    "format": "strict_date_optional_time||yyyy-MM-dd'T'HH:mm:ssZ||epoch_millis",
}
_KEYWORD: Final[Query] = {"type": "keyword"}
_LOCATION: Final[Query] = {"type": "nested", "properties": {"value": _KEYWORD, "type": _KEYWORD}}
_COMMON: Final[Query] = {
    "resource_set": _KEYWORD,
    "location": _LOCATION,
    "lastmod": _DATE,
    "timestamp": _DATE,
}
RESOURCE_FIELDS: Final[Query] = {
    **_COMMON,
    "length": {"type": "long"},
    "md5": _KEYWORD,
    "mime": _KEYWORD,
    "ln": {"type": "nested", "properties": {"href": _LOCATION, "rel": _KEYWORD, "mime": _KEYWORD}},
}
"""The seed's mapping of resources, in current types; its ``integer`` ends at 2 GiB."""
CHANGE_FIELDS: Final[Query] = {**_COMMON, "change": _KEYWORD, "datetime": _DATE}


def setup_text(values: Mapping[str, str]) -> str:
    """Return the requests that create the two indices of an account, called ``INDEX-…``."""
    if values:
        raise ConfigurationError("indices of resources and changes have no options")
    kinds = (("resource", RESOURCE_FIELDS), ("change", CHANGE_FIELDS))
    return "\n".join(
        f"PUT /INDEX-{kind}\n{json.dumps({'mappings': {'properties': fields}}, indent=2)}\n"
        for kind, fields in kinds
    )


class DocumentLocation(msgspec.Struct, frozen=True, kw_only=True):
    """The location of documents of one kind.

    Attributes:
        index: The index.
        filters: Conditions that select them.
        identity: A text that differs after the index was recreated, or if it is read otherwise.
        is_nested: Locations are nested documents.
        times: Those of `TIMES` that are dates in this index.
    """

    index: str
    filters: tuple[Query, ...]
    identity: str
    is_nested: bool
    times: tuple[str, ...]

    def location_condition(self, values: list[str]) -> Query:
        """Return the condition that a location has one of some values."""
        found: Query = {"terms": {"location.value": values}}
        return {"nested": {"path": "location", "query": found}} if self.is_nested else found

    def query(self, *more: Query) -> Query:
        """Return the query for these documents, with more conditions."""
        return {"bool": {"filter": [*self.filters, *more]}}


class IndexLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The locations of resources, and of their changes if these are logged."""

    resources: DocumentLocation
    changes: DocumentLocation | None


def find_layout(server: SearchServer, settings: IndexSettings) -> IndexLayout:
    """Return the locations of the documents."""
    resources = _find_location(server, settings, f"{settings.index}-resource")
    if resources is None:
        raise SourceNotFoundError(
            f"{server.address} has no index {settings.index}-resource",
            uri=server.address,
            hint="check the name; what makes one is: resourcesync config elasticsearch",
            code="no-index",
        )
    changes = _find_location(server, settings, f"{settings.index}-change")
    if changes is not None and not changes.times:
        raise _bad_mapping(changes.index, "neither timestamp nor datetime is a date")
    return IndexLayout(resources=resources, changes=changes)


def _mapping(server: SearchServer, index: str) -> Mapping[str, Any] | None:
    """Return the mappings of an index or an alias; ``None`` if it does not exist."""
    try:
        found = server.request("GET", f"/{segment(index)}/_mapping")
    except SourceNotFoundError:
        return None
    return found if isinstance(found, dict) and found else None


def _find_location(
    server: SearchServer, settings: IndexSettings, index: str
) -> DocumentLocation | None:
    mapping = _mapping(server, index)
    if mapping is None:
        return None
    all_fields = [_fields(index, item) for item in mapping.values()]
    nested, times = set(), set(TIMES)
    for fields in all_fields:
        location = _get(fields, "location")
        _check_exact(index, _get(location, "properties"), "value", "location.value")
        nested.add(location.get("type") == "nested")
        times &= {name for name in TIMES if _get(fields, name).get("type") in _DATES}
        if settings.resource_set:
            _check_exact(index, fields, "resource_set", "resource_set")
    if len(nested) != 1:
        raise _bad_mapping(index, "locations are nested in one index and not in another")
    return DocumentLocation(
        index=index,
        filters=({"term": {"resource_set": chosen}},) if (chosen := settings.resource_set) else (),
        identity=f"{_identity(server, index)} {settings.fingerprint}",
        is_nested=nested.pop(),
        times=tuple(name for name in TIMES if name in times),
    )


def _identity(server: SearchServer, index: str) -> str:
    found = server.request("GET", f"/{segment(index)}/_settings")
    return " ".join(
        sorted(str(_get(_get(item, "settings"), "index").get("uuid")) for item in found.values())
    )


def _fields(index: str, mapping: object) -> Mapping[str, Any]:
    mappings = _get(mapping, "mappings")
    if "properties" not in mappings and any(
        "properties" in _get(mappings, mapping) for mapping in mappings
    ):
        raise _bad_mapping(index, "it has types of documents, which servers had before version 7")
    return _get(mappings, "properties")


def _get(value: object, name: str) -> Mapping[str, Any]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _check_exact(index: str, fields: Mapping[str, Any], name: str, said: str) -> None:
    """Refuse a field without exact search: existing resources would look deleted."""
    field = _get(fields, name)
    if not field:
        raise _bad_mapping(index, f"it has no field {said}")
    kind = str(field.get("type", "object"))
    if kind not in _EXACT:
        raise _bad_mapping(index, f"{said} is {kind}, and not keyword")
    longest = field.get("ignore_above")
    if longest is not None and int(longest) < _LONGEST_VALUE:
        raise _bad_mapping(index, f"{said} ignores what has more than {longest} characters")


def _bad_mapping(index: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the mapping of {index} does not fit: {why}",
        evidence=(("kept", "what was recorded before"),),
        hint="use the mapping that fits: resourcesync config elasticsearch (prints it)",
        code="wrong-mapping",
    )
