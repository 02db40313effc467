"""Hub for our own topics: its answers to publishers and subscribers, its rules and rate limits.

See WebSub §5 and §6. Nothing else is done while a client waits for an answer: a request or a
payload is stored durably first, then answered, then `websub.delivery` does the rest.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from resourcesync.documents import reader
from resourcesync.errors import ConfigurationError, DocumentError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import NOTIFICATIONS
from resourcesync.ports import Clock
from resourcesync.push_state.rows import Payload, SubscriptionIntent
from resourcesync.push_state.stores import FileHub
from resourcesync.websub import messages
from resourcesync.websub.messages import HubMode, TextResponse, is_plain, is_signed

_MINUTE: Final = 60.0
_REMEMBERED: Final = 10_000


class RateLimiter:
    """Token buckets for at most 10,000 clients, full at first, refilled as time passes."""

    def __init__(self, per_minute: float) -> None:
        self._most = per_minute
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def acquire(self, asker: str, now: float) -> bool:
        """Take a token from a client's bucket at a moment in seconds; return false without one."""
        left, since = self._tokens.pop(asker, (self._most, now))
        left = min(self._most, left + max(0.0, now - since) * self._most / _MINUTE)
        is_there = left >= 1
        self._tokens[asker] = (left - 1 if is_there else left, now)
        if len(self._tokens) > _REMEMBERED:
            self._tokens.popitem(last=False)
        return is_there


class HubRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of a hub: its address, its topics, the key of its publisher, and its limits.

    ``per_peer`` and ``per_origin`` are requests to subscribe in a minute, by their sender and by
    the origin of their callback; ``submissions`` are those in a second. Half as many deliveries as
    ``at_once`` go to receivers whose last one failed.
    """

    address: str
    topics: frozenset[str]
    key: bytes = b""
    plain_secrets: bool = False
    most_subscriptions: int = 100_000
    most_intents: int = 1_000
    per_peer: int = 120
    per_origin: int = 120
    submissions: int = 30
    at_once: int = 64
    per_host: int = 8

    def __repr__(self) -> str:
        return f"HubRules(address={self.address!r}, topics={self.topics!r})"

    def __post_init__(self) -> None:
        for uri in (self.address, *self.topics):
            if not uri.startswith(("http://", "https://")) or not is_plain(uri) or "<" in uri:
                raise ConfigurationError(f"{uri!r} cannot be the address of a hub or of a topic")

    @property
    def accepts_secrets(self) -> bool:
        """True if a secret that is sent to this hub remains secret."""
        parts = urlsplit(self.address)
        is_here = parts.hostname in {"127.0.0.1", "::1", "localhost"}
        return self.plain_secrets or is_here or parts.scheme == "https"


def is_notification(body: bytes) -> bool:
    """True if a body is a notification (Notification §3)."""
    try:
        header = reader.read(body).header
    except DocumentError:
        return False
    return header.capability in NOTIFICATIONS and not header.is_index


_MEDIA_TYPES: Final = frozenset({messages.XML, "text/xml"})
_RETRY_SECONDS: Final = 60


class Hub:
    """A hub's answers to publishers and subscribers; thread-safe."""

    def __init__(
        self,
        store: FileHub,
        clock: Clock,
        rules: Callable[[], HubRules],
        *,
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules, limits = rules, rules()
        self._wake = wake
        self._peers = RateLimiter(limits.per_peer)
        self._origins = RateLimiter(limits.per_origin)
        self._submissions = RateLimiter(_MINUTE * limits.submissions)

    def handle_form(self, body: bytes, peer: str) -> TextResponse:
        """Answer a form: a request to subscribe or to unsubscribe."""
        fields = messages.read_fields(body)
        if fields is None:
            return TextResponse(status=400, text="This is not a form.")
        intent = messages.read_subscription_request(fields)
        return intent if isinstance(intent, TextResponse) else self._handle_request(intent, peer)

    def _handle_request(self, intent: SubscriptionIntent, peer: str) -> TextResponse:
        rules, now = self._rules(), self._clock.monotonic()
        if intent.topic not in rules.topics:
            return TextResponse(status=404, text="This hub does not serve that topic.")
        if intent.secret and not rules.accepts_secrets:
            return TextResponse(status=400, text="Send hub.secret over https only.")
        is_few = self._peers.acquire(peer, now) and self._origins.acquire(intent.origin, now)
        if not is_few:
            return TextResponse(status=429, text="Too many requests.", retry_after=_RETRY_SECONDS)
        if self._is_full(intent.mode):
            return TextResponse(
                status=503, text="Too many subscriptions.", retry_after=_RETRY_SECONDS
            )
        lease = messages.bounded_lease(intent.lease)
        requested = to_microseconds(self._clock.now())
        self._store.add_intent(replace(intent, lease=lease, requested=requested))
        self._wake()
        return TextResponse(status=202, text="The request will be verified.")

    def _is_full(self, mode: str) -> bool:
        rules, waiting = self._rules(), self._store.count_intents()
        if mode == HubMode.UNSUBSCRIBE:
            return waiting >= 2 * rules.most_intents
        return (
            waiting >= rules.most_intents
            or self._store.count_subscriptions() >= rules.most_subscriptions
        )

    def submit(
        self, body: bytes, media_type: str, link: str, signatures: Sequence[str]
    ) -> TextResponse:
        """Accept a publisher's submission for the subscribers of a topic (Notification §4.1).

        The link and the signatures are all values of their fields.
        """
        media_type = media_type.partition(";")[0].strip().lower()
        if media_type not in _MEDIA_TYPES:
            return TextResponse(status=406, text="A notification must be application/xml.")
        topics, hubs = messages.read_links(link)
        if len(topics) != 1 or not hubs:
            return TextResponse(status=400, text="The Link field must have one self, and a hub.")
        [topic] = topics
        if topic not in self._rules().topics:
            return TextResponse(status=403, text="This hub does not serve that topic.")
        key = self._rules().key
        if not key or not is_signed(key, body, signatures):
            return TextResponse(status=403, text="The submission is not signed by the publisher.")
        if not self._submissions.acquire(topic, self._clock.monotonic()):
            return TextResponse(status=429, text="Too many notifications.", retry_after=1)
        if not is_notification(body):
            return TextResponse(status=400, text="This is not a notification.")
        payload = Payload(number=0, media_type=media_type, body=body)
        now = to_microseconds(self._clock.now())
        if self._store.accept(topic, payload, hashlib.sha256(body).digest(), now):
            self._wake()
        return TextResponse(status=204)
