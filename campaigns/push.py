"""Push from end to end: files are written, and a subscribed mirror has their copies how much later.

Real processes on loopback: ``publish --watch``, ``serve --hub``, ``watch``. Between the hub and the
mirror stands a thief who breaks off some deliveries.
"""

import asyncio
import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.commands import environment, free_port

_LATEST: Final = 120.0
_START: Final = 50
_RATE: Final = 2.0
_SHARE: Final = 0.05
_ENOUGH: Final = 200


class _Thief:
    """Passes connections on to a port, and breaks some of them off before anything is passed."""

    def __init__(self, port: int, share: float, seed: int) -> None:
        self.port = free_port()
        self.stolen = 0
        self.passed = 0
        self._to, self._share, self._dice = port, share, random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = asyncio.start_server(self._take, "127.0.0.1", self.port)
        self._loop.run_until_complete(server)
        self._loop.run_forever()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        with contextlib.suppress(OSError):
            await asyncio.gather(self._steal(reader, back), _pass(there, writer))

    async def _steal(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass requests on, unless it is a delivery whose turn it is."""
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if data.startswith(b"POST "):
                    if self._dice.random() < self._share:
                        self.stolen += 1
                        break
                    self.passed += 1
                writer.write(data)
                await writer.drain()
        writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def _process(folder: Path, name: str, *words: str) -> Iterator[None]:
    command = [sys.executable, "-m", "resourcesync", *words]
    with (folder / f"{name}.log").open("wb") as log:
        running = subprocess.Popen(
            command, cwd=folder, env=environment(folder), stdout=log, stderr=log
        )
        try:
            yield
        finally:
            running.terminate()
            running.wait(30)


def _settle(path: Path, what: str) -> None:
    until = time.monotonic() + _LATEST
    while not path.exists():
        if time.monotonic() > until:
            raise SystemExit(f"{what} did not happen")
        time.sleep(0.05)


def run(asked: Asked) -> Outcome:
    """Write files, and see when their copies are there."""
    folder, port, listen = asked.folder, free_port(), free_port()
    tree, copies = folder / "tree", folder / "copies"
    tree.mkdir()
    for number in range(_START):
        (tree / f"first-{number}.txt").write_text(f"{number}\n")
    url = f"http://127.0.0.1:{port}/"
    publish = ("publish", "tree", "--url", url, "--hub", f"{url}hub", "--notify", "-q")
    command = [sys.executable, "-m", "resourcesync", *publish]
    subprocess.run(command, cwd=folder, env=environment(folder), check=True, capture_output=True)
    thief = _Thief(listen, _SHARE, asked.seed)
    (folder / "resourcesync.toml").write_text(
        f'[mirror.copies]\nsource = "{url}"\ndest = "copies"\nevery = "60s"\npush = true\n'
        f'[watch]\ncallback = "http://127.0.0.1:{thief.port}/push/"\n'
        f'listen = "127.0.0.1:{listen}"\nstate = "state"\n'
    )
    serve = ("serve", "tree", "--bind", f"127.0.0.1:{port}", "--hub", "--private-callbacks")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_process(folder, "serve", *serve))
        time.sleep(2)
        stack.enter_context(_process(folder, "watch", "watch", "-v"))
        stack.enter_context(_process(folder, "publish", "publish", "tree", "--watch"))
        _settle(copies / f"first-{_START - 1}.txt", "the first pull")
        (tree / "probe.txt").write_text("probe\n")
        _settle(copies / "probe.txt", "the first push")
        found = _write_and_wait(tree, copies, asked.size)
    late = sorted(found.values()) or [_LATEST]
    cuts = quantiles(late, n=20) if len(late) > 1 else late * 19
    outcome = Outcome()
    outcome.add("changes", asked.size)
    outcome.add("arrived", len(found))
    outcome.add("deliveries broken off", thief.stolen)
    outcome.add("deliveries passed on", thief.passed)
    outcome.add("median seconds", median(late))
    outcome.add("95 of 100 within seconds", cuts[18])
    outcome.add("longest seconds", late[-1])
    outcome.require(len(found) == asked.size, f"{asked.size - len(found)} changes were lost")
    outcome.require(thief.stolen or asked.size < _ENOUGH, "no delivery was broken off")
    return outcome


def _write_and_wait(tree: Path, copies: Path, changes: int) -> dict[str, float]:
    written: dict[str, float] = {}
    found: dict[str, float] = {}
    began = time.monotonic()
    until = began + changes / _RATE + _LATEST
    while len(found) < changes and (now := time.monotonic()) < until:
        if len(written) < changes and now >= began + len(written) / _RATE:
            name = f"change-{len(written)}.txt"
            written[name] = now
            (tree / name).write_text(f"{name} {now}\n")
        for name in written.keys() - found.keys():
            if (copies / name).exists():
                found[name] = time.monotonic() - written[name]
        time.sleep(0.005)
    return found


CAMPAIGN: Final = Campaign(run=run, size=1_000, unit="changes, 2 each second")
