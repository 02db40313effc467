"""Where the documents of an index are, and whether its mapping lets them be found.

Two indices, ``INDEX-resource`` and ``INDEX-change``, are what a server of today can hold. One
index for both has the keyword ``doc_type`` in each document. The seed's own two types in one index
end with servers of before 2019.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from resourcesync.adapters.elastic.client import SearchServer, segment
from resourcesync.adapters.elastic.documents import format_plain_date
from resourcesync.adapters.elastic.settings import IndexSettings
from resourcesync.errors import ConfigurationError, SourceNotFoundError
from resourcesync.model.timestamps import format_w3c

Query = dict[str, Any]

DOC_TYPE: Final = "doc_type"
TIMES: Final = ("timestamp", "datetime")
"""What dates a change: when it was written, else when it happened."""
_EXACT: Final = frozenset({"keyword", "constant_keyword", "wildcard"})
_DATES: Final = frozenset({"date", "date_nanos"})
_LONGEST_VALUE: Final = 8191
_DATE: Final[Query] = {
    "type": "date",
    "format": "strict_date_optional_time||yyyy-MM-dd'T'HH:mm:ssZ||epoch_millis",
}
_KEYWORD: Final[Query] = {"type": "keyword"}
_LOCATION: Final[Query] = {
    "type": "nested",
    "properties": {"value": _KEYWORD, "type": _KEYWORD},
}
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
    "ln": {
        "type": "nested",
        "properties": {"href": _LOCATION, "rel": _KEYWORD, "mime": _KEYWORD},
    },
}
"""The seed's mapping of resources, in the types of today; its ``integer`` ends at 2 GiB."""
CHANGE_FIELDS: Final[Query] = {**_COMMON, "change": _KEYWORD, "datetime": _DATE}


def mapping_requests(index: str) -> str:
    """Return the requests that make the two indices, as the consoles of such servers take them."""
    kinds = (("resource", RESOURCE_FIELDS), ("change", CHANGE_FIELDS))
    return "\n".join(
        f"PUT /{index}-{kind}\n{json.dumps({'mappings': {'properties': fields}}, indent=2)}\n"
        for kind, fields in kinds
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLocation:
    """Where documents of one kind are.

    Attributes:
        index: The index.
        filters: What tells them from others there.
        identity: What is another after the index was made anew, or when it is read otherwise.
        is_nested: Whether locations are nested documents.
        times: Those of `TIMES` that are dates here.
        is_plain: Whether dates have the seed's form only.
        doc_type: What ``doc_type`` is of those that are written; empty where there is none.
    """

    index: str
    filters: tuple[Query, ...]
    identity: str
    is_nested: bool
    times: tuple[str, ...]
    is_plain: bool
    doc_type: str = ""

    def location_condition(self, values: list[str]) -> Query:
        """Return the condition that a location has one of some values."""
        found: Query = {"terms": {"location.value": values}}
        return {"nested": {"path": "location", "query": found}} if self.is_nested else found

    def query(self, *more: Query) -> Query:
        """Return the query for these documents, with more conditions."""
        return {"bool": {"filter": [*self.filters, *more]}}

    def query_all_sets(self) -> Query:
        """Return the query for the documents of this kind, whatever set they are of."""
        ours = [it for it in self.filters if "resource_set" not in it.get("term", {})]
        return {"bool": {"filter": ours}}

    def format_date(self, moment: datetime) -> str:
        """Return a date in a form that the mapping takes."""
        if self.is_plain:
            return format_plain_date(moment)
        return format_w3c(moment.replace(microsecond=moment.microsecond // 1000 * 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLayout:
    """Where resources are, and their changes, where these are logged."""

    resources: DocumentLocation
    changes: DocumentLocation | None


def find_layout(server: SearchServer, settings: IndexSettings) -> IndexLayout:
    """Return where the documents are.

    Raises:
        ConfigurationError: The mapping does not let them be found.
        SourceError: There is no such index, or the server does not answer, or refuses.
    """
    apart = f"{settings.index}-{settings.resource_type}"
    mapping = _mapping(server, apart)
    if mapping is not None:
        resources = _find_location(server, settings, apart, mapping, "")
        name = f"{settings.index}-{settings.change_type}"
        mapping = _mapping(server, name)
        changes = None if mapping is None else _find_location(server, settings, name, mapping, "")
    else:
        mapping = _mapping(server, settings.index)
        if mapping is None:
            raise SourceNotFoundError(
                f"{server.address} has neither {apart} nor {settings.index}",
                uri=server.address,
                hint="resourcesync catalogue import SYSTEM:… LINES makes an index",
                code="no-index",
            )
        resources = _find_location(
            server, settings, settings.index, mapping, settings.resource_type
        )
        changes = _find_location(server, settings, settings.index, mapping, settings.change_type)
    if changes is not None and not changes.times:
        raise _bad_mapping(changes.index, "neither timestamp nor datetime is a date")
    return IndexLayout(resources=resources, changes=changes)


def make_indices(server: SearchServer, settings: IndexSettings) -> None:
    """Make the two indices, if they are not there.

    Raises:
        SourceError: The server does not answer, or refuses.
    """
    for kind, fields in (
        (settings.resource_type, RESOURCE_FIELDS),
        (settings.change_type, CHANGE_FIELDS),
    ):
        name = f"{settings.index}-{kind}"
        if _mapping(server, name) is None:
            mappings = {"dynamic": False, "properties": fields}
            server.request("PUT", f"/{segment(name)}", {"mappings": mappings})


def _mapping(server: SearchServer, index: str) -> Mapping[str, Any] | None:
    """Return the mappings of what an index or an alias stands for; ``None`` when it is not."""
    try:
        found = server.request("GET", f"/{segment(index)}/_mapping")
    except SourceNotFoundError:
        return None
    return found if isinstance(found, dict) and found else None


def _find_location(
    server: SearchServer,
    settings: IndexSettings,
    index: str,
    mapping: Mapping[str, Any],
    doc_type: str,
) -> DocumentLocation:
    all_fields = [_fields(index, one) for one in mapping.values()]
    nested, times, plain = set(), set(TIMES), False
    for fields in all_fields:
        location = _get(fields, "location")
        _check_exact(index, _get(location, "properties"), "value", "location.value")
        nested.add(location.get("type") == "nested")
        times &= {name for name in TIMES if _get(fields, name).get("type") in _DATES}
        plain = plain or any(_is_plain(_get(fields, name)) for name in (*TIMES, "lastmod"))
        if settings.resource_set:
            _check_exact(index, fields, "resource_set", "resource_set")
        if doc_type:
            _check_exact(index, fields, DOC_TYPE, DOC_TYPE)
    if len(nested) != 1:
        raise _bad_mapping(index, "locations are nested in one index and not in another")
    return DocumentLocation(
        index=index,
        filters=tuple(_filters(settings, doc_type)),
        identity=f"{_identity(server, index)} {settings.fingerprint}",
        is_nested=nested.pop(),
        times=tuple(name for name in TIMES if name in times),
        is_plain=plain,
        doc_type=doc_type,
    )


def _filters(settings: IndexSettings, doc_type: str) -> Iterator[Query]:
    if doc_type:
        yield {"term": {DOC_TYPE: doc_type}}
    if settings.resource_set:
        yield {"term": {"resource_set": settings.resource_set}}


def _identity(server: SearchServer, index: str) -> str:
    found = server.request("GET", f"/{segment(index)}/_settings")
    return " ".join(
        sorted(str(_get(_get(it, "settings"), "index").get("uuid")) for it in found.values())
    )


def _fields(index: str, mapping: object) -> Mapping[str, Any]:
    mappings = _get(mapping, "mappings")
    if "properties" not in mappings and any("properties" in _get(mappings, it) for it in mappings):
        raise _bad_mapping(index, "it has types of documents, which servers had before version 7")
    return _get(mappings, "properties")


def _get(value: object, name: str) -> Mapping[str, Any]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _check_exact(index: str, fields: Mapping[str, Any], name: str, said: str) -> None:
    """Refuse what cannot be searched for as it is: then what is there would look deleted."""
    field = _get(fields, name)
    if not field:
        raise _bad_mapping(index, f"it has no field {said}")
    kind = str(field.get("type", "object"))
    if kind not in _EXACT:
        raise _bad_mapping(index, f"{said} is {kind}, and not keyword")
    longest = field.get("ignore_above")
    if longest is not None and int(longest) < _LONGEST_VALUE:
        raise _bad_mapping(index, f"{said} ignores what has more than {longest} characters")


def _is_plain(field: Mapping[str, Any]) -> bool:
    written = str(field.get("format", "optional_time"))
    return "optional_time" not in written and "iso8601" not in written


def _bad_mapping(index: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the mapping of {index} does not fit: {why}",
        evidence=(("kept", "what was recorded before"),),
        hint="resourcesync config elasticsearch prints the mapping that fits",
        code="wrong-mapping",
    )
