"""What a subscriber must do (WebSub §4, §5 and §7), seen by topics and hubs with a script."""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlencode
from uuid import uuid4

from tests.support.servers.hubs import Said, post, said
from tests.support.servers.listening import Heard, Listener, Reply

_PATIENCE: Final = 30.0
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Page:
    """A body that names a topic and a hub."""

    media_type: str  # what it is served as
    # returns the body from the addresses of both; they are empty for a body without
    write: Callable[[str, str], bytes]


@dataclass
class Site:
    """Topics and hubs below one path for each check."""

    listener: Listener
    page: Page  # the body of topics
    # answers of other addresses, such as the documents of a Source
    others: dict[str, Reply] = field(default_factory=dict)
    topics: dict[str, Reply] = field(default_factory=dict)
    hubs: dict[str, Reply] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listener.answer = self._answer

    def _answer(self, heard: Heard) -> Reply:
        answers = self.hubs if heard.method == "POST" else {**self.others, **self.topics}
        return answers.get(heard.path, (404, b""))

    def uri(self, path: str) -> str:
        return self.listener.origin + path


@dataclass(frozen=True)
class SubscriberUnderTest:
    """A subscriber of others' topics."""

    # has it subscribe to the topic at an address; the name is that of the check
    subscribe: Callable[[str, str], None]
    accepted: Callable[[str], int]  # returns how many deliveries for a check it acted on so far
    pages: Mapping[str, Page]  # the bodies that it is shown, by the number of the check


@dataclass
class HubSide:
    """The hub of one check, and what its topic says."""

    site: Site  # the topics and hubs
    name: str  # the name of the check
    under: SubscriberUnderTest
    page: Page  # the body of the topic

    def uri(self, name: str) -> str:
        return self.site.uri(f"/{self.name}/{name}")

    def topic(
        self,
        name: str = "topic.xml",
        *,
        itself: str = "topic.xml",
        link: str = "hub",
        body: str = "",
    ) -> None:
        """Serve a topic that names hubs in its ``Link`` field, in its body, or in both."""
        topic = self.uri(itself)
        shown = self.page.write(topic, self.uri(body)) if body else self.page.write("", "")
        fields = {"content-type": self.page.media_type}
        if link:
            fields["link"] = f'<{self.uri(link)}>; rel="hub", <{topic}>; rel="self"'
        self.site.topics[f"/{self.name}/{name}"] = 200, shown, fields

    def moved(self, status: int) -> None:
        """Have the topic's address lead to another one."""
        self.topic("moved.xml", itself="moved.xml")
        location = {"location": self.uri("moved.xml")}
        self.site.topics[f"/{self.name}/topic.xml"] = status, b"", location

    def leads(self, status: int) -> None:
        """Have the hub lead to another one."""
        location = {"location": self.uri("other-hub")}
        self.site.hubs[f"/{self.name}/hub"] = status, b"", location
        self.site.hubs[f"/{self.name}/other-hub"] = 202, b""

    def request(self, hub: str = "hub", *, topic: str = "topic.xml") -> dict[str, str]:
        """Have it subscribe; return its request (§5.1) to the hub that must have it."""
        self.site.hubs.setdefault(f"/{self.name}/{hub}", (202, b""))
        self.under.subscribe(self.name, self.uri("topic.xml"))
        path = f"/{self.name}/{hub}"
        came = self.site.listener.wait(lambda: bool(self.site.listener.posts(path)), _PATIENCE)
        assert came, "no request to the hub"
        [first, *_] = self.site.listener.posts(path)
        found = dict(parse_qsl(first.body.decode(), keep_blank_values=True))
        assert first.fields.get("content-type", "").startswith(_FORM), "the request is no form"
        assert found.get("hub.mode") == "subscribe", "the request is none to subscribe"
        assert found.get("hub.topic") == self.uri(topic), "the request names another topic"
        assert found.get("hub.callback", "").startswith("http"), "the request has no callback"
        return found

    def verify(self, asked: Mapping[str, str], topic: str = "") -> Said:
        """Verify the request (§5.3); return the answer."""
        challenge = uuid4().hex
        fields = {"mode": "subscribe", "topic": topic or asked["hub.topic"]}
        fields |= {"challenge": challenge, "lease_seconds": "864000"}
        query = urlencode({f"hub.{name}": value for name, value in fields.items()})
        callback = asked["hub.callback"]
        answer = said(f"{callback}{'&' if '?' in callback else '?'}{query}")
        if not topic:
            assert (answer.status, answer.text) == (200, challenge), "the challenge is not repeated"
        return answer

    def deliver(self, asked: Mapping[str, str], *, secret: str | None = None) -> Said:
        """Deliver new content (§7), signed with its secret or with another one."""
        topic = asked["hub.topic"]
        body = self.page.write(topic, self.uri("hub")) + f"<!-- {uuid4().hex} -->".encode()
        fields = {"link": f'<{self.uri("hub")}>; rel="hub", <{topic}>; rel="self"'}
        key = asked.get("hub.secret", "") if secret is None else secret
        if key:
            fields["X-Hub-Signature"] = (
                "sha256=" + hmac.new(key.encode(), body, "sha256").hexdigest()
            )
        return post(asked["hub.callback"], body, content_type=self.page.media_type, **fields)

    def subscribed(self) -> dict[str, str]:
        """Have it subscribe to a plain topic, and verify that."""
        self.topic()
        asked = self.request()
        self.verify(asked)
        return asked

    def accepts(self, number: int) -> None:
        """Wait until it acted on so many deliveries in all, and no more."""
        until = self.site.listener
        until.wait(lambda: self.under.accepted(self.name) >= number, _PATIENCE)
        found = self.under.accepted(self.name)
        assert found == number, f"{found} deliveries were used, not {number}"

    def completes(self, hub: str = "hub", *, topic: str = "topic.xml") -> None:
        """Have it subscribe at a hub, verify, and deliver."""
        asked = self.request(hub, topic=topic)
        self.verify(asked)
        assert self.deliver(asked).status // 100 == 2, "a delivery is refused"
        self.accepts(1)


Check = Callable[[HubSide], None]


def _by_field(side: HubSide) -> None:
    side.topic()
    side.completes()


def _by_body(side: HubSide) -> None:
    side.topic(link="", body="hub")
    side.completes()


def _by_field_first(side: HubSide) -> None:
    side.topic(link="hub", body="wrong-hub")
    side.completes()
    wrong = side.site.listener.posts(f"/{side.name}/wrong-hub")
    assert not wrong, "the hub of the body was asked, too"


def _another_self(side: HubSide) -> None:
    side.topic(itself="real.xml")
    side.completes(topic="real.xml")


def _moved(status: int) -> Check:
    def check(side: HubSide) -> None:
        side.moved(status)
        side.completes(topic="moved.xml")

    return check


def _hub_leads(status: int) -> Check:
    def check(side: HubSide) -> None:
        side.topic()
        side.leads(status)
        side.completes("other-hub")

    return check


def _foreign_topic(side: HubSide) -> None:
    side.topic()
    asked = side.request()
    answer = side.verify(asked, side.uri("not-asked-for.xml"))
    assert answer.status == 404, f"a topic that it did not ask for is answered {answer.status}"
    side.verify(asked)


def _delivered(side: HubSide) -> None:
    asked = side.subscribed()
    answer = side.deliver(asked)
    assert answer.status // 100 == 2, f"a delivery is answered {answer.status}"
    side.accepts(1)


def _forged(secret: str) -> Check:
    def check(side: HubSide) -> None:
        asked = side.subscribed()
        assert asked.get("hub.secret"), "it sends no secret"
        side.deliver(asked, secret=secret)
        # The right one after it is the only one that counts.
        assert side.deliver(asked).status // 100 == 2, "the right delivery is refused"
        side.accepts(1)

    return check


SUBSCRIBER_CHECKS: Final[Mapping[str, tuple[str, Check]]] = {
    "100": ("the Link field leads to the hub", _by_field),
    "101": ("links in the body lead to the hub", _by_body),
    "102": ("links in an Atom feed lead to the hub", _by_body),
    "103": ("links in an RSS feed lead to the hub", _by_body),
    "104": ("the Link field precedes the body", _by_field_first),
    "200": ("the topic is what `self` names", _another_self),
    "201": ("a topic that answers 302 is followed", _moved(302)),
    "202": ("a topic that answers 301 is followed", _moved(301)),
    "203": ("a hub that answers 307 is followed", _hub_leads(307)),
    "204": ("a hub that answers 308 is followed", _hub_leads(308)),
    "205": ("a verification of another topic gets 404", _foreign_topic),
    "300": ("a delivery gets 2xx", _delivered),
    "301": ("a delivery with a wrong signature is not used", _forged("another secret")),
    "302": ("a delivery without a signature is not used", _forged("")),
}


def check_subscriber(number: str, under: SubscriberUnderTest, site: Site) -> None:
    """Judge a subscriber by one check."""
    page = under.pages.get(number, site.page)
    SUBSCRIBER_CHECKS[number][1](HubSide(site, f"check{number}", under, page))
