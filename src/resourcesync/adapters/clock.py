"""The machine's own time."""

import time
from datetime import UTC, datetime


class SystemClock:
    """The ``Clock`` of a real run."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the Clock

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; a negative number waits not at all."""
        time.sleep(max(0.0, seconds))  # noqa: TID251 - this is the Clock
