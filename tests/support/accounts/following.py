"""Followers of a stream of changes, in process, and the log that they follow."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.types import Message

from resourcesync.errors import StorageError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.server.asgi import STOPPING
from resourcesync.server.events import EventApplication, StreamTiming

QUICK = StreamTiming(poll=0.01, heartbeat=0.15, retry=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Log:
    """A log in memory that counts who asks it."""

    def __init__(self, number: int = 0) -> None:
        self.asked = 0
        self.forgotten = 0
        self.broken = False
        self.entries: list[tuple[int, Change]] = []
        self.add(number)

    def add(self, number: int = 1, size: int = 0) -> None:
        for n in range(len(self.entries) + 1, len(self.entries) + number + 1):
            change = Change(
                kind=ChangeKind.UPDATED,
                time=START + timedelta(seconds=n),
                resource=Resource(uri=f"http://x/{n}{'a' * size}"),
            )
            self.entries.append((n, change))

    def last(self) -> tuple[int, int]:
        self.asked += 1
        if self.broken:
            raise StorageError("the disk is gone")
        return self.place(len(self.entries))

    def has(self, number: int, moment: int) -> bool:
        return number <= len(self.entries) and (number, moment) == self.place(number)

    def place(self, number: int) -> tuple[int, int]:
        if not number:
            return 0, 0
        time = self.entries[number - 1][1].time
        return number, to_microseconds(time) if time else 0

    def id(self, number: int) -> str:
        return "{}-{}".format(*self.place(number))

    def after(self, number: int, most: int) -> list[tuple[int, Change]] | None:
        if self.broken:
            raise StorageError("the disk is gone")
        if not self.forgotten <= number <= len(self.entries):
            return None
        return self.entries[number : number + most]


class Client:
    """One follower, in process."""

    def __init__(
        self, events: EventApplication, fields: Mapping[str, str], stopping: asyncio.Event | None
    ) -> None:
        self.status = 0
        self.fields: dict[str, str] = {}
        self.text = ""
        self.ended = False
        self.open = asyncio.Event()  # the client takes what it is sent
        self.open.set()
        self._left = asyncio.Event()
        self._asked = False
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in fields.items()],
            "state": {STOPPING: stopping} if stopping else {},
        }
        self.task = asyncio.create_task(events(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self.open.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.fields = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            self.text += message["body"].decode()
            self.ended = not message.get("more_body", False)

    def leave(self) -> None:
        self._left.set()

    @property
    def events(self) -> list[tuple[str, str, dict[str, Any]]]:
        found = []
        for block in self.text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "event" in lines:
                found.append((lines["event"], lines["id"], json.loads(lines["data"])))
        return found

    @property
    def uris(self) -> list[str]:
        return [data.get("uri", name) for name, _, data in self.events]

    async def until(self, test: Callable[["Client"], bool]) -> None:
        async with asyncio.timeout(5):
            while not test(self):  # noqa: ASYNC110 - what is waited for is no event
                await asyncio.sleep(0.005)


@asynccontextmanager
async def following(
    events: EventApplication, number: int = 1, stopping: asyncio.Event | None = None, **fields: str
) -> AsyncIterator[list[Client]]:
    sent = {name.replace("_", "-"): value for name, value in fields.items()}
    clients = [Client(events, sent, stopping) for _ in range(number)]
    try:
        for client in clients:
            await client.until(lambda c: "id: " in c.text or c.ended)
        yield clients
    finally:
        for client in clients:
            client.open.set()
            client.leave()
        await asyncio.gather(*(client.task for client in clients))
