"""A subscriber for tests: hubs with a script, a clock that stands, hints that are kept."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlencode

from resourcesync.errors import SourceUnavailableError
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Outcomes
from resourcesync.push_state.rows import ChannelSubscription
from resourcesync.push_state.stores import FileFollowers
from resourcesync.websub.channels import Channel
from resourcesync.websub.messages import TextResponse, sign
from resourcesync.websub.subscriber import Subscriber
from tests.support.in_memory import ManualClock

TOPIC = "https://museum.example/resourcesync/changenotification.xml"
HUB = "https://hub.example/hub"
CHANNEL = Channel(topic=TOPIC, hubs=(HUB,))


@dataclass
class ScriptedHubs:
    """Answers each request with what ``answer`` says; 0 is no answer at all."""

    answer: Callable[[FetchRequest], tuple[int, dict[str, str]]] = lambda _: (202, {})
    asked: list[FetchRequest] = field(default_factory=list)

    def fetch(self, requests: Iterable[FetchRequest | None]) -> Outcomes:
        for request in requests:
            assert request is not None
            self.asked.append(request)
            status, headers = self.answer(request)
            if status:
                yield FetchResponse(
                    request=request, status=status, uri=request.uri, headers=headers
                )
            else:
                yield FetchFailure(request=request, error=SourceUnavailableError("away", uri=HUB))

    def forms(self) -> list[dict[str, str]]:
        found = []
        for request in self.asked:
            assert request.message is not None
            fields = parse_qs(request.message.body.decode(), strict_parsing=True)
            found.append({name: values[0] for name, values in fields.items()})
        return found


class SubscriberAndHubs:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.hubs = ScriptedHubs()
        self.store = FileFollowers(folder / "push.db")
        self.hints: list[str] = []
        self._numbers = count(1)
        self.subscriber = self.restarted()

    def close(self) -> None:
        self.store.close()

    def restarted(self, callback_base: str = "https://aggregator.example/push") -> Subscriber:
        self.subscriber = Subscriber(
            self.store,
            self.hubs,
            self.clock,
            callback_base=callback_base,
            on_hint=self.hints.append,
            token=lambda: f"token-{next(self._numbers)}",
            chance=lambda: 0.5,
            hint_every=10.0,
        )
        return self.subscriber

    def follower(self) -> ChannelSubscription:
        [found] = self.store.subscriptions()
        return found

    def ask(self, token: str, **said: str) -> TextResponse:
        fields = {"mode": "subscribe", "topic": TOPIC, "challenge": "c0ffee"} | said
        query = urlencode({f"hub.{name}": value for name, value in fields.items()})
        return self.subscriber.verify(token, query.encode())

    def begin(self, name: str = "arxiv") -> None:
        self.subscriber.follow(name, [CHANNEL])
        self.subscriber.tick()

    def subscribed(self, name: str = "arxiv") -> ChannelSubscription:
        self.begin(name)
        [waiting] = [
            subscription for subscription in self.store.subscriptions() if subscription.name == name
        ]
        assert self.ask(waiting.next_token, lease_seconds="864000").status == 200
        [active] = [
            subscription for subscription in self.store.subscriptions() if subscription.name == name
        ]
        return active

    def deliver(
        self, follower: ChannelSubscription, body: bytes, *, secret: bytes = b""
    ) -> TextResponse:
        signature = sign(secret or follower.secret, body)
        return self.subscriber.deliver(follower.token, [signature], body)
