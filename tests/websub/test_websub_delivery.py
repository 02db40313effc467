"""What a hub does when time passes: nothing is real here but what it remembers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from resourcesync.errors import SourceUnavailableError, StoppedError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse
from resourcesync.push_state.rows import Payload, SubscriptionIntent
from resourcesync.push_state.stores import FileHub
from resourcesync.websub.delivery import Deliveries
from resourcesync.websub.hub import HubRules
from resourcesync.websub.messages import DAY, HOUR, read_fields
from tests.support.in_memory import ManualClock
from tests.support.servers.hubs import TOPIC, payload

Answer = Callable[[FetchRequest], FetchResponse | FetchFailure]


def agreed(request: FetchRequest) -> FetchResponse:
    """Repeat a challenge, or take a delivery."""
    if request.message is None:
        fields = read_fields(request.uri.partition("?")[2].encode())
        assert fields is not None
        request.sink.write(fields["hub.challenge"].encode())
    return FetchResponse(request=request, status=200, uri=request.uri)


def away(request: FetchRequest) -> FetchFailure:
    return FetchFailure(request=request, error=SourceUnavailableError("away", uri=request.uri))


def status(number: int, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: FetchResponse(
        request=request, status=number, uri=request.uri, headers=named
    )


class Loop:
    """A hub's deliveries, driven step by step."""

    def __init__(self, folder: Path, clock: ManualClock | None = None, **rules: Any) -> None:
        self.path = folder / "hub.db"
        self.clock = clock or ManualClock()
        self.store = FileHub(self.path)
        self.answer: Answer = agreed
        self.sent: list[FetchRequest] = []
        self._rules = HubRules(
            address="https://museum.example/hub", topics=frozenset({TOPIC}), **rules
        )
        self._numbers = count()
        self.restart()

    def close(self) -> None:
        self.store.close()

    def restart(self) -> None:
        self.deliveries = Deliveries(
            self.store,
            self.clock,
            lambda: self._rules,
            chance=lambda: 1.0,
            challenge=lambda: f"challenge-{next(self._numbers)}",
        )

    @property
    def now(self) -> int:
        return to_microseconds(self.clock.now())

    def turn(self) -> list[str]:
        before = len(self.sent)
        for request in self.deliveries.requests():
            if request is not None:
                self.sent.append(request)
                self.deliveries.record_outcome(self.answer(request))
        return [request.uri.partition("?")[0] for request in self.sent[before:]]

    def wish(self, callback: str, *, lease: int = 10 * DAY, mode: str = "subscribe") -> None:
        intent = SubscriptionIntent(
            mode=mode, topic=TOPIC, callback=callback, secret=b"", lease=lease, requested=self.now
        )
        self.store.add_intent(intent)
        self.deliveries.wake()

    def accept(self, minute: int = 0, *uris: str) -> None:
        told = Payload(number=0, media_type="application/xml", body=payload(*uris, minute=minute))
        assert self.store.accept(TOPIC, told, b"%d" % minute, self.now)
        self.deliveries.wake()

    def joined(self, *callbacks: str, lease: int = 10 * DAY) -> None:
        for callback in callbacks:
            self.wish(callback, lease=lease)
        self.turn()
        assert self.store.count_intents() == 0


@pytest.fixture
def open_loop(tmp_path: Path) -> Iterator[Callable[..., Loop]]:
    with ExitStack() as loops:
        yield lambda **rules: loops.enter_context(closing(Loop(tmp_path, **rules)))


@pytest.fixture
def loop(open_loop: Callable[..., Loop]) -> Loop:
    return open_loop()


ONE, TWO = "https://one.example/", "https://two.example/"


def test_a_wish_that_nobody_answers_is_asked_about_three_times_or_for_ten_minutes(
    loop: Loop,
) -> None:
    loop.answer = away
    loop.wish(ONE)
    assert loop.turn() == [ONE]
    assert loop.turn() == []
    for _ in range(2):
        loop.clock.sleep(5)
        assert loop.turn() == [ONE]
    assert loop.store.count_intents() == 0
    challenges = {
        request.uri.partition("hub.challenge=")[2].partition("&")[0] for request in loop.sent
    }
    assert len(challenges) == 3
    loop.wish(ONE)
    loop.store.postpone(loop.store.due_intents(loop.now, 1, [])[0], loop.now + 10**15)
    loop.turn()
    loop.clock.sleep(601)
    loop.turn()
    assert loop.store.count_intents() == 0


def test_what_fails_is_tried_again_ever_later_for_as_long_as_the_lease_lasts(loop: Loop) -> None:
    lease = 10 * HOUR
    loop.joined(ONE, lease=lease)
    loop.answer = away
    loop.accept()
    times = []
    for _ in range(100_000):
        if loop.turn():
            times.append(loop.clock.monotonic())
        if not loop.store.count_subscriptions():
            break
        loop.clock.sleep(max(loop.deliveries.pause(), 0.5))

    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(gaps) == HOUR
    assert lease - 2 * HOUR < times[-1] < lease + 1


def test_a_receiver_may_ask_for_more_time_but_not_for_ever(loop: Loop) -> None:
    loop.joined(ONE, TWO)
    loop.accept()
    loop.answer = status(503, retry_after="120")
    loop.turn()
    loop.clock.sleep(119)
    assert loop.turn() == []
    loop.clock.sleep(2)
    loop.answer = status(429, retry_after="99999999")
    assert sorted(loop.turn()) == [ONE, TWO]
    loop.clock.sleep(HOUR + 1)
    loop.answer = status(503, retry_after="tomorrow")
    assert sorted(loop.turn()) == [ONE, TWO]


def test_a_renewed_subscription_is_told_at_once_what_it_missed(loop: Loop) -> None:
    loop.joined(ONE)
    loop.answer = status(500)
    loop.accept()
    for _ in range(10):
        loop.turn()
        loop.clock.sleep(2000)
    loop.answer = agreed
    loop.joined(ONE)
    assert loop.sent[-1].message is not None
    assert loop.sent[-1].message.body == payload()
    assert loop.turn() == []


def test_what_is_published_while_a_receiver_confirms_is_not_missed(loop: Loop) -> None:
    def answer(request: FetchRequest) -> FetchResponse:
        if request.message is None:
            loop.accept(5)
        return agreed(request)

    loop.accept(1)
    loop.answer = answer
    loop.wish(ONE)
    assert loop.turn() == [ONE, ONE]
    assert loop.sent[-1].message is not None
    assert loop.sent[-1].message.body == payload(minute=5)


def test_a_clock_that_is_set_back_makes_no_lease_longer(loop: Loop) -> None:
    loop.joined(ONE, lease=HOUR)
    wall = loop.clock.now()
    loop.clock.now = lambda: wall  # type: ignore[method-assign]  # it stands, or is set back
    loop.clock.sleep(HOUR + 61)
    loop.accept()
    assert loop.turn() == []
    assert loop.store.count_subscriptions() == 0


def test_a_clock_that_is_set_back_before_a_restart_makes_no_lease_longer(
    open_loop: Callable[..., Loop],
) -> None:
    loop = open_loop()
    loop.joined(ONE, lease=HOUR)
    loop.clock.sleep(HOUR - 61)
    loop.turn()
    loop.store.close()

    again = open_loop(clock=ManualClock())  # an hour before the end, says this clock
    assert again.store.count_subscriptions() == 1
    again.clock.sleep(122)
    again.turn()
    assert again.store.count_subscriptions() == 0


def test_only_so_many_are_told_at_a_time_and_half_as_many_late_ones(
    open_loop: Callable[..., Loop],
) -> None:
    loop = open_loop(at_once=8, per_host=2)
    for name in ("h", "new"):
        loop.joined(*(f"https://{name}{number}.example/" for number in range(20)))
    loop.answer = lambda request: away(request) if "//h" in request.uri else agreed(request)
    loop.accept()
    loop.turn()
    loop.clock.sleep(60)
    loop.accept(1)

    flying = list(_flying(loop))
    assert len(flying) == 12
    assert sum("new" in request.uri for request in flying) == 8
    assert sum("//h" in request.uri for request in flying) == 4


def test_no_origin_has_more_than_its_places_and_none_is_forgotten(
    open_loop: Callable[..., Loop],
) -> None:
    loop = open_loop(at_once=8, per_host=2)
    crowd = [f"https://crowd.example/{number}" for number in range(30)]
    loop.joined(*crowd, ONE, TWO)
    loop.accept()
    flying = [request.uri for request in _flying(loop)]
    assert len(flying) == 4
    assert {ONE, TWO} < set(flying)

    loop.deliveries.give_up()
    assert sorted(loop.turn()) == sorted([*crowd, ONE, TWO])
    assert loop.turn() == []


def _flying(loop: Loop) -> Iterator[FetchRequest]:
    """Yield what is sent when nothing comes back."""
    for request in loop.deliveries.requests():
        if request is None:
            return
        yield request


def test_a_hub_that_is_stopped_owes_what_was_in_flight(loop: Loop) -> None:
    loop.joined(ONE)
    loop.accept()
    requests = loop.deliveries.requests()
    assert next(requests) is not None
    loop.deliveries.stop()
    with pytest.raises(StoppedError):
        next(requests)
    loop.restart()
    assert loop.turn() == [ONE]


def test_bodies_that_everybody_has_are_forgotten_but_the_newest(loop: Loop) -> None:
    loop.joined(ONE)
    for minute in range(5):
        loop.accept(minute)
    loop.turn()
    loop.clock.sleep(61)
    loop.turn()
    assert loop.store.next_payload(TOPIC, 0).body == payload(minute=4)
    assert not loop.store.accept(TOPIC, Payload(number=0, media_type="x", body=b"x"), b"0", 0)


def test_who_was_away_gets_each_notification_in_its_order(loop: Loop) -> None:
    loop.joined(ONE)
    loop.answer = away
    for minute in range(4):
        loop.accept(minute)
        loop.turn()
    loop.answer = agreed
    loop.clock.sleep(60)
    assert loop.turn() == [ONE] * 4
    told = [request.message.body for request in loop.sent[-4:] if request.message is not None]
    assert told == [payload(minute=minute) for minute in range(4)]
