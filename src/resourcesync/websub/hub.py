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

from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.subscriptions import HubStore, Payload, SubscriptionIntent
from resourcesync.websub import messages, payloads
from resourcesync.websub.messages import (
    METHODS,
    HubMode,
    SubscriptionRequest,
    TextResponse,
    is_plain,
    is_signed,
)

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
    """Rules of a hub.

    Attributes:
        address: The hub's own URI.
        topics: The only topics it serves.
        key: Verifies what publishers submit; empty accepts no signed submission.
        accepts_unsigned: True if anybody may submit, as in LANL's prototype; for closed networks.
        method: The signature method of deliveries.
        plain_secrets: True if a secret may come over plain HTTP from another machine.
        shortest, longest: Bounds of a lease, in seconds.
        most_subscriptions, most_intents: Most subscriptions, and most requests that wait for
            confirmation.
        per_peer: Requests to subscribe that one address may send in a minute.
        per_origin: Requests in a minute for callbacks of one origin.
        pings: Plain pings in a minute, and submissions in a second.
        at_once: Concurrent deliveries to receivers without a failure; half as many more go to the
            others.
        per_host: Concurrent deliveries to one origin.
    """

    address: str
    topics: frozenset[str]
    key: bytes = b""
    accepts_unsigned: bool = False
    method: str = messages.DEFAULT_METHOD
    plain_secrets: bool = False
    shortest: int = messages.SHORTEST_LEASE
    longest: int = messages.LONGEST_LEASE
    most_subscriptions: int = 100_000
    most_intents: int = 1_000
    per_peer: int = 120
    per_origin: int = 120
    pings: int = 30
    at_once: int = 64
    per_host: int = 8

    def __repr__(self) -> str:
        return f"HubRules(address={self.address!r}, topics={self.topics!r})"

    def __post_init__(self) -> None:
        for uri in (self.address, *self.topics):
            if not uri.startswith(("http://", "https://")) or not is_plain(uri) or "<" in uri:
                raise ConfigurationError(f"{uri!r} cannot be the address of a hub or of a topic")
        if self.method not in messages.METHODS:
            known = ", ".join(messages.METHODS)
            raise ConfigurationError(f"the signature method must be one of {known}")

    @property
    def accepts_secrets(self) -> bool:
        """True if a secret that is sent to this hub remains secret."""
        parts = urlsplit(self.address)
        is_here = parts.hostname in {"127.0.0.1", "::1", "localhost"}
        return self.plain_secrets or is_here or parts.scheme == "https"


_MEDIA_TYPES: Final = frozenset({messages.XML, "text/xml"})
_RETRY_SECONDS: Final = 60
_STORED: Final = TextResponse(status=202, text="The request will be verified.")


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission of a publisher.

    Attributes:
        body: The bytes.
        media_type: ``Content-Type`` as it came.
        link: All ``Link`` fields, joined with commas.
        signatures: The values of ``X-Hub-Signature``.
    """

    body: bytes
    media_type: str
    link: str = ""
    signatures: Sequence[str] = ()


class Hub:
    """A hub's answers to publishers and subscribers; thread-safe."""

    def __init__(
        self,
        store: HubStore,
        clock: Clock,
        rules: Callable[[], HubRules],
        *,
        look: Callable[[str], bytes | None],
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules, limits = rules, rules()
        self._read_topic = look
        self._wake = wake
        self._peers = RateLimiter(limits.per_peer)
        self._origins = RateLimiter(limits.per_origin)
        self._pings = RateLimiter(limits.pings)
        self._submissions = RateLimiter(60 * limits.pings)

    def handle_form(self, body: bytes, peer: str) -> TextResponse:
        """Answer a form: a request to subscribe or to unsubscribe, or a ping."""
        fields = messages.read_fields(body)
        if fields is None:
            return TextResponse(status=400, text="This is not a form.")
        if fields.get("hub.mode") == HubMode.PUBLISH:
            return self._handle_ping(fields.get("hub.topic") or fields.get("hub.url", ""))
        wish = messages.read_subscription_request(fields)
        return wish if isinstance(wish, TextResponse) else self._handle_request(wish, peer)

    def _handle_request(self, wish: SubscriptionRequest, peer: str) -> TextResponse:
        rules, now = self._rules(), self._clock.monotonic()
        if wish.topic not in rules.topics:
            return TextResponse(status=404, text="This hub does not serve that topic.")
        if wish.secret and not rules.accepts_secrets:
            return TextResponse(status=400, text="Send hub.secret over https only.")
        origin = messages.origin_of(wish.callback)
        if not self._peers.acquire(peer, now) or not self._origins.acquire(origin, now):
            return TextResponse(status=429, text="Too many requests.", retry_after=_RETRY_SECONDS)
        if self._is_full(wish.mode):
            return TextResponse(
                status=503, text="Too many subscriptions.", retry_after=_RETRY_SECONDS
            )
        self._store.add_intent(
            SubscriptionIntent(
                mode=wish.mode.value,
                topic=wish.topic,
                callback=wish.callback,
                secret=wish.secret,
                lease=messages.bounded_lease(
                    wish.lease, shortest=rules.shortest, longest=rules.longest
                ),
                echo=wish.echo,
                requested=to_microseconds(self._clock.now()),
            )
        )
        self._wake()
        return _STORED

    def _is_full(self, mode: HubMode) -> bool:
        """True if no more requests of this mode are accepted; there is more room to unsubscribe."""
        rules, waiting = self._rules(), self._store.count_intents()
        if mode is HubMode.UNSUBSCRIBE:
            return waiting >= 2 * rules.most_intents
        return (
            waiting >= rules.most_intents
            or self._store.count_subscriptions() >= rules.most_subscriptions
        )

    def outcome(self, body: bytes) -> TextResponse | None:
        """Return the answer to a stored request; ``None`` while it waits for the verification."""
        wish = messages.read_subscription_request(messages.read_fields(body) or {})
        if isinstance(wish, TextResponse) or not wish.is_synchronous:
            return _STORED
        if self._store.has_intent(wish.topic, wish.callback):
            return None
        is_there = self._store.find(wish.topic, wish.callback) is not None
        if is_there is (wish.mode is HubMode.SUBSCRIBE):
            return TextResponse(status=204)
        return TextResponse(status=409, text="The receiver did not confirm it.")

    def _handle_ping(self, topic: str) -> TextResponse:
        if topic not in self._rules().topics:
            return TextResponse(status=404, text="This hub does not serve that topic.")
        if not self._pings.acquire(topic, self._clock.monotonic()):
            return TextResponse(status=429, text="Too many pings.", retry_after=_RETRY_SECONDS)
        body = self._read_topic(topic)
        if body is None or payloads.kind_of(body) is None:
            return TextResponse(status=404, text="There is no notification for that topic.")
        self._accept(topic, body, messages.XML)
        return TextResponse(status=204)

    def submit(self, submission: Submission) -> TextResponse:
        """Accept a publisher's submission for the subscribers of a topic (Notification §4.1)."""
        body = submission.body
        media_type = submission.media_type.partition(";")[0].strip().lower()
        if media_type not in _MEDIA_TYPES:
            return TextResponse(status=406, text="A notification must be application/xml.")
        topics, hubs = messages.read_links(submission.link)
        if len(topics) != 1 or not hubs:
            return TextResponse(status=400, text="The Link field must have one self, and a hub.")
        [topic] = topics
        if topic not in self._rules().topics:
            return TextResponse(status=403, text="This hub does not serve that topic.")
        if not self._may_submit(submission):
            return TextResponse(status=403, text="The submission is not signed by the publisher.")
        if not self._submissions.acquire(topic, self._clock.monotonic()):
            return TextResponse(status=429, text="Too many notifications.", retry_after=1)
        if len(body) > messages.MOST_PAYLOAD:
            return TextResponse(status=413, text="A notification has at most 1 MiB.")
        if payloads.kind_of(body) is None:
            return TextResponse(status=400, text="This is not a notification.")
        self._accept(topic, body, media_type)
        return TextResponse(status=204)

    def _may_submit(self, submission: Submission) -> bool:
        rules = self._rules()
        if rules.key and submission.signatures:
            return is_signed(rules.key, submission.body, submission.signatures, METHODS[1:])
        return rules.accepts_unsigned

    def _accept(self, topic: str, body: bytes, media_type: str) -> None:
        payload = Payload(number=0, media_type=media_type, body=body)
        now = to_microseconds(self._clock.now())
        if self._store.accept(topic, payload, hashlib.sha256(body).digest(), now):
            self._wake()
