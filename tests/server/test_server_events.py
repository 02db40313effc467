"""The stream of changes: nothing is missed, nobody is waited for, all of it is bounded."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.adapters.catalogue import FileChangeLog
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.errors import StorageError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.server.events import EventApplication, StreamTiming
from tests.support.accounts.following import QUICK, START, Client, Log, following


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_change_is_told_to_all_who_follow_with_one_look_for_all() -> None:
    log = Log(3)
    events = EventApplication(log, pace=QUICK)

    async def main() -> None:
        async with following(events, 200) as clients:
            assert clients[0].status == 200
            assert clients[0].fields["content-type"] == "text/event-stream"
            assert clients[0].fields["cache-control"] == "no-store"
            assert clients[0].text.startswith(f"retry: 1000\nid: {log.id(3)}\n\n")
            before = log.asked
            log.add(2)
            for client in clients:
                await client.until(lambda c: len(c.events) == 2)
                assert client.uris == ["http://x/4", "http://x/5"]
            assert log.asked - before < 100
            name, number, data = clients[0].events[0]
            assert (name, number) == ("updated", log.id(4))
            assert data["datetime"] == "2026-01-01T00:00:04Z"
            assert events.clients == 200
        assert events.clients == 0
        assert [figure.values[0][1] for figure in events.metrics()] == [0, 2]

    run(main)


def test_who_comes_back_misses_nothing_and_gets_nothing_twice() -> None:
    log = Log(450)

    async def main() -> None:
        events = EventApplication(log, pace=QUICK)
        for known in (0, 7, 250, 449, 450):
            async with following(events, last_event_id=log.id(known)) as [client]:
                log.add()
                total = len(log.entries)
                await client.until(lambda c: f"http://x/{total}" in c.uris)  # noqa: B023
                assert client.uris == [f"http://x/{n}" for n in range(known + 1, total + 1)]

    run(main)


@pytest.mark.parametrize("known", ["9-0", "1-1", "x", "-1-0", "999-1767225700000000", "0-1"])
def test_who_comes_from_elsewhere_is_told_to_pull_and_goes_on(known: str) -> None:
    log = Log(3)

    async def main() -> None:
        async with following(EventApplication(log, pace=QUICK), last_event_id=known) as [client]:
            await client.until(lambda c: bool(c.events))
            log.add()
            await client.until(lambda c: len(c.events) == 2)
            assert client.events[0] == ("reset", log.id(3), {})
            assert client.uris[1] == "http://x/4"

    run(main)


def test_who_was_away_for_longer_than_is_remembered_is_told_to_pull() -> None:
    log = Log(10)
    log.forgotten = 5

    async def main() -> None:
        async with following(EventApplication(log, pace=QUICK), last_event_id=log.id(3)) as [
            client
        ]:
            await client.until(lambda c: bool(c.events))
            assert client.events[0][0] == "reset"

    run(main)


def test_a_log_that_is_begun_anew_ends_the_streams_and_is_never_taken_for_the_old() -> None:
    log = Log(5)

    async def main() -> None:
        events = EventApplication(log, pace=QUICK)
        async with following(events) as [client]:
            old = log.id(5)
            del log.entries[:]
            await client.until(lambda c: c.ended)
        log.add(9)
        log.entries[4] = (
            5,
            Change(kind=ChangeKind.CREATED, time=START, resource=Resource(uri="http://x/5")),
        )
        async with following(events, last_event_id=old) as [client]:
            await client.until(lambda c: bool(c.events))
            assert client.events[0][0] == "reset"

    run(main)


def test_a_log_that_is_another_one_of_equal_length_is_noticed() -> None:
    log = Log(5)

    async def main() -> None:
        async with following(EventApplication(log, pace=QUICK)) as [client]:
            later = replace(log.entries[4][1], time=START + timedelta(days=1))
            log.entries[4] = (5, later)
            await client.until(lambda c: c.ended)
            assert client.events == []

    run(main)


def test_streams_end_when_nobody_looks_any_more() -> None:
    log = Log()

    errors: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: errors.append(str(context.get("exception")))
        )
        events = EventApplication(log, pace=QUICK)
        async with following(events) as [client]:
            log.entries.append((1, Change(kind=ChangeKind.CREATED, resource=Resource(uri="x"))))
            await client.until(lambda c: c.ended)
            assert client.events == []
        del log.entries[:]
        async with following(events) as [client]:
            assert client.status == 200

    run(main)
    gc.collect()

    assert len(errors) == 1
    assert "its time" in errors[0]


def test_a_slow_client_is_not_waited_for_and_loses_nothing() -> None:
    log = Log()
    events = EventApplication(log, pace=QUICK, cache=20_000)

    async def main() -> None:
        async with following(events, 2) as [slow, quick]:
            slow.open.clear()
            for number in range(1, 31):
                log.add(size=2000)
                await quick.until(lambda c: len(c.events) == number)  # noqa: B023
                assert 0 < events.cached_bytes <= 20_000
            slow.open.set()
            await slow.until(lambda c: c.ended)
            got = len(slow.events)
            assert got < 30
        async with following(events, last_event_id=slow.events[-1][1]) as [again]:
            await again.until(lambda c: len(c.events) == 30 - got)
            assert slow.uris + again.uris == quick.uris

    run(main)


def test_more_than_may_follow_are_told_to_come_back_later() -> None:
    async def main() -> None:
        events = EventApplication(Log(), most=2, pace=QUICK)
        async with following(events, 2), following(events) as [third]:
            assert (third.status, third.ended) == (503, True)
            assert third.fields["retry-after"]
        async with following(events) as [later]:
            assert later.status == 200

    run(main)


def test_silence_is_broken_by_comments_only() -> None:
    async def main() -> None:
        async with following(EventApplication(Log(), pace=QUICK)) as [client]:
            await client.until(lambda c: c.text.count(":\n\n") >= 2)
            assert client.events == []

    run(main)


def test_a_log_that_cannot_be_read_is_no_end_and_no_reset() -> None:
    log = Log(1)

    async def main() -> None:
        events = EventApplication(log, pace=QUICK)
        async with following(events) as [client]:
            log.broken = True
            await asyncio.sleep(0.05)
            log.broken = False
            log.add()
            await client.until(lambda c: len(c.events) == 1)
            assert client.uris == ["http://x/2"]
        log.broken = True
        await asyncio.sleep(0.05)
        async with following(events) as [client]:
            assert client.status == 503

    run(main)


def test_a_log_that_fails_who_comes_back_cuts_the_stream_for_a_later_try() -> None:
    log = Log(3)

    async def main() -> None:
        events = EventApplication(log, pace=QUICK)
        async with following(events):
            client = Client(events, {"last-event-id": log.id(1)}, None)
            client.open.clear()
            await asyncio.sleep(0.05)  # its place was found; it does not take the first bytes yet
            log.broken = True
            client.open.set()
            with pytest.raises(StorageError):
                await asyncio.wait_for(client.task, 5)
            assert client.status == 200
            assert not client.ended
            log.broken = False

    run(main)


def test_a_server_that_stops_ends_the_streams_at_once() -> None:
    async def main() -> None:
        stopping = asyncio.Event()
        async with following(
            EventApplication(Log(), pace=StreamTiming(poll=60)), 3, stopping
        ) as clients:
            stopping.set()
            for client in clients:
                await client.until(lambda c: c.ended)

    run(main)


def test_nobody_looks_when_nobody_follows() -> None:
    log = Log()

    async def main() -> None:
        async with following(EventApplication(log, pace=QUICK)) as [client]:
            await client.until(lambda _: log.asked > 1)
        await asyncio.sleep(0.05)
        before = log.asked
        await asyncio.sleep(0.1)
        assert log.asked == before

    run(main)


def test_the_log_of_a_catalogue_is_read_without_holding_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1")
    log = FileChangeLog(tmp_path / ".resourcesync" / "catalogue.db")
    publish_tree(tmp_path, {"url": "http://h.example/"}, clock=SystemClock())
    assert log.last() == (0, 0)
    assert log.after(0, 10) == []
    assert log.has(0, 0)
    assert log.resources() == 1

    for name in ("b.txt", "c.txt"):
        (tmp_path / name).write_text("2")
        publish_tree(tmp_path, {}, clock=SystemClock())

    found = log.after(0, 10)
    assert found is not None
    assert [change.uri for _, change in found] == [
        "http://h.example/b.txt",
        "http://h.example/c.txt",
    ]
    number, moment = log.last()
    assert log.has(number, moment)
    assert not log.has(number, moment + 1)
    assert not log.has(number + 1, 0)
    assert log.after(number + 1, 1) is None
    assert log.resources() == 3
