"""Very many receivers of notifications on loopback: one loop, some ports, and some that hang."""

import asyncio
import threading
import time
from collections import Counter
from random import Random
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

_PORTS: Final = 16


class Receivers:
    """Answers every challenge, and notes when each delivery came.

    Args:
        seed: What decides which deliveries are lost.

    Attributes:
        loss: The share of deliveries that are answered 503.
        came: For each path, the bodies that arrived and when, in seconds of the monotonic clock.
        lost: Deliveries that were answered 503.
        hung: Deliveries that were never answered.
    """

    def __init__(self, seed: int) -> None:
        self.loss = 0.0
        self.came: dict[str, list[tuple[float, bytes]]] = {}
        self.lost = self.hung = 0
        self.asked: Counter[str] = Counter()
        self._random = Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.origins: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        for _ in range(_PORTS + 1):
            start = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
            server = asyncio.run_coroutine_threadsafe(start, self._loop).result(10)
            self._servers.append(server)
            self.origins.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def callback(self, number: int) -> str:
        """Return the address of a receiver that answers."""
        return f"{self.origins[number % _PORTS]}/{number}"

    def hanging(self, number: int) -> str:
        """Return the address of a receiver that takes a delivery and says nothing."""
        return f"{self.origins[_PORTS]}/hang/{number}"

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, target, _ = head.split(" ", 2)
        length = 0
        for line in head.split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                length = int(value)
        body = await reader.readexactly(length)
        parts = urlsplit(target)
        if method == "GET":
            challenge = parse_qs(parts.query)["hub.challenge"][0].encode()
            self.asked[parts.path] += 1
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(challenge) + challenge
            )
        elif parts.path.startswith("/hang/"):
            self.hung += 1
            await asyncio.sleep(60)
            return False
        elif self._random.random() < self.loss:
            self.lost += 1
            writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        else:
            self.came.setdefault(parts.path, []).append((time.monotonic(), body))
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        return True
