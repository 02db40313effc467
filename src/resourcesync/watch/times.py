"""When something is to be done again: every so often, or by the clock on the wall."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from resourcesync.errors import ConfigurationError

MAX_JITTER_SHARE: Final = 0.1
"""The part of an interval by which it may be longer: mirrors do not ask all at once."""

_MAX_JITTER_SECONDS: Final = 300.0
_FIELDS: Final = 5


class Now(NamedTuple):
    """A moment by both clocks.

    Attributes:
        wall: Seconds since 1970, UTC; somebody may set this clock.
        steady: Seconds that never go back; all that is due is counted in them.
    """

    wall: float
    steady: float


class Jitter(Protocol):
    """What spreads things, such as ``random.Random``."""

    def uniform(self, a: float, b: float) -> float:
        """Return any number from ``a`` to ``b``."""
        ...


class Timetable(Protocol):
    """Says when something is due again."""

    def next_attempt(self, last: Now, now: Now, dice: Jitter) -> float:
        """Return the moment, by the steady clock, from which it is due again.

        Args:
            last: When it was last begun.
            now: The present moment, not before ``last``.
            dice: Spreads what would come all at once.
        """
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """Again so many seconds after it was last begun, and a little later than that.

    Attributes:
        seconds: The interval.
    """

    seconds: float

    def next_attempt(self, last: Now, now: Now, dice: Jitter) -> float:
        """Return the moment; at once when it is long past (``Timetable``)."""
        spread = min(self.seconds * MAX_JITTER_SHARE, _MAX_JITTER_SECONDS)
        return max(last.steady + self.seconds, now.steady) + dice.uniform(0, spread)


@dataclass(frozen=True)
class Cron:
    """At the minutes that a line of ``crontab`` names, such as ``5 2 * * *``.

    Attributes:
        line: Five fields, and the name of a time zone when it is not UTC, such as
            ``5 2 * * * Europe/Vienna``. Around a change of the clock it does as Debian's cron does.

    Raises:
        ConfigurationError: The line makes no sense.
    """

    line: str
    _zone: tzinfo = field(init=False, repr=False, compare=False)
    _fields: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = self.line.split()
        zone = " ".join(parts[_FIELDS:])
        object.__setattr__(self, "_fields", " ".join(parts[:_FIELDS]))
        object.__setattr__(self, "_zone", _zone_of(zone) if zone else UTC)
        self._after(datetime(2026, 1, 1, tzinfo=UTC))

    def next_attempt(self, last: Now, now: Now, dice: Jitter) -> float:
        """Return the moment (``Timetable``); what was missed while nobody watched is due now."""
        due = self._after(datetime.fromtimestamp(last.wall, UTC)).timestamp()
        following = self._after(datetime.fromtimestamp(now.wall, UTC)).timestamp()
        wait = max(min(due, following) - now.wall, 0.0)
        return now.steady + wait + dice.uniform(0, 10.0)

    def _after(self, moment: datetime) -> datetime:
        try:
            return next(CronSim(self._fields, moment.astimezone(self._zone)))
        except (CronSimError, StopIteration) as error:
            raise ConfigurationError(
                f"{self.line!r} is no line of crontab",
                evidence=(("got", str(error) or "no such day"),),
                hint="write five fields: minute hour day month weekday, such as 5 2 * * *",
            ) from error


def _zone_of(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:  # not there, or no name at all
        raise ConfigurationError(
            f"there is no time zone {name!r}",
            hint="name one such as Europe/Vienna, or none for UTC",
        ) from error
