"""Tell another program of a mirror's changes, each at least once."""

from collections import deque
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from resourcesync.adapters.consumer_programs import run_program
from resourcesync.destination.changelog import ChangeLogReader
from resourcesync.ports.changes import LoggedChange
from resourcesync.wiring import mirrors


class ChangeForwarder:
    """Tells a program what it was not told yet.

    Args:
        consumer: The name of its cursor.
        command: The program and its arguments.
        line: Makes what it gets on stdin of a change, line break included.
    """

    def __init__(
        self, consumer: str, command: tuple[str, ...], line: Callable[[LoggedChange], bytes]
    ) -> None:
        self._consumer, self._command, self._line = consumer, command, line

    def forward(self, folder: Path, is_stopped: Callable[[], bool]) -> tuple[int, int]:
        """Run the program when a mirror has changes for it; return how many, and its exit code.

        What it ended with 0 it is not told again, even if it did not read all of it.

        Args:
            folder: The mirror; a pull may go on meanwhile.
            is_stopped: Asked many times a second.

        Raises:
            ConfigurationError: The program cannot be run.
            DiscontinuityError: The mirror's log of changes does not reach back to its cursor.
            StateError: The memory is damaged.
            StoppedError: ``is_stopped`` said so.
        """
        with mirrors.open_changes(folder) as opened:
            before = opened.consumers.cursor(self._consumer)
            anew = f"--consumer {self._consumer} --restart"
            reader = ChangeLogReader(state=opened.state, cursor=before, restart_hint=anew)
            count = 0

            def counted(change: LoggedChange) -> bytes:
                nonlocal count
                count += 1
                return self._line(change)

            waiting = map(counted, reader.read_new())
            first = next(waiting, None)
            code = 0
            if first is not None:
                code = run_program(self._command, chain((first,), waiting), is_stopped)
            if not code:
                deque(waiting, maxlen=0)
                if reader.cursor is not None and reader.cursor != before:
                    opened.consumers.acknowledge(self._consumer, reader.cursor)
        return count, code
