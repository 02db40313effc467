"""``redis://``: a stream of a real Redis, also when it is trimmed, begun anew, or closed to us."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from resourcesync.backends.feeds import redis_feed
from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DiscontinuityError,
    SourceRefusedError,
    SourceUnavailableError,
    StateError,
)
from resourcesync.ports import Clock
from resourcesync.ports.accounts import ChangeBatch, ResourceAccount
from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.feeding import line, names, omissions, options
from tests.support.servers import redis_server
from tests.support.waiting import PlannedClock

redis = pytest.importorskip("redis", reason="the extra 'redis' is not installed")
if not redis_server.installed():
    pytest.skip("redis-server is not installed", allow_module_level=True)

if TYPE_CHECKING:
    from redis import Redis

STREAM = "changes"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server.running(tmp_path_factory.mktemp("redis")) as found:
        yield found


@pytest.fixture
def client(address: str) -> Iterator["Redis"]:
    with redis.Redis.from_url(address) as client:
        client.flushall()
        yield client


@contextmanager
def stream(address: str, clock: Clock | None = None, /, **values: str) -> Iterator[ResourceAccount]:
    with redis_feed.open_stream(options(address, clock, stream=STREAM, **values)) as account:
        yield account


class TestRedisStream(AccountSuite):
    can_list_resources = False
    many = 450
    client: "Redis"

    @pytest.fixture
    def account(self, address: str, client: "Redis") -> Iterator[ResourceAccount]:
        self.client = client
        with stream(address) as account:
            yield account

    def put(self, name: str, content: bytes) -> str:
        self.client.xadd(STREAM, {"json": line(name, "created", content)})
        return f"https://h/{name}"

    def remove(self, name: str) -> None:
        self.client.xadd(STREAM, {"uri": f"https://h/{name}", "change": "deleted"})

    def outage(self) -> AbstractContextManager[None]:
        return _of_another_kind(self.client)

    def expire_changes(self) -> bool:
        self.client.xadd(STREAM, {"json": line("z")})
        self.client.xtrim(STREAM, maxlen=1, approximate=False)
        return True


@contextmanager
def _of_another_kind(client: "Redis") -> Iterator[None]:
    client.set(STREAM, "no stream")
    yield
    client.delete(STREAM)


def read(
    address: str, position: str | None = None, wait: float = 0, **values: str
) -> list[ChangeBatch]:
    with stream(address, **values) as account:
        return list(account.changes(position or account.position(), wait))


def add(client: "Redis", *some: str) -> None:
    for name in some:
        client.xadd(STREAM, {"json": line(name)})


def test_entries_are_told_in_both_forms_and_with_the_time_of_their_id(
    address: str, client: "Redis"
) -> None:
    client.xadd(STREAM, {"json": line("a", datetime="2026-01-02T03:04:05Z")})
    fields = {"uri": "https://h/b", "change": "created", "length": "12", "type": "text/plain"}
    client.xadd(STREAM, dict([*fields.items(), ("who", "me")]), id="1999999999095-0")
    (lot,) = read(address)

    first, second = lot.changes
    assert first.time == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (second.uri, second.kind.value) == ("https://h/b", "created")
    assert (second.resource.length, second.resource.media_type) == (12, "text/plain")
    assert second.time is not None
    assert second.time.timestamp() == pytest.approx(1999999999.095)


def test_what_says_nothing_is_left_out(address: str, client: "Redis") -> None:
    client.xadd(STREAM, {"json": "{]"})
    client.xadd(STREAM, {"uri": "https://h/x"})
    client.xadd(STREAM, {b"\xff": b"\xff"})
    client.xadd(STREAM, {"uri": "https://h/y", "change": "deleted", "length": "-3"})
    told = read(address)

    assert names(told) == ["y"]
    assert len(omissions(told)) == 3


def test_an_entry_that_is_too_long_is_left_out_and_never_fetched(
    address: str, client: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_feed, "MAX_ENTRY_BYTES", 10_000)
    monkeypatch.setattr(redis_feed, "MAX_READ_BYTES", 20_000)
    add(client, "a")
    client.xadd(STREAM, {"json": "x" * 3_000_000})
    for name in "bcdefg":
        client.xadd(STREAM, {"json": line(name), "more": "x" * 9_000})
    before = int(client.info("stats")["total_net_output_bytes"])

    told = read(address)

    assert names(told) == list("abcdefg")
    assert [reason for _, reason in omissions(told)] == ["longer than 10,000 bytes"]
    assert len(told) > 1, "not all at once"
    assert int(client.info("stats")["total_net_output_bytes"]) - before < 200_000


def test_who_may_run_no_scripts_there_reads_all_the_same(
    address: str, client: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_feed, "MAX_ENTRY_BYTES", 10_000)
    add(client, "a")
    client.xadd(STREAM, {"json": "x" * 30_000})
    add(client, "b")
    rules = ("reset", "on", ">secret", "~*", "+@read", "+@connection", "+xinfo")
    client.execute_command("ACL", "SETUSER", "reader", *rules)  # type: ignore[no-untyped-call]
    try:
        told = read(address, user="reader", password="secret")
    finally:
        client.execute_command("ACL", "DELUSER", "reader")  # type: ignore[no-untyped-call]
    assert names(told) == ["a", "b"]
    assert len(omissions(told)) == 1


def test_a_server_that_does_not_say_enough_is_told(
    address: str, client: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    add(client, "a")
    monkeypatch.setattr(redis.Redis, "xinfo_stream", lambda *_: {"length": 1})

    with pytest.raises(BadResponseError, match="reports too little"):
        read(address)


def test_news_are_told_while_it_waits(address: str, client: "Redis") -> None:
    add(client, "a")
    position = read(address)[-1].position
    clock = PlannedClock()
    clock.after(0.3, lambda: add(client, "b"))

    with stream(address, clock) as account:
        assert names(account.changes(position, 1.0)) == ["b"]
    assert 1.0 <= clock.monotonic() < 3


def test_only_what_was_lost_unread_is_a_gap(address: str, client: "Redis") -> None:
    add(client, "a", "b", "c")
    position = read(address)[-1].position
    add(client, "d", "e")
    client.xtrim(STREAM, maxlen=2, approximate=False)
    assert names(read(address, position)) == ["d", "e"]

    client.xtrim(STREAM, maxlen=1, approximate=False)
    with pytest.raises(DiscontinuityError) as gap:
        read(address, position)
    assert gap.value.code == "feed-gap"
    assert names(read(address, position, gaps="accept")) == ["e"]

    client.xtrim(STREAM, maxlen=0, approximate=False)
    with pytest.raises(DiscontinuityError):
        read(address, position)
    assert read(address, position, gaps="accept") == []


def test_a_stream_that_is_trimmed_while_it_is_read_is_noticed(
    address: str, client: "Redis"
) -> None:
    add(client, *(f"n{number}" for number in range(450)))
    with stream(address) as account:
        telling = account.changes(account.position(), 0)
        next(telling)
        client.xtrim(STREAM, maxlen=10, approximate=False)
        with pytest.raises(DiscontinuityError):
            list(telling)


def test_a_reader_who_came_when_much_was_gone_already_has_what_there_is(
    address: str, client: "Redis"
) -> None:
    add(client, *(f"n{number}" for number in range(20)))
    client.xtrim(STREAM, maxlen=5, approximate=False)
    told = read(address)
    assert len(names(told)) == 5

    add(client, "x", "y")
    client.xtrim(STREAM, maxlen=2, approximate=False)
    assert names(read(address, told[-1].position)) == ["x", "y"]


def test_a_stream_that_was_begun_anew_is_a_gap(address: str, client: "Redis") -> None:
    client.xadd(STREAM, {"json": line("a")}, id="9-0")
    position = read(address)[-1].position
    client.delete(STREAM)
    with pytest.raises(DiscontinuityError, match="recreated"):
        read(address, position)
    client.xadd(STREAM, {"json": line("b")}, id="1-0")
    with pytest.raises(DiscontinuityError, match="recreated"):
        read(address, position)

    assert names(read(address, position, gaps="accept")) == ["b"]
    client.delete(STREAM)
    add(client, "c", "d", "e")
    with pytest.raises(DiscontinuityError, match="recreated"):
        read(address, position)
    assert names(read(address, position, gaps="accept")) == ["c", "d", "e"]


def test_a_server_that_is_not_there_or_refuses_is_an_error(
    client: "Redis", address: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(SourceUnavailableError):
        read("redis://127.0.0.1:1/0", json.dumps({"id": "0-0", "number": 0}))
    client.set(STREAM, "no stream")
    with pytest.raises(BadResponseError):
        read(address)
    folder = tmp_path_factory.mktemp("secret")
    with redis_server.running(folder, "--requirepass", "hush") as closed:
        with pytest.raises(SourceRefusedError) as refused:
            read(closed)
        assert "hush" not in str(refused.value.evidence)
        with pytest.raises(SourceRefusedError):
            read(closed, password="wrong")
        assert read(closed, password="hush") == []


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("redis://127.0.0.1:6379/0", {}),
        ("redis://127.0.0.1:6379/0", {"stream": "x", "other": "y"}),
        ("redis://me:hush@127.0.0.1/0", {"stream": "x"}),
        ("redis:6379", {"stream": "x"}),
        ("redis://127.0.0.1:port/0", {"stream": "x"}),
    ],
)
def test_what_cannot_work_is_told(where: str, values: dict[str, str]) -> None:
    with (
        pytest.raises(ConfigurationError) as refused,
        redis_feed.open_stream(options(where, **values)),
    ):
        raise AssertionError("it was opened")
    assert "hush" not in refused.value.message


def test_a_position_that_is_none_is_told(address: str) -> None:
    with pytest.raises(StateError):
        read(address, "nonsense")
    with pytest.raises(BadResponseError):
        read(address, '{"id": "x", "number": 0}')
    with stream(address) as account, pytest.raises(ConfigurationError):
        list(account.resources())
