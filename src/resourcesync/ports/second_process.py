"""A second process, which does a part of the work beside this one."""

from collections.abc import Callable
from typing import Any, Protocol


class SecondProcess(Protocol):
    """A copy of this process that runs one function at a time."""

    def start(self, function: Callable[[], Any]) -> None:
        """Start a function with a copy of everything that it refers to.

        Changes that it makes in memory are seen there alone. Its result can be pickled.
        """

    def result(self) -> Any:
        """Wait for the end of the function; return its result.

        ``None`` if there is none, for whatever reason: then the caller does the work itself.
        """

    def stop(self) -> None:
        """End the function if one is running, so that it cleans up; else do nothing."""
