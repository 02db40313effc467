"""What is done to a disk when it fails, or when the power is cut, and what must hold afterwards."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

from tests.support.crashes.crash_states import State
from tests.support.crashes.power_keeping import Auditing, Repairing
from tests.support.crashes.power_publishing import Publishing
from tests.support.crashes.power_pulling import Pulling
from tests.support.crashes.power_renaming import Renaming
from tests.support.crashes.renumbered import Numbers


class Scene(Protocol):
    """Something that is done to a disk."""

    def do(self) -> None:
        """Do it, below the folder that was given."""
        ...

    def set_before(self) -> None:
        """Set the clock to the moment before it was done."""
        ...

    def set_after(self) -> None:
        """Set the clock to the moment after it was done."""
        ...

    def attempt(self, folder: Path, numbers: Numbers) -> bool:
        """Do it in another folder in the place of the one that was given.

        Returns:
            Whether all is said to be well.

        Raises:
            ResourceSyncError: It says why it cannot.
        """
        ...

    def begin_again(self, numbers: Numbers) -> None:
        """Take note of which file was which: the power was cut, and it is done anew."""
        ...

    def seen(self, state: State) -> None:
        """Take note of what everybody could see before the power was cut."""
        ...

    def wrong(self, folder: Path, numbers: Numbers, *, is_done: bool) -> Iterator[str]:
        """Yield what is wrong with a disk after the power cut, and after the next run.

        Args:
            folder: In the place of the one that was given.
            numbers: Which file was which.
            is_done: Whether the run had said that all is well.
        """
        ...

    def end(self) -> object:
        """Return what the next run led to, that was looked at last."""
        ...

    def wrong_for_readers(self, end: object) -> Iterator[str]:
        """Yield what is wrong for who had read until now, when the next run leads to this end."""
        ...


SCENES: Final[dict[str, Callable[[Path, int], Scene]]] = {
    "pull": Pulling,
    "rename": Renaming,
    "publish": Publishing,
    "audit": Auditing,
    "repair": Repairing,
}
