"""What tells that originals may have changed, before anybody looks."""

from typing import Protocol


class Watcher(Protocol):
    """Gives hints, never the truth: it may say too much, and it may miss something."""

    def wait(self, seconds: float) -> bool:
        """Wait for a hint that something changed, no longer than ``seconds``.

        Returns:
            Whether there was one since the last call; at once if it was there already.

        Raises:
            StorageError: Nothing can be watched any more.
        """
        ...
