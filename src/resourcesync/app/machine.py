"""The machine as every command needs it: a clock, and an id for its run."""

import os

from resourcesync.adapters.system import Supervisor, SystemClock
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import CancelToken, Clock
from resourcesync.settings import environment

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_DIGITS = 10
_RANDOM_DIGITS = 6


def system_clock() -> Clock:
    """Return the machine's own clock."""
    return SystemClock()


def new_cancel_token() -> CancelToken:
    """Return the token of a run by the machine's own clock."""
    return CancelToken(SystemClock())


def supervisor() -> tuple[Supervisor, float]:
    """Return the service manager, and its watchdog interval in seconds; 0 for none."""
    address, watchdog = environment.read_service()
    return Supervisor(address), watchdog


def new_run_id(clock: Clock) -> str:
    """Return an id for a run: ids sort by time, and two runs never have the same by accident."""
    milliseconds = to_microseconds(clock.now()) // 1000
    head = [_ALPHABET[milliseconds >> 5 * place & 31] for place in range(_TIME_DIGITS)]
    tail = [_ALPHABET[byte & 31] for byte in os.urandom(_RANDOM_DIGITS)]
    return "".join(reversed(head)) + "".join(tail)
