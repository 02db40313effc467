"""Kill a pull at any of its writes, without a process of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.ports import CopyInstallation, CopyMove, CopyRemoval
from tests.support.worlds.folder_home import FolderHome


class Killed(BaseException):
    """The process was killed here."""


class Dying:
    """Stands before copies or state; kills the process before or after one of its writes."""

    def __init__(self, real: Any, fuse: "Fuse") -> None:
        self._real = real
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def install(self, batch: Sequence[CopyInstallation]) -> Any:
        return self._fuse.burn(self._real.install, batch)

    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> Any:
        return self._fuse.burn(lambda part: self._real.remove(part, reason), batch)

    def move(self, batch: Sequence[CopyMove]) -> Any:
        return self._fuse.burn(self._real.move, batch)

    def commit(self, step: StateTransaction) -> None:
        self._fuse.burn(lambda _: self._real.commit(step))

    def remember(self, key: str, value: str) -> None:
        self._fuse.burn(lambda _: self._real.remember(key, value))

    def drop_pending(self, *, older_than: int) -> Any:
        return self._fuse.burn(lambda _: self._real.drop_pending(older_than=older_than))

    def replace_refused(self, *args: Any) -> None:
        self._fuse.burn(lambda _: self._real.replace_refused(*args))

    def add_run(self, row: Any) -> None:
        self._fuse.burn(lambda _: self._real.add_run(row))


class Fuse:
    """Lets so many writes pass, then kills: before the write, after it, or in its middle."""

    def __init__(self, writes: int, *, how: int) -> None:
        self._left = writes
        self._how = how
        self.is_burnt = False

    def burn(self, write: Callable[[Any], Any], batch: Sequence[Any] = ()) -> Any:
        if self.is_burnt:
            raise Killed
        if self._left > 0:
            self._left -= 1
            return write(batch)
        self.is_burnt = True
        if self._how == 1:
            write(batch)
        elif self._how == 2 and len(batch) > 1:
            write(batch[: len(batch) // 2])
        raise Killed


@contextmanager
def killed(home: FolderHome, writes: int, *, how: int = 0) -> Iterator[Fuse]:
    """Kill whoever works on a mirror in the block after so many writes."""
    fuse = Fuse(writes, how=how)
    with home.behind(partial(Dying, fuse=fuse)), suppress(Killed):
        yield fuse
