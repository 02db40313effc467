"""Kill a pull at any of its writes, without a process of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from resourcesync.ports import CopyInstallation, CopyMove, CopyRemoval
from tests.support.worlds.folder_home import FolderHome


class Killed(BaseException):
    """The process was killed here."""


_WRITES: Final = {"commit", "remember", "drop_pending", "replace_refused", "add_run"}
"""What writes to the state, each at once."""


class Dying:
    """Stands before copies or state; kills the process before or after one of its writes."""

    def __init__(self, real: Any, fuse: "Fuse") -> None:
        self._real = real
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if name not in _WRITES:
            return real
        return lambda *given, **named: self._fuse.burn(lambda _: real(*given, **named))

    def install(self, batch: Sequence[CopyInstallation]) -> Any:
        return self._fuse.burn(self._real.install, batch)

    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> Any:
        return self._fuse.burn(lambda part: self._real.remove(part, reason), batch)

    def move(self, batch: Sequence[CopyMove]) -> Any:
        return self._fuse.burn(self._real.move, batch)


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
    fuse = Fuse(writes, how=how)
    with home.behind(partial(Dying, fuse=fuse)), suppress(Killed):
        yield fuse
