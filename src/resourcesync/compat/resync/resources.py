"""Resources under the names of resync: one URI with its metadata, all of it changeable."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from resourcesync.app import machine
from resourcesync.compat.resync.errors import ChangeTypeError
from resourcesync.model.digests import Digest
from resourcesync.model.timestamps import EPOCH, format_w3c, from_microseconds, parse_w3c
from resourcesync.model.vocabulary import ChangeKind

Timestamp = int | float
"""Seconds since 1970-01-01T00:00:00Z; an ``int`` if there is no fraction."""

_MILLION: Final = 1_000_000
_SECOND: Final = timedelta(seconds=1)
_ZONE: Final = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})\Z")


def now() -> Timestamp:
    """Return the present time."""
    return machine.system_clock().now().timestamp()


def from_moment(moment: datetime | None) -> Timestamp | None:
    """Return a moment in seconds; ``None`` for none."""
    if moment is None:
        return None
    seconds = (moment - EPOCH) // _SECOND
    # The sum that resync computes, to the last digit: programs compare and store it.
    return seconds + moment.microsecond / _MILLION if moment.microsecond else seconds


def to_moment(timestamp: Timestamp | None) -> datetime | None:
    """Return the moment of a timestamp, to the microsecond; ``None`` for none.

    Raises:
        ValueError: It is before the year 1 or after the year 9999.
    """
    if timestamp is None:
        return None
    try:
        return from_microseconds(round(timestamp * _MILLION))
    except OverflowError as error:
        raise ValueError(f"out of range: {timestamp}") from error


def str_to_datetime(s: str | None, context: str = "datetime") -> Timestamp | None:
    """Return the time that a W3C Datetime names; ``None`` for ``None``.

    Args:
        s: The text; a time of the day needs its zone.
        context: Name of the value, for messages.

    Raises:
        ValueError: It is no W3C Datetime.
    """
    if s is None:
        return None
    if not s:
        raise ValueError(f"Attempt to set empty {context}")
    if "T" in s and not _ZONE.search(s):
        raise ValueError(f"{context} has no time zone: {s[:64]!r}")
    return from_moment(parse_w3c(s).replace(fold=0))


def datetime_to_str(
    dt: Timestamp | str | datetime | None = "now", no_fractions: bool = False
) -> str | None:
    """Return a time as a W3C Datetime in UTC; ``None`` for ``None``.

    Args:
        dt: Seconds since 1970; ``now`` for the present time.
        no_fractions: True to cut the fraction of a second.

    Raises:
        ValueError: It is out of range.
    """
    if dt is None:
        return None
    if isinstance(dt, datetime):
        moment = dt.replace(tzinfo=UTC) if dt.tzinfo is None else dt
    else:
        found = to_moment(now() if isinstance(dt, str) else dt)
        assert found is not None, "only None has no moment"
        moment = found
    return format_w3c(moment.replace(microsecond=0) if no_fractions else moment)


LinkDict = dict[str, Any]
"""A link: ``rel``, ``href``, and what else its ``rs:ln`` has."""

_COPIED: Final = (
    "uri", "timestamp", "length", "mime_type", "md5", "sha1", "sha256", "change", "ts_datetime",
    "path", "ln", "capability", "ts_at", "ts_completed", "ts_from", "ts_until", "other_digests",
)  # fmt: skip
_TEXTS: Final = {
    "lastmod": "timestamp",
    "datetime": "ts_datetime",
    "md_at": "ts_at",
    "md_completed": "ts_completed",
    "md_from": "ts_from",
    "md_until": "ts_until",
}
"""Attributes with a time as text, and those with the same time in seconds."""
_DIGESTS: Final = {"md5": "md5", "sha-1": "sha1", "sha-256": "sha256"}


class Links:
    """Links of a list or a resource, as a list of dicts."""

    __slots__ = ()

    ln: list[LinkDict] | None

    def link(self, rel: str) -> LinkDict | None:
        """Return the first link of a relation, or ``None``."""
        return next((link for link in self.ln or () if link.get("rel") == rel), None)

    def link_href(self, rel: str) -> str | None:
        """Return the target of the first link of a relation, or ``None``."""
        link = self.link(rel)
        return None if link is None else link["href"]

    def link_set(self, rel: str, href: str, allow_duplicates: bool = False, **atts: object) -> None:
        """Set the target and attributes of the link of a relation, added if there is none.

        Args:
            rel: The relation.
            href: The target.
            allow_duplicates: True to add a link also if there is one.
            **atts: Further attributes, such as ``type``.
        """
        if self.ln is None:
            self.ln = []  # type: ignore[misc]  # a slot of the class that has links
        link = None if allow_duplicates else self.link(rel)
        if link is None:
            link = {"rel": rel}
            self.ln.append(link)
        link.update({"href": href, **atts})

    def link_add(self, rel: str, href: str, **atts: object) -> None:
        """Add a link, also if there is one of this relation."""
        self.link_set(rel, href, allow_duplicates=True, **atts)

    @property
    def describedby(self) -> str | None:
        """Target of the link ``describedby``."""
        return self.link_href("describedby")

    @describedby.setter
    def describedby(self, uri: str) -> None:
        self.link_set("describedby", uri)

    @property
    def up(self) -> str | None:
        """Target of the link ``up``."""
        return self.link_href("up")

    @up.setter
    def up(self, uri: str) -> None:
        self.link_set("up", uri)

    @property
    def index(self) -> str | None:
        """Target of the link ``index``."""
        return self.link_href("index")

    @index.setter
    def index(self, uri: str) -> None:
        self.link_set("index", uri)


class CompatResource(Links):
    """``resync.Resource``: a URI with its metadata.

    Args:
        uri: The URI.
        timestamp: Last modification, seconds since 1970.
        resource: Another resource, whose attributes are copied first.
        **attributes: Any of the attributes.

    Attributes:
        uri: The URI.
        timestamp: Last modification, seconds since 1970; ``lastmod`` is the same as text.
        length: Bytes.
        mime_type: Media type.
        md5, sha1, sha256: Digests in hexadecimal; ``hash`` is all of them as in a list.
        change: ``created``, ``updated`` or ``deleted``.
        ts_datetime: Time of the change, seconds since 1970; ``datetime`` is the same as text.
        path: Place in a package, or of a local file.
        ln: Links; ``None`` for none.
        capability: Capability of a document.
        ts_at, ts_completed, ts_from, ts_until: Times of a document; ``md_at`` … are text.

    Raises:
        ValueError: There is no URI, or a text is no W3C Datetime.
        ChangeTypeError: The kind of the change is unknown.
        TypeError: There is no such attribute.
    """

    CHANGE_TYPES: ClassVar[Any] = [kind.value for kind in ChangeKind]

    __slots__ = (
        "_change", "_extra", "length", "ln", "md5", "mime_type", "path", "sha1", "sha256",
        "timestamp", "ts_datetime", "uri",
    )  # fmt: skip

    uri: str
    timestamp: Timestamp | None
    length: int | None
    mime_type: str | None
    md5: str | None
    sha1: str | None
    sha256: str | None
    ts_datetime: Timestamp | None
    path: str | None
    other_digests: tuple[Digest, ...] | None

    def __init__(
        self,
        uri: str | None = None,
        timestamp: Timestamp | None = None,
        *,
        resource: "CompatResource | None" = None,
        **attributes: Any,
    ) -> None:
        unknown = sorted(attributes.keys() - {*_COPIED, *_TEXTS})
        if unknown:
            raise TypeError(f"Resource() got an unexpected keyword argument {unknown[0]!r}")
        self._extra: dict[str, Any] = {}
        for name in _COPIED:
            setattr(self, name, getattr(resource, name, None))
        for name, value in {"uri": uri, "timestamp": timestamp, **attributes}.items():
            if value is not None:
                setattr(self, name, value)
        if self.uri is None:
            raise ValueError("Cannot create Resource without a URI")

    @property
    def change(self) -> str | None:
        """Kind of the change; ``None`` for none."""
        return self._change

    @change.setter
    def change(self, value: str | None) -> None:
        if value is not None and self.CHANGE_TYPES and value not in self.CHANGE_TYPES:
            raise ChangeTypeError(value)
        self._change = value

    def __getattr__(self, name: str) -> Any:
        """Return the text of a time, or one of the rare attributes."""
        if name in _TEXTS:
            return datetime_to_str(getattr(self, _TEXTS[name]))
        if name in _COPIED:
            return self._extra.get(name)
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _TEXTS:
            setattr(self, _TEXTS[name], str_to_datetime(value, context=name))
        elif name in _COPIED[11:]:
            if value is not None or name in self._extra:
                self._extra[name] = value
        else:
            object.__setattr__(self, name, value)

    @property
    def hash(self) -> str | None:
        """Digests as in a list, such as ``md5:… sha-256:…``; ``None`` for none."""
        found = [
            f"{name}:{value}"
            for name, attribute in _DIGESTS.items()
            if (value := getattr(self, attribute)) is not None
        ]
        return " ".join(found) or None

    @hash.setter
    def hash(self, hashes_str: str) -> None:
        """Set the digests.

        Raises:
            ValueError: Some are of an unknown or a repeated algorithm; the others are set.
        """
        self.md5 = self.sha1 = self.sha256 = self.other_digests = None
        ignored: list[str] = []
        for name, value in _tokens(hashes_str):
            attribute = _DIGESTS.get(name, "")
            if not attribute:
                ignored.append(f"unsupported hash type {name}")
            elif getattr(self, attribute) is not None:
                ignored.append(f"duplicate hash type {name}")
            else:
                setattr(self, attribute, value)
        if ignored:
            raise ValueError(f"Ignored {', '.join(ignored)}")

    @property
    def contents(self) -> str | None:
        """Target of the link ``contents``, to a copy of the manifest."""
        return self.link_href("contents")

    @contents.setter
    def contents(self, uri: str) -> None:
        self.link_set("contents", uri, type="application/xml")

    @property
    def basename(self) -> str:
        """The last part of the path of the URI."""
        return urlsplit(self.uri).path.rpartition("/")[2]

    __hash__ = None  # type: ignore[assignment]  # equality is not transitive

    def __eq__(self, other: object) -> bool:
        """Return `equal` within a second."""
        return self.equal(other, delta=1.0)

    def equal(self, other: object, delta: float = 0.0) -> bool:
        """Return whether nothing proves that two resources differ.

        Args:
            other: The other resource.
            delta: Two times differ if they are so many seconds apart, or more.
        """
        if not isinstance(other, CompatResource) or self.uri != other.uri:
            return False
        ours, theirs = self.timestamp, other.timestamp
        if (ours is None) != (theirs is None):
            return False
        if ours is not None and theirs is not None and abs(ours - theirs) >= delta:
            return False
        return not any(
            None not in (mine := getattr(self, name), yours := getattr(other, name))
            and mine != yours
            for name in ("md5", "sha1", "sha256", "length")
        )

    def __str__(self) -> str:
        parts = [self.uri, self.lastmod, self.length, self.md5 or self.sha1 or self.sha256]
        if self.change is not None:
            parts.append(f"{self.change} @ {self.datetime}" if self.datetime else self.change)
        if self.path is not None:
            parts.append(self.path)
        return f"[ {' | '.join(map(str, parts))} ]"

    def __repr__(self) -> str:
        """Return the attributes that are set, in the form of a dict."""
        values = {name: getattr(self, name) for name in _COPIED[:11]}
        values["_extra"] = self._extra or None
        parts = [f"{name!r}: {value!r}" for name, value in values.items() if value is not None]
        return "{" + ", ".join(parts) + "}"


def _tokens(hashes: str) -> Iterator[tuple[str, str]]:
    for token in hashes.split():
        name, _, value = token.partition(":")
        yield name, value
