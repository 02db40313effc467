"""``eventstreams:``: a stream is gone on with wherever it was cut."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from resourcesync.adapters import http
from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DiscontinuityError,
    ResourceMissingError,
    SourceRefusedError,
    StateError,
)
from resourcesync.model.entries import Resource
from resourcesync.ports.accounts import ChangeBatch, ResourceAccount
from resourcesync_eventstreams import account as streams
from resourcesync_eventstreams import pending_changes
from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.wikimedia import LONG_AGO, event, names, omissions, options
from tests.support.servers.event_server import EventServer
from tests.support.waiting import once


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EventServer]:
    monkeypatch.setattr(streams, "FIRST_PAUSE", 0.1)
    monkeypatch.setattr(pending_changes, "MAX_BATCH_SECONDS", 0.02)
    monkeypatch.setattr(http, "MAX_TURN_SECONDS", 0.02)
    with EventServer() as running:
        yield running


@contextmanager
def opened(server: EventServer, **values: str) -> Iterator[ResourceAccount]:
    given = options(f"eventstreams:{server.url}", **{"quiet": "0.25", **values})
    with streams.open_account(given) as account:
        yield account


def begun(account: ResourceAccount, server: EventServer) -> str:
    first = account.position()
    told: list[ChangeBatch] = []
    server.tell_next(event("first"))
    for lot in account.changes(first, 5):
        told.append(lot)
        if lot.changes:
            break
    assert names(told) == ["first"]
    return told[-1].position


class TestEventStreams(AccountSuite):
    can_list_resources = has_lengths = has_digests = False
    server: EventServer

    @pytest.fixture
    def account(self, server: EventServer) -> Iterator[ResourceAccount]:
        self.server = server
        with opened(server, quiet="0.2") as account:
            yield _Begun(account, begun(account, server))

    def put(self, name: str, content: bytes) -> str:
        self.server.tell(event(name, "new"))
        return f"https://h/{name}"

    def remove(self, name: str) -> None:
        self.server.tell(event(name, "delete"))

    def outage(self) -> AbstractContextManager[None]:
        return _answering(self.server, 503)

    def expire_changes(self) -> bool:
        self.server.manners.oldest = self.server.told
        self.server.tell(event("later", moment=LONG_AGO + timedelta(hours=3)))
        return True


class _Begun(ResourceAccount):
    """An account whose present position is one that a server gave."""

    can_list_resources = False

    def __init__(self, account: ResourceAccount, position: str) -> None:
        self._account, self._position = account, position

    def resources(self) -> Iterator[Resource]:
        return self._account.resources()

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        return self._account.changes(after, wait)

    def position(self) -> str:
        for lot in self._account.changes(self._position, 0):
            self._position = lot.position
        return self._position


@contextmanager
def _answering(server: EventServer, status: int) -> Iterator[None]:
    server.manners.statuses = [status] * 1_000
    yield
    server.manners.statuses = []


def test_every_event_is_told_once_however_often_the_connection_is_cut(server: EventServer) -> None:
    with opened(server) as account:
        position = begun(account, server)
        for number in range(24):
            server.tell(event(f"n{number}"))
        server.manners.cut_after = 4
        server.manners.prelude = b"retry: 1\n\n"
        told: list[ChangeBatch] = []
        for lot in account.changes(position, 8):  # the pauses do not grow, for something comes
            told.append(lot)
            if "n23" in names(told):
                break

    assert names(told) == [f"n{number}" for number in range(24)]
    asked = [fields.get("last-event-id") for fields in server.asked]
    assert asked[0] is None
    assert asked[2:4] == ["4", "8"]
    assert {fields["accept"] for fields in server.asked} == {"text/event-stream"}


def test_news_are_told_within_a_second_while_it_waits_and_it_ends_in_time(
    server: EventServer,
) -> None:
    with opened(server) as account:
        position = begun(account, server)
        server.asked.clear()
        came, told = list[float](), list[float]()

        def tell() -> None:
            told.append(time.monotonic())
            server.tell(event("a"))

        began = time.monotonic()
        with once(lambda: server.asked, tell):
            for lot in account.changes(position, 0.9):
                came += [time.monotonic()] * len(lot.changes)

    assert len(came) == 1
    assert 0 < came[0] - told[0] < 0.5
    assert 0.8 < time.monotonic() - began < 3


def test_a_connection_that_falls_silent_is_begun_anew(server: EventServer) -> None:
    with opened(server, silence="0.25") as account:
        position = begun(account, server)
        server.asked.clear()
        list(account.changes(position, 0.6))
        assert len(server.asked) >= 2

        server.asked.clear()
        server.manners.keep_alive = 0.05
        list(account.changes(position, 0.6))
        assert len(server.asked) == 1


def test_a_server_that_is_away_for_a_while_is_waited_for_and_asked_less_and_less(
    server: EventServer,
) -> None:
    with opened(server) as account:
        position = begun(account, server)
        server.tell(event("a"))
        server.manners.statuses = [503, 502]
        server.asked.clear()
        began = time.monotonic()
        for lot in account.changes(position, 20):
            if lot.changes:
                break

    assert len(server.asked) == 3
    assert 0.3 <= time.monotonic() - began < 3  # a tenth of a second, then two


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, SourceRefusedError),
        (403, SourceRefusedError),
        (404, ResourceMissingError),
        (204, BadResponseError),
    ],
)
def test_what_will_not_pass_is_told_at_once(
    server: EventServer, status: int, error: type[Exception]
) -> None:
    with opened(server) as account, _answering(server, status), pytest.raises(error):
        list(account.changes(account.position(), 30))
    assert len(server.asked) == 1


def test_a_server_that_says_when_to_come_back_is_heeded(server: EventServer) -> None:
    with opened(server) as account:
        position = begun(account, server)
        server.tell(event("a"))
        server.manners.statuses = [503]
        server.manners.fields = {"Retry-After": "1"}
        began = time.monotonic()
        assert names([next(iter(account.changes(position, 9)))]) == ["a"]

    assert time.monotonic() - began >= 1


def test_a_page_is_no_stream_of_events(server: EventServer) -> None:
    server.manners.kind = "text/html"
    server.manners.ends = True
    with opened(server) as account, pytest.raises(BadResponseError, match="not an event stream"):
        list(account.changes(account.position(), 5))


@pytest.mark.parametrize("bad", ["ä", "x" * 9_000, "a\x01b"])
def test_ids_that_cannot_be_sent_back_are_refused(server: EventServer, bad: str) -> None:
    with opened(server) as account:
        position = begun(account, server)
        server.named(lambda number: bad if number > 3 else str(number))
        for _ in range(5):
            server.tell(event("a"))
        with pytest.raises(BadResponseError, match="id"):
            list(account.changes(position, 0))


def test_a_stream_without_ids_is_followed_only_if_gaps_may_be(server: EventServer) -> None:
    server.named(lambda _: "")
    server.tell_next(event("a"))
    with opened(server) as account, pytest.raises(BadResponseError, match="no id"):
        list(account.changes(account.position(), 3))
    with opened(server, gaps="accept") as account:
        server.tell_next(event("a"))
        assert names([next(iter(account.changes(account.position(), 3)))]) == ["a"]


def test_what_says_nothing_or_too_much_is_left_out(server: EventServer) -> None:
    with opened(server) as account:
        position = begun(account, server)
        server.tell(b"{]")
        server.tell(b"x" * 3_000_000)
        server.tell(b"whatever", "other")
        server.tell(event("a"))
        told = list(account.changes(position, 0))

    assert names(told) == ["a"]
    assert [(name[:9], reason[:30]) for name, reason in omissions(told)] == [
        ("{]", omissions(told)[0][1][:30]),
        ("xxxxxxxxx", "an event of more than 1,048,57"),
    ]


def test_a_reader_that_is_slow_holds_the_server_up_and_no_memory(
    server: EventServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(server) as account:
        position = begun(account, server)
        monkeypatch.setattr(pending_changes, "MAX_BATCH_SECONDS", 5.0)
        for number in range(1_100):
            server.tell(event(f"n{number}", comment="t" * 2_000))
        told = []
        for lot in account.changes(position, 0):
            told.append(len(lot.changes))
            time.sleep(0.3)  # longer than what is taken for quiet
        assert told == [1_000, 100]


def test_an_address_that_is_private_is_asked_only_because_it_was_named(server: EventServer) -> None:
    server.manners.statuses = [302]
    server.manners.fields = {"Location": f"http://localhost:{server.url.split(':')[2]}"}
    with opened(server) as account, pytest.raises(SourceRefusedError):
        list(account.changes(account.position(), 0))


@pytest.mark.parametrize(
    ("address", "values"),
    [
        ("eventstreams:example.org/stream", {}),
        ("eventstreams:ftp://example.org/stream", {}),
        ("eventstreams:http://me:hush@127.0.0.1/", {}),
        ("eventstreams:http://127.0.0.1/", {"page": "Main"}),
        ("eventstreams:http://127.0.0.1/", {"quiet": "soon"}),
        ("eventstreams:http://127.0.0.1/", {"silence": "-1"}),
        ("eventstreams:http://127.0.0.1/", {"gaps": "maybe"}),
    ],
)
def test_what_cannot_work_is_told_before_anything_is_asked(
    address: str, values: dict[str, str]
) -> None:
    with (
        pytest.raises(ConfigurationError) as refused,
        streams.open_account(options(address, **values)),
    ):
        raise AssertionError("it was opened")
    assert "hush" not in refused.value.message


def test_a_position_that_is_none_is_told(server: EventServer) -> None:
    with opened(server) as account:
        with pytest.raises(StateError):
            list(account.changes("nonsense", 0))
        with pytest.raises(ConfigurationError):
            list(account.resources())


def test_a_stream_that_does_not_reach_back_is_a_gap(server: EventServer) -> None:
    server.tell(event("A", moment=(moment := datetime(2026, 1, 2, tzinfo=UTC))))
    with opened(server, since="2026-01-01T00:00:00Z") as account:
        told = list(account.changes(account.position(), 0))
        server.tell(event("B", moment=moment + timedelta(hours=1, minutes=59)))
        told = list(account.changes(told[-1].position, 0))
        server.tell(b"no JSON, and so no moment")
        server.tell(event("C", moment=moment + timedelta(hours=4)))
        with pytest.raises(DiscontinuityError, match="reach back"):
            list(account.changes(told[-1].position, 0))
    with opened(server, gaps="accept") as account:
        assert [len(change.changes) for change in account.changes(told[-1].position, 0)] == [1]
