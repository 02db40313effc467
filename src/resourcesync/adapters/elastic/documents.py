"""The documents of the seed: what they say of resources and changes, and where those are."""

import logging
import posixpath
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote

from resourcesync.adapters.elastic.settings import IndexSettings
from resourcesync.errors import ConfigurationError
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import from_microseconds, parse_w3c

IndexDocument = Mapping[str, Any]
DateFormatter = Callable[[datetime], str]
"""How a date is written."""

_ZONE: Final = re.compile(r"([+-]\d\d)(\d\d)")
_BARE_MD5: Final = re.compile(r"[0-9A-Fa-f]{32}")
_MOST_MILLIS: Final = 253_402_300_799_999
_MOST_LENGTH: Final = (1 << 63) - 1
_MOST_LINKS: Final = 10_000

_log = logging.getLogger(__name__)


class Locations:
    """What locations of the three types are as URIs, and the other way round.

    Args:
        settings: The prefix and the root that they are relative to.
    """

    def __init__(self, settings: IndexSettings) -> None:
        self._prefix = settings.url_prefix
        self._root = settings.resource_root_dir

    def uri(self, location: object) -> str:
        """Return the URI of a location; what is no URI where it cannot be made into one.

        Raises:
            ConfigurationError: It needs a parameter that is not given.
        """
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
        """Return the values of all locations that may be meant by a URI."""
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
                hint="--with url_prefix=https://HOST/",
            )
        return self._prefix + quote(path.lstrip("/"))

    def _below(self, path: str) -> str:
        if not self._root:
            raise ConfigurationError(
                f"there are locations by absolute path, such as {path[:200]}",
                hint="say what they are relative to: --with resource_root_dir=DIR",
            )
        whole, root = posixpath.normpath(path), self._root.rstrip("/")
        if not whole.startswith(f"{root}/"):
            return path
        return self._joined(whole[len(root) + 1 :])


class ResourceDecoder:
    """Makes resources of documents; counts what it cannot understand of them.

    A value that means nothing is left out; what has no location is told as it is, to be left out
    by name. Whoever deletes a copy because of a bad date loses more than a date.
    """

    def __init__(self, locations: Locations) -> None:
        self._locations = locations
        self._odd = 0

    def resource(self, name: str, document: IndexDocument) -> Resource:
        """Return the resource that a document tells of.

        Args:
            name: The document's ``_id``.
            document: Its fields.
        """
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
        """Say how many values were left out."""
        if self._odd:
            _log.warning("%d values of the index mean nothing and were left out", self._odd)

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
        for one in value if isinstance(value, list) else [value]:
            for digest in map(_prefixed, _text(one).split()):
                found += [it for it in parse_digests(digest) if it.is_usable]
        self._odd += not found
        return tuple(dict.fromkeys(found))

    def _links(self, value: object) -> tuple[Link, ...]:
        if value is None:
            return ()
        found = []
        for one in (value if isinstance(value, list) else [value])[:_MOST_LINKS]:
            link = one if isinstance(one, Mapping) else {}
            rel, href = _text(_first(link.get("rel"))), self._locations.uri(link.get("href"))
            if rel and href:
                media_type = _text(_first(link.get("mime")) or _first(link.get("type")))
                found.append(Link(rel=rel, href=href, media_type=media_type))
            else:
                self._odd += 1
        return tuple(found)


def parse_date(value: object) -> datetime | None:
    """Return the moment that a date of a document means; ``None`` for none.

    The seed's own form has an offset without a colon; what has none at all is taken as UTC.
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


def format_plain_date(moment: datetime) -> str:
    """Return a date as the seed's own mapping takes it: whole seconds, and an offset."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}+0000"


def resource_document(resource: Resource, dated: DateFormatter) -> dict[str, Any]:
    """Return the document that tells of a resource, but for what all documents have."""
    md5 = [str(digest) for digest in resource.digests]
    told: dict[str, Any] = {
        "location": _url(resource.uri),
        "length": resource.length,
        "md5": md5[0] if len(md5) == 1 else md5 or None,
        "mime": resource.media_type or None,
        "lastmod": None if resource.lastmod is None else dated(resource.lastmod),
        "ln": [_link_document(link) for link in resource.links] or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def change_document(
    resource: Resource, kind: str, moment: datetime, dated: DateFormatter
) -> dict[str, Any]:
    """Return the document that logs a change, but for what all documents have."""
    told: dict[str, Any] = {
        "location": _url(resource.uri),
        "change": kind,
        "datetime": dated(moment),
    }
    if resource.lastmod is not None:
        told["lastmod"] = dated(resource.lastmod)
    return told


def _url(uri: str) -> dict[str, str]:
    return {"type": "url", "value": uri}


def _link_document(link: Link) -> dict[str, Any]:
    told = {"rel": link.rel, "href": _url(link.href)}
    return {**told, "mime": link.media_type} if link.media_type else told


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
