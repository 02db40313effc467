"""The system clock, ids of runs by it, and systemd's protocol ``sd_notify``."""

import os
import time
from datetime import UTC, datetime
from typing import Final

from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock

_ABSTRACT: Final = "@"
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_DIGITS: Final = 10
_RANDOM_DIGITS: Final = 6


class SystemClock:
    """The ``Clock`` of a real run."""

    def now(self) -> datetime:
        """Return the present time, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the Clock

    monotonic = staticmethod(time.monotonic)
    """Returns monotonic seconds."""

    def sleep(self, seconds: float) -> None:
        """Wait; do not wait for a negative number."""
        time.sleep(max(0.0, seconds))  # noqa: TID251 - this is the Clock


def new_run_id(clock: Clock) -> str:
    """Return an id for a run: ids sort by time, and two runs never have the same by accident."""
    milliseconds = to_microseconds(clock.now()) // 1000
    head = [_ALPHABET[milliseconds >> 5 * place & 31] for place in range(_TIME_DIGITS)]
    tail = [_ALPHABET[byte & 31] for byte in os.urandom(_RANDOM_DIGITS)]
    return "".join(reversed(head)) + "".join(tail)


class Supervisor:
    """A connection to a service manager, such as systemd; does nothing if there is none."""

    def __init__(self, address: str) -> None:
        self._address = "\0" + address[1:] if address.startswith(_ABSTRACT) else address

    def notify(self, **facts: str | int) -> None:
        """Send facts such as ``READY=1``; errors of the socket are ignored."""
        if not self._address:
            return
        import socket  # noqa: PLC0415 - for a service only

        text = "\n".join(f"{name}={value}" for name, value in facts.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.sendto(text.encode(), self._address)
        except OSError:
            return
