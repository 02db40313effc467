"""What a hub must do (WebSub §5 to §7), seen by its subscribers."""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode
from uuid import uuid4

from resourcesync.websub.messages import read_links
from tests.support.servers.hubs import Said, post
from tests.support.servers.listening import Heard, Listener

FORM: Final = "application/x-www-form-urlencoded"
_SECRET: Final = "a secret of this subscription"
_LEASE: Final = "7200"
_PATIENCE: Final = 20.0
_PUBLICATIONS: Final = 3


@dataclass(frozen=True)
class HubUnderTest:
    """A hub, and what makes its topics change."""

    address: str
    topics: Mapping[str, str]  # a topic by its media type
    # changes a topic, tells the hub, and returns the topic's new content
    publish: Callable[[str], bytes]


class SubscribingSide:
    """A subscriber that asks one hub for one topic, and has callbacks of its own."""

    def __init__(self, hub: HubUnderTest, listener: Listener, topic: str) -> None:
        self.hub, self.topic = hub, topic
        self._listener = listener
        self._path = f"/{uuid4().hex}"
        self.callback = listener.origin + self._path

    def another(self) -> "SubscribingSide":
        """Return another subscriber of the same topic."""
        return SubscribingSide(self.hub, self._listener, self.topic)

    def request(self, mode: str = "subscribe", **more: str) -> Said:
        """Send a request (§5.1)."""
        fields = {"hub.mode": mode, "hub.topic": self.topic, "hub.callback": self.callback}
        return post(self.hub.address, urlencode(fields | more).encode(), content_type=FORM)

    def verifications(self, mode: str = "subscribe") -> list[Heard]:
        return [
            heard
            for heard in self._listener.heard
            if heard.method == "GET"
            and heard.path == self._path
            and heard.query.get("hub.mode") == mode
        ]

    def deliveries(self) -> list[Heard]:
        return self._listener.posts(self._path)

    def subscribe(self, **more: str) -> None:
        """Subscribe, and wait for the verification (§5.3)."""
        before = len(self.verifications())
        self._accepted(self.request(**{"hub.lease_seconds": _LEASE, **more}))
        self._until(lambda: len(self.verifications()) > before, "no verification")
        query = self.verifications()[-1].query
        assert query.get("hub.topic") == self.topic, "the verification names another topic"
        assert query.get("hub.challenge"), "the verification has no challenge"

    def unsubscribe(self) -> None:
        self._accepted(self.request("unsubscribe"))
        self._until(lambda: self.verifications("unsubscribe"), "no verification of the end")
        query = self.verifications("unsubscribe")[-1].query
        assert query.get("hub.topic") == self.topic, "the verification names another topic"
        assert query.get("hub.challenge"), "the verification has no challenge"

    def receives(self, media_type: str, secret: str = "") -> bytes:
        """Have the topic change, and judge what is delivered (§7); return it."""
        body, delivery = self._published()
        topics, hubs = read_links(delivery.fields.get("link", ""))
        assert delivery.body == body, "the delivery is not the topic's content"
        assert topics == (self.topic,), "the Link field names no topic"
        assert hubs, "the Link field names no hub"
        found = delivery.fields.get("content-type", "").partition(";")[0].strip()
        assert found == media_type, f"the delivery is {found or 'of no type'}"
        if secret:
            signature = delivery.fields.get("x-hub-signature", "")
            assert is_signature(signature, secret, body), "the delivery is not rightly signed"
        return body

    def _published(self) -> tuple[bytes, Heard]:
        """Publish until it is delivered: a hub may confirm a subscription before it stores it."""
        before = len(self.deliveries())
        for _ in range(_PUBLICATIONS):
            body = self.hub.publish(self.topic)
            if self._listener.wait(lambda: len(self.deliveries()) > before, _PATIENCE / 4):
                return body, self.deliveries()[-1]
        raise AssertionError("no delivery")

    def _until(self, event: Callable[[], object], otherwise: str) -> None:
        assert self._listener.wait(lambda: bool(event()), _PATIENCE), otherwise

    @staticmethod
    def _accepted(answer: Said) -> None:
        assert answer.status == 202, f"the hub answers {answer.status}"


def is_signature(text: str, secret: str, body: bytes) -> bool:
    """Tell whether a signature of one of the four methods of §7.1 is right."""
    method, _, digest = text.partition("=")
    if method not in {"sha1", "sha256", "sha384", "sha512"}:
        return False
    return hmac.compare_digest(hmac.new(secret.encode(), body, method).hexdigest(), digest)


Check = Callable[[SubscribingSide, str], None]


def _delivered(side: SubscribingSide, media_type: str) -> None:
    side.subscribe()
    side.receives(media_type)


def _typical(side: SubscribingSide, media_type: str) -> None:
    _delivered(side, media_type)
    lease = side.verifications()[-1].query.get("hub.lease_seconds", "")
    assert lease.isdecimal(), "the verification grants no lease"
    assert int(lease) > 0, f"the verification grants a lease of {lease} seconds"


def _with_secret(side: SubscribingSide, media_type: str) -> None:
    more = {"hub.secret": _SECRET}
    side.subscribe(**more)
    side.receives(media_type, _SECRET)


def _with_more_parameters(side: SubscribingSide, media_type: str) -> None:
    side.subscribe(foo="bar", **{"hub.unknown": "any text"})
    side.receives(media_type)


def _again(side: SubscribingSide, media_type: str) -> None:
    side.subscribe()
    side.receives(media_type)
    side.subscribe()
    side.receives(media_type)
    side.receives(media_type)
    bodies = [delivery.body for delivery in side.deliveries()]
    assert len(bodies) == len(set(bodies)), "a second subscription has each content twice"


def _ended(side: SubscribingSide, media_type: str) -> None:
    side.subscribe()
    side.receives(media_type)
    other = side.another()
    other.subscribe()
    other.receives(media_type)
    side.unsubscribe()
    # The hub stores the end after our answer, which we cannot see: contents before it may come.
    for _ in range(_PUBLICATIONS):
        contents = {other.receives(media_type), other.receives(media_type)}
        if contents.isdisjoint(delivery.body for delivery in side.deliveries()):
            return
    raise AssertionError("deliveries go on after the end")


XML: Final = "application/xml"
HUB_CHECKS: Final[Mapping[str, tuple[str, str, Check]]] = {
    "100": ("a typical subscription is verified and delivered to", XML, _typical),
    "101": ("with a secret, deliveries are signed", XML, _with_secret),
    "102": ("unknown parameters are ignored", XML, _with_more_parameters),
    "103": ("a second subscription replaces the first", XML, _again),
    "104": ("after an unsubscription nothing is delivered", XML, _ended),
    "105": ("plain text is delivered as it is", "text/plain", _delivered),
    "106": ("JSON is delivered as it is", "application/json", _delivered),
}
"""What is checked, the media type of the topic, and the check."""


def check_hub(number: str, hub: HubUnderTest) -> None:
    """Judge a hub by one check."""
    _, media_type, check = HUB_CHECKS[number]
    with Listener() as listener:
        check(SubscribingSide(hub, listener, hub.topics[media_type]), media_type)
