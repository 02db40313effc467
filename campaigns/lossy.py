"""A way to a server on loopback on which some deliveries are lost: the connection just ends."""

import asyncio
import threading
from random import Random
from types import TracebackType
from typing import Self


class LossyWay:
    """Passes requests on to a port of 127.0.0.1, but for a share of those with POST.

    Args:
        port: Where the server listens.
        loss: The share that is lost.
        seed: What decides which.

    Attributes:
        passed, lost: Deliveries so far.
    """

    def __init__(self, port: int, loss: float, seed: int) -> None:
        self.passed = self.lost = 0
        self._there = port
        self._loss = loss
        self._random = Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    def __enter__(self) -> Self:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(10)
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

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._pass_on(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _message(reader)
        if request.startswith(b"POST"):
            if self._random.random() < self._loss:
                self.lost += 1
                return False
            self.passed += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._there)
        back.write(request)
        writer.write(await _message(there))
        await writer.drain()
        back.close()
        return True


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Read a request or an answer whose length is told."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return head + await reader.readexactly(length)
