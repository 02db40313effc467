"""``explore --tui``: the screen fills as the walk goes on, and answers while it does."""

import asyncio
import os
import select
import signal
import subprocess
import termios
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Self

import pytest

pytest.importorskip("textual", reason="the extra is not installed: pip install 'resourcesync[tui]'")

from textual.pilot import Pilot
from textual.widgets import Input, Static, Tree

from resourcesync.adapters.system import SystemClock
from resourcesync.app import document_access
from resourcesync.cli.render.explore_tui import BackgroundWalk, ExplorerApp, Step
from resourcesync.discovery.tree import SourceNode
from resourcesync.errors import ResourceMissingError
from resourcesync.ports.cancellation import CancelToken
from resourcesync.settings.network import Network
from tests.support.commands.run import script
from tests.support.servers.tiny_source import TinySource

Script = Callable[[ExplorerApp, "Pilot[None]"], Awaitable[None]]
HEAD = '<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>'
MANY = 3_000


def played(steps: Iterator[Step], act: Script) -> BackgroundWalk:
    """Show a walk on a screen of its own and do there what the script says."""
    walk = BackgroundWalk(steps)

    async def play() -> None:
        explorer = ExplorerApp(walk, "http://h.example")
        async with explorer.run_test(size=(160, 40)) as pilot:
            await act(explorer, pilot)

    asyncio.run(asyncio.wait_for(play(), 30))
    return walk


async def until(pilot: "Pilot[None]", condition: Callable[[], bool]) -> None:
    """Let the screen go on until something is so."""
    for _ in range(400):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError("it did not come to that")


def labels(explorer: ExplorerApp) -> list[str]:
    """What the lines of the tree say, parents before children."""
    waiting, found = [explorer.query_one("#tree", Tree).root], list[str]()
    while waiting:
        node = waiting.pop()
        found.append(str(node.label))
        waiting.extend(reversed(node.children))
    return found


def text_of(explorer: ExplorerApp, place: str) -> str:
    return str(explorer.query_one(place, Static).content)


def under_cursor(explorer: ExplorerApp) -> str:
    node = explorer.query_one("#tree", Tree).cursor_node
    return "" if node is None else str(node.label)


def steps_of(source: TinySource) -> Iterator[Step]:
    network = Network(allow_origins=(source.url,), retries=0)
    return document_access.explore(source.url, network=network, cancel=CancelToken(SystemClock()))


def failing(uri: str, *branches: bool) -> SourceNode:
    error = ResourceMissingError("not there", uri=uri)
    return SourceNode(uri=uri, branches=branches, error=error)


def test_the_tree_shows_the_documents_of_a_source_and_the_pane_what_they_hold(
    source: TinySource,
) -> None:
    async def act(explorer: ExplorerApp, pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: text_of(explorer, "#status").startswith("Explored"))
        shown = labels(explorer)
        assert [name.split("  ")[1] for name in shown] == [
            "source description",
            "capability list",
            "resource list",
        ]
        assert "12 resources  110 B  sha-256 12/12" in shown[2]
        assert text_of(explorer, "#status") == "Explored: 3 documents, 12 entries"
        await pilot.press("down", "down")
        await until(pilot, lambda: "Resource List" in text_of(explorer, "#details"))
        details = text_of(explorer, "#details").split("\n")
        assert details[details.index("entries") + 1] == "  12"
        assert details[details.index("uri") + 1] == f"  {source.url}/resourcelist.xml"

    walk = played(steps_of(source), act)

    assert walk.is_over


def test_the_screen_answers_while_the_walk_goes_on() -> None:
    gate = threading.Event()
    ended = threading.Event()

    def slow() -> Iterator[Step]:
        try:
            yield failing("http://h.example/first")
            gate.wait(20)
            yield failing("http://h.example/second", True)
        finally:
            ended.set()

    async def act(explorer: ExplorerApp, pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "first" in labels(explorer)[0])
        assert text_of(explorer, "#status").startswith("Reading")
        assert len(labels(explorer)) == 1
        gate.set()
        await until(pilot, lambda: len(labels(explorer)) == 2)
        await until(pilot, lambda: text_of(explorer, "#status").startswith("Explored"))

    played(slow(), act)

    assert ended.is_set()


def test_a_walk_that_nobody_watches_any_more_ends() -> None:
    ended = threading.Event()

    def endless() -> Iterator[Step]:
        try:
            yield failing("http://h.example/")
            while True:
                yield failing("http://h.example/more", True)
        finally:
            ended.set()

    async def act(explorer: ExplorerApp, pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: len(labels(explorer)) > 1)
        await pilot.press("q")

    walk = played(endless(), act)

    assert ended.wait(10)
    assert not walk.is_over


def test_search_goes_to_what_fits_and_on_to_the_next(source: TinySource) -> None:
    async def act(explorer: ExplorerApp, pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: text_of(explorer, "#status").startswith("Explored"))
        await pilot.press("slash", *"LIST.xml", "enter")
        await until(pilot, lambda: "/capabilitylist.xml" in under_cursor(explorer))
        await pilot.press("n")
        await until(pilot, lambda: "/resourcelist.xml" in under_cursor(explorer))
        await pilot.press("n")
        await until(pilot, lambda: "/capabilitylist.xml" in under_cursor(explorer))
        await pilot.press("slash", *"nowhere", "enter")
        await until(pilot, lambda: text_of(explorer, "#status") == "Not found: nowhere")
        await pilot.press("slash", "q", "escape")
        assert explorer.query_one("#search", Input).display is False
        assert explorer.is_running

    played(steps_of(source), act)


def test_search_opens_what_is_folded() -> None:
    nodes = [
        failing("http://h.example/"),
        *(failing(f"http://h.example/{n}", *[True] * n) for n in range(1, 8)),
    ]

    async def act(explorer: ExplorerApp, pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: len(labels(explorer)) == 8)
        await pilot.press("slash", *"/7", "enter")
        await until(pilot, lambda: "/7" in under_cursor(explorer))

    played(iter(nodes), act)


def test_what_a_source_writes_is_no_markup_and_no_control() -> None:
    uri = "http://h.example/[bold]\x1b[2J[/nothing]\n\u202e"

    async def act(explorer: ExplorerApp, pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "bold" in labels(explorer)[0])
        assert r"[bold]\x1b[2J[/nothing]\n\u202e" in labels(explorer)[0]
        assert r"[bold]\x1b[2J[/nothing]\n\u202e" in text_of(explorer, "#details")

    played(iter([failing(uri)]), act)


def test_very_many_documents_are_shown_without_making_anybody_wait() -> None:
    nodes = [failing("http://h.example/")]
    nodes += [failing(f"http://h.example/{n}", n == MANY - 1) for n in range(MANY)]

    async def act(explorer: ExplorerApp, pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: len(labels(explorer)) == MANY + 1)
        assert f"{MANY + 1:,} failed" in text_of(explorer, "#status")

    played(iter(nodes), act)


# --- on a terminal ---


class Terminal:
    """A process of ours on a terminal of its own."""

    def __init__(self, address: str) -> None:
        self._ours, theirs = os.openpty()
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.shown = ""
        self.process = subprocess.Popen(
            [script("resourcesync"), "explore", address, "--tui", "--retries", "0"],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"},
        )

    def read_until(self, condition: Callable[[], bool]) -> None:
        """Read what is drawn until something is so."""
        for _ in range(600):
            if condition():
                return
            ready, _, _ = select.select([self._ours], [], [], 0.05)
            if ready:
                self.shown += os.read(self._ours, 65_536).decode("utf-8", "replace")
        raise AssertionError(f"it did not come to that: {self.shown[-2000:]!r}")

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())

    def end(self) -> tuple[int | None, str]:
        """Wait for the end; return the exit code and what stands on standard output."""
        self.read_until(lambda: self.process.poll() is not None)
        self.read_until(lambda: not select.select([self._ours], [], [], 0)[0])
        assert self.process.stdout is not None
        said = self.process.stdout.read().decode()
        assert termios.tcgetattr(self._theirs)[:4] == self.before[:4]
        return self.process.returncode, said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._ours)
        os.close(self._theirs)


def test_q_ends_it_and_the_terminal_is_as_it_was(source: TinySource) -> None:
    with Terminal(source.url) as terminal:
        terminal.read_until(lambda: "Explored" in terminal.shown)
        terminal.press("q")
        code, said = terminal.end()

    assert code == 0
    assert said.startswith("Explored  3 documents, 12 entries  ")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(
    number: signal.Signals, code: int, source: TinySource
) -> None:
    with Terminal(source.url) as terminal:
        terminal.read_until(lambda: "Explored" in terminal.shown)
        terminal.process.send_signal(number)

        assert terminal.end()[0] == code


def test_a_source_that_is_not_there_ends_it_with_its_error(source: TinySource) -> None:
    source.answers.clear()

    with Terminal(source.url) as terminal:
        code, _ = terminal.end()

    assert code == 5
    error = terminal.shown.rpartition("error[")[2]
    assert f"no ResourceSync documents and no sitemap at {source.url}" in error
    assert error.rstrip().endswith("exit 5")
