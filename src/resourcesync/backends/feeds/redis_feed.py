"""``redis://HOST/DB``: a Redis stream whose entries report changes (extra ``redis``).

An entry has one field ``json`` with a line as in every feed, or the fields of such a line
themselves: ``uri``, ``change``, ``lastmod``, ``length``, ``hash``, ``type``.

The position is the id of the last entry read and the number of entries up to it: with a trimmed
stream, the number shows whether unread entries were lost.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec.structs import replace

from resourcesync.backends.feeds.change_feed import (
    GAPS,
    ChangeFeed,
    PendingChanges,
    accepts_gaps,
    check_keys,
    decode_entry,
    gap_error,
)
from resourcesync.documents.ndjson import MAX_LINE
from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    Remedy,
    SourceError,
    SourceRefusedError,
    SourceUnavailableError,
    StateError,
)
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount
from resourcesync.ports.catalogue import Omission

if TYPE_CHECKING:
    from redis import Redis

_KEYS: Final = frozenset({GAPS, "stream", "user", "password", "ca_file"})
_FIELDS: Final = frozenset({"uri", "change", "lastmod", "datetime", "hash", "type", "encoding"})
_ID: Final = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")
_AT_ONCE: Final = 200
MAX_ENTRY_BYTES: Final = MAX_LINE
"""The most bytes of one entry; a longer one is left out."""
MAX_READ_BYTES: Final = 8 << 20
"""Bytes after which no more entries are requested at once."""
_READ_BOUNDED: Final = """
local told, size = {}, 0
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2])) do
    local long = 0
    for _, part in ipairs(entry[2]) do long = long + #part end
    if long > tonumber(ARGV[3]) then entry, long = {entry[1], {}}, 0 end
    told[#told + 1], size = entry, size + long
    if size > tonumber(ARGV[4]) then break end
end
return told
"""
_POLL_SECONDS: Final = 0.25
_TIMEOUT: Final = 30.0
_BEGINNING: Final = "0-0"
_LATEST: Final = 253_402_300_799_000

_Entry = tuple[bytes, Mapping[bytes, bytes]]


class _StreamPosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A position in the stream: the last id, and the number of entries up to it."""

    id: str = _BEGINNING
    number: int = 0


@contextmanager
def open_stream(options: AccountOptions) -> Iterator[ResourceAccount]:
    """Open the account of a Redis stream.

    Raises:
        ConfigurationError: A value is invalid, or the extra ``redis`` is not installed.
    """
    values = options.values
    check_keys("redis:", values, _KEYS)
    asked = {key for key, _ in parse_qsl(urlsplit(options.address).query, keep_blank_values=True)}
    if "@" in options.address or asked & {"username", "password"}:
        raise ConfigurationError(
            "the address of Redis has a user or a password in it",
            hint="give them as options",
            remedy=Remedy("log-in"),
        )
    if not urlsplit(options.address).hostname or not values.get("stream"):
        raise ConfigurationError(
            "a stream of Redis is named by its server and its key",
            hint="write redis://HOST:6379/0, and the key by the option stream",
            remedy=Remedy("set-option", value="stream=changes"),
        )
    with closing(_connected(options.address, values)) as client:
        yield RedisStream(client, values["stream"], options.clock, accept_gaps=accepts_gaps(values))


def _connected(address: str, values: Mapping[str, str]) -> "Redis":
    try:
        from redis import Redis  # noqa: PLC0415 - an extra
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415
    except ImportError:
        raise ConfigurationError(
            "Redis needs another package", hint="pip install 'resourcesync[redis]'"
        ) from None
    more: dict[str, Any] = {"ssl_ca_certs": values["ca_file"]} if "ca_file" in values else {}
    try:
        return Redis.from_url(
            address,
            username=values.get("user"),
            password=values.get("password"),
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            retry=Retry(NoBackoff(), 0),  # the caller retries
            **more,
        )
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{address} cannot be used: {error}") from error


@contextmanager
def _guard_redis(name: str) -> Iterator[None]:
    """Translate errors of the client into errors of this package."""
    from redis import exceptions  # noqa: PLC0415 - an extra

    refusals = (
        exceptions.AuthenticationError,
        exceptions.AuthorizationError,
        exceptions.NoPermissionError,
    )
    kinds: tuple[tuple[tuple[type[Exception], ...], type[SourceError], str], ...] = (
        (refusals, SourceRefusedError, "refuses"),
        (
            (exceptions.ConnectionError, exceptions.TimeoutError),
            SourceUnavailableError,
            "does not answer",
        ),
        ((exceptions.RedisError,), BadResponseError, "cannot be read"),
    )
    try:
        yield
    except exceptions.RedisError as error:
        kind, words = next(
            (source_error, said) for types, source_error, said in kinds if isinstance(error, types)
        )
        raise kind(
            f"the stream {name} of Redis {words}", evidence=(("got", str(error)[:300]),)
        ) from error


class RedisStream(ChangeFeed):
    """An account of the entries of a stream.

    Args:
        client: The connection to the server.
        name: The key of the stream.
        accept_gaps: Go on after lost entries.
    """

    def __init__(
        self, client: "Redis", name: str, clock: Clock, *, accept_gaps: bool = False
    ) -> None:
        self._client = client
        self._name = name
        self._clock = clock
        self._accept_gaps = accept_gaps

    def position(self) -> str:
        """Return the beginning of the stream: all of its entries are reported.

        Raises:
            SourceError: The server does not answer, or refuses.
        """
        return _encode_position(_StreamPosition(number=self._state()[1]))

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the changes in the entries after a position.

        Raises:
            DiscontinuityError: Some of them were trimmed.
            SourceError: The server does not answer, or refuses.
        """
        place = _decode_position(after)
        until = self._clock.monotonic() + wait
        while True:
            entries = self._entries(place)
            before, place = place, self._checked(place)
            if place.id != before.id:
                continue  # gaps are accepted: the stream was recreated
            if entries:
                lot = PendingChanges(self._clock)
                for number, fields in entries:
                    size = sum(map(len, fields.values()))
                    lot.add([self._decode_entry(number.decode("ascii", "replace"), fields)], size)
                last = entries[-1][0].decode("ascii", "replace")
                place = _StreamPosition(last, place.number + len(entries))
                yield lot.take(_encode_position(place))
            elif self._clock.monotonic() >= until:
                return
            else:
                self._clock.sleep(_POLL_SECONDS)

    def _entries(self, place: _StreamPosition) -> Sequence[_Entry]:
        """Return the next entries, those that are too long without their fields.

        The server counts their length: a client that requests an entry gets all of it. Without the
        permission to run scripts on the server, entries come as they are.
        """
        from redis.exceptions import NoPermissionError  # noqa: PLC0415 - an extra

        start = f"({place.id}"
        with _guard_redis(self._name):
            try:
                found: Any = self._client.eval(
                    _READ_BOUNDED, 1, self._name, start, _AT_ONCE, MAX_ENTRY_BYTES, MAX_READ_BYTES
                )
            except NoPermissionError:
                told: Any = self._client.xrange(self._name, min=start, count=_AT_ONCE)
                return told or ()
        return [(number, _paired(parts)) for number, parts in found]

    def _checked(self, place: _StreamPosition) -> _StreamPosition:
        """Return the position, counted as the stream counts, if nothing after it was lost.

        Call it after reading the entries: a stream loses its oldest entries first.

        Raises:
            DiscontinuityError: Entries were lost.
        """
        last, gone, first = self._state()
        is_other = _key(last) < _key(place.id)
        if last == place.id or (first and not is_other and _key(first) <= _key(place.id)):
            return place
        if not is_other and gone == place.number:  # exactly the entries that were read
            return place
        if not self._accept_gaps:
            raise gap_error(
                f"the stream {self._name} was {'trimmed' if gone > place.number else 'recreated'}:"
                " entries after the last one read are missing",
                ("read", f"{place.id}, entry {place.number:,}"),
                ("first", first or "none"),
            )
        return _StreamPosition(_BEGINNING if is_other else place.id, gone)

    def _state(self) -> tuple[str, int, str]:
        """Return the last id added, the number of trimmed entries, and the first id present."""
        with _guard_redis(self._name):
            if not self._client.exists(self._name):
                return _BEGINNING, 0, ""
            told: Any = self._client.xinfo_stream(self._name)
        try:
            first = told["first-entry"]
            added = int(told.get("entries-added", 0))  # Redis before 7 does not count
            last = told["last-generated-id"].decode("ascii", "replace")
            gone = added - int(told["length"])
            return last, gone, "" if first is None else first[0].decode("ascii", "replace")
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise BadResponseError(
                f"the server reports too little about the stream {self._name} of Redis",
                evidence=(("got", f"XINFO STREAM: {told!r}"[:300]),),
                hint="Redis 5 and later report it; compatible servers may not",
            ) from error

    def _decode_entry(self, number: str, fields: Mapping[bytes, bytes]) -> Change | Omission:
        if not fields or sum(map(len, fields.values())) > MAX_ENTRY_BYTES:
            name = f"{self._name} {number}"
            return Omission(name=name, reason=f"longer than {MAX_ENTRY_BYTES:,} bytes")
        if b"json" in fields:
            return _timed(decode_entry(fields[b"json"], self._name), number)
        texts = {key.decode("utf-8", "replace"): value for key, value in fields.items()}
        line: dict[str, object] = {
            key: value.decode("utf-8", "replace") for key, value in texts.items() if key in _FIELDS
        }
        length = texts.get("length", b"")
        if length.isdigit():
            line["length"] = int(length[:20])
        return _timed(decode_entry(msgspec.json.encode(line), self._name), number)


def _paired(parts: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(parts[::2], parts[1::2], strict=False))


def _timed(entry: Change | Omission, number: str) -> Change | Omission:
    """Return a change with the time of its id, if it has none of its own."""
    if isinstance(entry, Omission) or entry.time is not None:
        return entry
    return replace(entry, time=from_microseconds(min(_key(number)[0], _LATEST) * 1000))


def _key(number: str) -> tuple[int, int]:
    found = _ID.fullmatch(number)
    if found is None:
        raise BadResponseError("an id is not one of a Redis stream", evidence=(("got", number),))
    return int(found[1]), int(found[2])


def _encode_position(place: _StreamPosition) -> str:
    return msgspec.json.encode(place).decode()


def _decode_position(text: str) -> _StreamPosition:
    try:
        return msgspec.json.decode(text, type=_StreamPosition)
    except msgspec.MsgspecError as error:
        raise StateError(
            "the stored position of the stream is invalid", evidence=(("got", text[:200]),)
        ) from error
