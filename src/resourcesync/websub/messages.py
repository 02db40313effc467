"""Messages between publishers, hubs and subscribers (WebSub §5 to §7).

Beside them their signatures (§8), the leases that they state (§5.1), and the request of a POST.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from resourcesync.discovery.links import find_targets
from resourcesync.model.timestamps import SECOND
from resourcesync.ports import FetchRequest, Message, Purpose
from resourcesync.push_state.rows import SubscriptionIntent

HOUR: Final = 3_600
DAY: Final = 24 * HOUR

SUCCESS: Final = range(200, 300)
DEFAULT_LEASE: Final = 10 * DAY
"""Default lease in seconds, as WebSub §5.1 suggests."""
LONGEST_LEASE: Final = 30 * DAY
SHORTEST_LEASE: Final = HOUR

_DIGITS: Final = 12
_FIRST_DELAY: Final = 1.0
_LONGEST_DELAY: Final = float(HOUR)
_MOST_DOUBLINGS: Final = 30


def parse_seconds(text: str) -> int:
    """Return a positive whole number of seconds; 0 for any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS
    return int(text) if is_number else 0


def bounded_lease(asked: int) -> int:
    """Return the seconds of a lease within its bounds; 0 gets the default."""
    return max(SHORTEST_LEASE, min(asked or DEFAULT_LEASE, LONGEST_LEASE))


def retry_delay(attempts: int, chance: float, *, longest: float = _LONGEST_DELAY) -> float:
    """Return the seconds to wait after failures in a row: doubled each time, with jitter."""
    doublings = min(max(attempts, 1) - 1, _MOST_DOUBLINGS)
    return float(min(_FIRST_DELAY * 2**doublings, longest) * (0.5 + chance / 2))


class MonotonicTime:
    """Time for leases, in microseconds, which never goes back when the machine's clock does."""

    def __init__(self, wall: int, elapsed: float, latest: int = 0) -> None:
        self._begin = max(wall, latest)
        self._elapsed = elapsed

    def at(self, wall: int, elapsed: float) -> int:
        """Return the moment; a clock that was set forward counts, one set back does not."""
        passed = self._begin + int((elapsed - self._elapsed) * SECOND)
        return max(wall, passed)


METHODS: Final = ("sha256", "sha384", "sha512")
"""Accepted methods of ``X-Hub-Signature``; ours is the first."""


def sign(secret: bytes, body: bytes, method: str = METHODS[0]) -> str:
    """Return the value of ``X-Hub-Signature`` for a body."""
    return f"{method}={hmac.new(secret, body, getattr(hashlib, method)).hexdigest()}"


def is_signed(secret: bytes, body: bytes, values: Sequence[str]) -> bool:
    """True if a body has exactly one signature, and that is valid.

    The time of the comparison does not depend on the position of a wrong byte.
    """
    method = values[0].partition("=")[0] if len(values) == 1 else ""
    if method not in METHODS:
        return False
    right = sign(secret, body, method)
    return hmac.compare_digest(values[0].encode("utf-8", "surrogateescape"), right.encode())


FORM: Final = "application/x-www-form-urlencoded"
XML: Final = "application/xml"
SIGNATURE: Final = "X-Hub-Signature"

MOST_FORM: Final = 16 * 1024
MOST_PAYLOAD: Final = 1024 * 1024
"""Largest notification in bytes: the size that a receiver must accept."""

_MOST_FIELDS: Final = 32
_LONGEST_CALLBACK: Final = 2_048
_LONGEST_SECRET: Final = 200
_LOWEST_FREE_PORT: Final = 1_024
_URI: Final = re.compile(r"https?://[!-~]+")
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f]*")
_PLAIN: Final = re.compile(r"[!-~]*")


class HubMode(StrEnum):
    """The value of ``hub.mode``."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    DENIED = "denied"


class BodySink:
    """Buffer of the few bytes of an answer."""

    def __init__(self) -> None:
        self.body = bytearray()

    def write(self, chunk: bytes) -> None:
        """Store the next bytes."""
        self.body += chunk

    def restart(self) -> None:
        """Discard the bytes."""
        self.body.clear()


def post_request(uri: str, body: bytes, media_type: str, *fields: tuple[str, str]) -> FetchRequest:
    """Return the request that posts a message."""
    message = Message(body=body, fields=(("Content-Type", media_type), *fields))
    return FetchRequest(uri=uri, sink=BodySink(), purpose=Purpose.MESSAGE, message=message)


class TextResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a request, as plain text; ``retry_after`` are seconds."""

    status: int
    text: str = ""
    retry_after: int | None = None


def read_fields(text: bytes) -> dict[str, str] | None:
    """Return the fields of a form or a query, the first of each name; ``None`` for no form."""
    if len(text) > MOST_FORM:
        return None
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        return None
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def read_subscription_request(fields: Mapping[str, str]) -> SubscriptionIntent | TextResponse:
    """Return the request of a form, or the answer to an invalid one; without a lease it is 0."""
    mode = fields.get("hub.mode", "")
    if mode not in {HubMode.SUBSCRIBE, HubMode.UNSUBSCRIBE}:
        return TextResponse(status=400, text="hub.mode must be subscribe or unsubscribe.")
    topic, callback = fields.get("hub.topic", ""), fields.get("hub.callback", "")
    fault = callback_fault(callback)
    if not topic or fault:
        return TextResponse(status=400, text=fault or "hub.topic is missing.")
    secret = fields.get("hub.secret")
    if secret is not None and (
        not 0 < len(secret.encode()) < _LONGEST_SECRET or _TEXT.fullmatch(secret) is None
    ):
        return TextResponse(status=400, text="hub.secret must be text of 1 to 199 bytes.")
    asked = fields.get("hub.lease_seconds", "")
    lease = parse_seconds(asked)
    if asked and not lease:
        return TextResponse(status=400, text="hub.lease_seconds must be a whole number above 0.")
    return SubscriptionIntent(
        mode=mode, topic=topic, callback=callback, secret=(secret or "").encode(), lease=lease
    )


def callback_fault(callback: str) -> str:
    """Return why a callback cannot be used; empty when it can.

    Its host must be at a public address too: that is checked at each connection.
    """
    if not callback or len(callback) > _LONGEST_CALLBACK or _URI.fullmatch(callback) is None:
        return "hub.callback must be an absolute http or https URI of at most 2048 characters."
    try:
        parts = urlsplit(callback)
        port = parts.port
    except ValueError:
        return "hub.callback is not a URI."
    if not parts.hostname or "@" in parts.netloc or parts.fragment:
        return "hub.callback must have a host, no user and no fragment."
    if port is not None and port not in {80, 443} and port < _LOWEST_FREE_PORT:
        return "hub.callback must use port 80, 443, or one above 1023."
    return ""


def subscription_form(topic: str, callback: str, secret: str) -> bytes:
    """Return the body of a request to a hub (§5.1); old hubs insist on ``hub.verify``."""
    said = {
        "hub.mode": HubMode.SUBSCRIBE.value,
        "hub.topic": topic,
        "hub.callback": callback,
        "hub.verify": "async",
        "hub.lease_seconds": str(DEFAULT_LEASE),
        "hub.secret": secret,
    }
    return urlencode(said).encode()


def link_field(topic: str, hubs: Iterable[str]) -> str:
    """Return the value of the ``Link`` field of a topic, a submission and a delivery (§4, §7)."""
    links = [f'<{topic}>; rel="self"', *(f'<{hub}>; rel="hub"' for hub in hubs)]
    return ", ".join(links)


def read_links(field: str, base: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the targets of ``self`` and of ``hub`` in a ``Link`` field."""
    return find_targets(field, "self", base), find_targets(field, "hub", base)


def is_plain(text: str) -> bool:
    """True if a text is printable ASCII, without blanks: safe in a header."""
    return _PLAIN.fullmatch(text) is not None
