"""The rules of an origin's ``robots.txt`` (RFC 9309)."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Protocol

from resourcesync.errors import (
    ResourceMissingError,
    SourceError,
    SourceRefusedError,
    StorageError,
)
from resourcesync.ports import Purpose

if TYPE_CHECKING:
    from protego import Protego

AGENT = "resourcesync"
"""Our product token: the name that rules for us are under."""

NO_LIMIT = 1 << 62
"""Bytes: the reading stops by itself, see ``EnoughReadError``."""

READ_AT_MOST = 500 * 1024
"""Bytes of a ``robots.txt`` that are read; what comes after is as if it were not there (§2.5)."""

RULES_LIFETIME = 86_400.0
"""Seconds that the rules are believed (§2.4)."""

LONGEST_DELAY = 30.0
"""Most seconds between two requests that a ``robots.txt`` gets by asking."""

_UNBOUND = (Purpose.DOCUMENT, Purpose.RESOURCE)


class KnownRules(Protocol):
    """Remembers from one run to the next what the ``robots.txt`` of an origin said (§2.4)."""

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        """Return what was read, and for how many seconds more it is good; ``None`` if it is not.

        Nothing read means that there are no rules.
        """
        ...

    def remember(self, origin: str, read: bytes) -> None:
        """Take what was read just now."""
        ...


class NoKnownRules:
    """Remembers nothing."""

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        """Return nothing."""
        del origin
        return None

    def remember(self, origin: str, read: bytes) -> None:
        """Forget it."""
        del origin, read


class EnoughReadError(StorageError):
    """The part of a ``robots.txt`` that is read is complete; the rest is not fetched."""


class RobotsSink:
    """Keeps the part of a ``robots.txt`` that is read."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises:
            EnoughReadError: There are more than are read.
        """
        self.content += chunk[: READ_AT_MOST - len(self.content)]
        if len(self.content) == READ_AT_MOST:
            raise EnoughReadError("the rest of robots.txt is not read")

    def restart(self) -> None:
        """Forget all bytes so far."""
        self.content.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsRules:
    """The rules of one origin.

    Attributes:
        robots: The parsed file; ``None`` when there are no rules.
        unread: Why the file could not be had; discovery must then not guess.
        asked: Seconds between two requests that the file asks for; 0 when it asks for none.
    """

    robots: "Protego | None" = None
    unread: SourceError | None = None
    requested_delay: float = 0.0

    @property
    def delay(self) -> float:
        """Seconds between two requests that are kept: those that are asked for, at most 30."""
        return min(self.requested_delay, LONGEST_DELAY)

    def refusal(self, uri: str, purpose: Purpose) -> SourceError | None:
        """Return why a URI must not be fetched, or ``None`` when it may."""
        if self.robots is not None and not self.robots.can_fetch(uri, AGENT):
            return SourceRefusedError(
                "robots.txt asks robots to stay away from it",
                uri=uri,
                hint="--robots ignore, if the site's owner agrees",
                code="robots",
            )
        return None if purpose in _UNBOUND else self.unread


def parse_rules(body: bytes) -> RobotsRules:
    """Return the rules in a ``robots.txt``; what cannot be understood is no rule."""
    from protego import Protego  # noqa: PLC0415 - many sites have no rules

    text = body.decode("utf-8-sig", "replace").replace("\0", "")
    robots = Protego.parse(text)
    asked = robots.crawl_delay(AGENT) or 0.0
    return RobotsRules(robots=robots, requested_delay=asked if 0 < asked < inf else 0.0)


def rules_after_failure(error: SourceError | StorageError, read: bytes) -> RobotsRules:
    """Return the rules when ``robots.txt`` was not had as a whole.

    None that exist (4xx), or no usable ones, bind nothing. One that is too long is read as far as
    it goes. One that cannot be had now (5xx, no answer) stops discovery only, since what a list
    names was meant to be fetched.
    """
    if isinstance(error, StorageError):
        return parse_rules(read)
    if isinstance(error, ResourceMissingError):
        return RobotsRules()
    if 400 <= error.status < 500 and not error.transient:  # noqa: PLR2004
        return RobotsRules()
    return RobotsRules(unread=error)
