"""Hints of changed files from the operating system, by ``watchfiles`` (the extra ``watch``)."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from resourcesync.errors import ConfigurationError, StorageError

_STEP: Final = 100
_DEBOUNCE: Final = 800
_TURN: Final = 500
"""Milliseconds of a step: events within one make one hint, at the latest after the debounce. The
thread checks after each step whether it should end."""


class FolderWatcher:
    """A watch on everything below a folder from construction to ``close``.

    The system may drop events, and reports new folders that are filled at once too late: so a
    hint says only that it is time for a full scan.
    """

    def __init__(self, root: Path, is_ours: Callable[[str], bool]) -> None:
        try:
            import watchfiles  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ConfigurationError(
                "watching needs the extra 'watch'", hint="pip install 'resourcesync[watch]'"
            ) from error
        self._watch = watchfiles.watch
        self._root = root
        self._is_ours = is_ours
        self._hint = threading.Event()
        self._end = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watch."""
        self._end.set()
        self._thread.join()

    def wait(self, seconds: float) -> bool:
        """Wait for a hint, no longer than ``seconds``; return whether there was one."""
        found = self._hint.wait(seconds)
        self._hint.clear()
        if self._failure is not None:
            raise StorageError(
                f"{self._root} cannot be watched: {self._failure}",
                hint="raise the system's limit of watches (fs.inotify.max_user_watches),"
                " or run publish from cron",
                code="watch",
            ) from self._failure
        return found

    def _run(self) -> None:
        try:
            self._root.stat()  # ignoring missing subfolders also ignores a missing root
            for _ in self._watch(
                self._root,
                watch_filter=lambda _change, path: not self._is_ours(path),
                debounce=_DEBOUNCE,
                step=_STEP,
                rust_timeout=_TURN,
                stop_event=self._end,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._hint.set()
        except Exception as error:  # noqa: BLE001 - whatever ends the watch is told by wait()
            self._failure = error
            self._hint.set()
