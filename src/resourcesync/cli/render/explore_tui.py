"""``resourcesync explore --tui``: the tree of a Source in the terminal; needs the extra ``tui``.

The walk runs in its own thread, so the screen responds at once, however slow a Source is. Its
steps go through a bounded queue, which bounds the memory. Textual draws on standard error.
"""

import asyncio
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from queue import Empty, Full, Queue
from types import FrameType
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Input, Static, Tree
from textual.widgets.tree import TreeNode

from resourcesync.cli import formatting
from resourcesync.cli.render.explore import Totals, describe_step, step_details, step_fields
from resourcesync.discovery.tree import PartsTotal, SourceNode

_QUEUE_SIZE: Final = 1_000
_BATCH_SIZE: Final = 500
"""Steps that are processed before the keyboard is read again."""
_PUT_SECONDS: Final = 0.1

Step = SourceNode | PartsTotal


class BackgroundWalk:
    """A walk through a Source in its own thread.

    Args:
        steps: The walk; it runs only in the thread.
    """

    def __init__(self, steps: Iterator[Step]) -> None:
        self._steps = steps
        self._queue: Queue[Step | None] = Queue(_QUEUE_SIZE)
        self._cancelled = threading.Event()
        # A pending request must not keep the command from ending.
        self._thread = threading.Thread(target=self._run, name="explore", daemon=True)
        self.error: Exception | None = None
        self.is_over = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def cancel(self) -> None:
        """Make the thread end at its next step."""
        self._cancelled.set()

    def poll(self) -> Iterator[Step]:
        """Yield the waiting steps, at most ``_BATCH_SIZE``; set ``is_over`` after the last."""
        for _ in range(_BATCH_SIZE):
            try:
                step = self._queue.get_nowait()
            except Empty:
                return
            if step is None:
                self.is_over = True
                return
            yield step

    def _run(self) -> None:
        try:
            for step in self._steps:
                if not self._put(step):
                    return
        except Exception as error:  # noqa: BLE001 - a thread's edge: `browse` raises it
            self.error = error
        finally:
            if isinstance(self._steps, Generator):
                self._steps.close()  # in the thread that ran it
        self._put(None)

    def _put(self, step: Step | None) -> bool:
        while not self._cancelled.is_set():
            try:
                self._queue.put(step, timeout=_PUT_SECONDS)
            except Full:
                continue
            return True
        return False


_POLL_SECONDS: Final = 0.1
_OPEN_LEVELS: Final = 3
_MAX_TEXT: Final = 2_000
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ExplorerApp(App[None]):
    """The screen: a walk as a tree, and the details of the document under the cursor."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #tree { width: 2fr; }
    #beside { width: 1fr; border-left: solid $primary; padding: 0 1; }
    #status { height: 1; padding: 0 1; }
    #search { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False),
        Binding("slash", "search", "Search"),
        Binding("n", "next", "Next"),
        Binding("escape", "leave_search", show=False),
    ]

    def __init__(self, walk: BackgroundWalk, source: str) -> None:
        super().__init__()
        self.totals = Totals()
        self._walk = walk
        self._source = source
        self._path: list[TreeNode[Step]] = []
        self._wanted = ""
        self._running_loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False

    def compose(self) -> ComposeResult:
        """Yield the widgets of the screen."""
        with Horizontal():
            yield Tree[Step](_safe_text(self._source), id="tree")
            with VerticalScroll(id="beside", can_focus=False):
                yield Static(id="details", markup=False)
        yield Input(placeholder="part of an address or a kind", id="search")
        yield Static(id="status", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Start the walk, and poll its steps."""
        self._running_loop = asyncio.get_running_loop()
        if self._is_stopped:
            self.exit()
        self._walk.start()
        self._timer = self.set_interval(_POLL_SECONDS, self._poll_walk)
        self._show_totals("Reading")
        self._tree.focus()

    def on_unmount(self) -> None:
        """End the walk with the screen."""
        self._walk.cancel()

    def stop(self) -> None:
        """End the screen as soon as possible; for signal handlers."""
        self._is_stopped = True
        if self._running_loop is not None:
            self._running_loop.call_soon_threadsafe(self.exit)

    @property
    def _tree(self) -> Tree[Step]:
        return self.query_one("#tree", Tree)

    def _poll_walk(self) -> None:
        for step in self._walk.poll():
            self.totals.add(step)
            self._add_node(step)
        if not self._walk.is_over:
            self._show_totals("Reading")
            return
        self._timer.stop()
        self._show_totals("Explored")
        if self._walk.error is not None:
            self.exit()

    def _add_node(self, step: Step) -> None:
        level = len(step.branches)
        label = _safe_text(f"{step.uri}  {describe_step(step_fields(step))}")
        if level == 0:
            node = self._tree.root
            node.set_label(label)
            node.data = step
            node.expand()
            self._show(node)
        else:
            above = self._path[level - 1]
            above.allow_expand = True
            node = above.add(label, data=step, expand=level < _OPEN_LEVELS, allow_expand=False)
        self._path[level:] = [node]

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Step]) -> None:
        """Show the details of the document under the cursor."""
        self._show(event.node)

    def _show(self, node: TreeNode[Step]) -> None:
        if node.data is not None:
            details = step_details(step_fields(node.data))
            text = "\n".join(f"{name}\n  {formatting.escape(value)}" for name, value in details)
            self.query_one("#details", Static).update(text)

    def _show_totals(self, label: str) -> None:
        counted = self.totals.lines(0)[0].text.rpartition("  ")[0]
        self.query_one("#status", Static).update(f"{label}: {counted}")

    def action_search(self) -> None:
        """Show the search field."""
        search = self.query_one("#search", Input)
        search.display = True
        search.focus()

    def action_leave_search(self) -> None:
        """Go back to the tree."""
        self.query_one("#search", Input).display = False
        self._tree.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next match after the cursor."""
        self._wanted = event.value.strip().lower()
        self.action_leave_search()
        self.action_next()

    def action_next(self) -> None:
        """Go to the next match; after the last comes the first."""
        if not self._wanted:
            return
        nodes, current = list(_descendants(self._tree.root)), self._tree.cursor_node
        start = nodes.index(current) + 1 if current in nodes else 0
        for node in (*nodes[start:], *nodes[:start]):
            if self._wanted in str(node.label).lower():
                self._go_to(node)
                return
        self.bell()
        self.query_one("#status", Static).update(f"Not found: {formatting.escape(self._wanted)}")

    def _go_to(self, node: TreeNode[Step]) -> None:
        above = node.parent
        while above is not None:
            above.expand()
            above = above.parent
        self.call_after_refresh(self._tree.move_cursor, node)


def _safe_text(text: str) -> Text:
    """Return text of a Source with control characters escaped, and without markup."""
    return Text(formatting.escape(text[:_MAX_TEXT]))


def _descendants(node: TreeNode[Step]) -> Iterator[TreeNode[Step]]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


@contextmanager
def _stop_on_signal(explorer: ExplorerApp) -> Iterator[None]:
    """End the screen at a signal, and only then call the former handler.

    The former handler raises at once, which would leave the terminal in the state of the screen.
    """
    received: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        explorer.stop()

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


def browse(steps: Iterator[Step], source: str) -> tuple[Totals, bool]:
    """Show a walk on the terminal until the operator quits.

    Returns:
        The totals of the documents read, and True if all were read.

    Raises:
        SourceError: Nothing was found, or it cannot be fetched; and as ``document_access.explore``.
    """
    walk = BackgroundWalk(steps)
    explorer = ExplorerApp(walk, source)
    with _stop_on_signal(explorer):
        explorer.run()
    if walk.error is not None:
        raise walk.error
    return explorer.totals, walk.is_over
