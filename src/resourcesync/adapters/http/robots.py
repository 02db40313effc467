"""The rules of an origin's ``robots.txt`` (RFC 9309)."""

from math import inf
from typing import TYPE_CHECKING, Protocol

import msgspec

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
"""The product token: the name in rules for this package."""

NO_LIMIT = 1 << 62
"""Bytes: the sink itself stops the reading, see ``EnoughReadError``."""

READ_AT_MOST = 500 * 1024
"""Bytes of a ``robots.txt`` that are read; the rest is ignored (§2.5)."""

RULES_LIFETIME = 86_400.0
"""Seconds after which the rules expire (§2.4)."""

LONGEST_DELAY = 30.0
"""The longest delay between two requests that is obeyed, in seconds."""

_UNBOUND = (Purpose.DOCUMENT, Purpose.RESOURCE)


class KnownOrigins(Protocol):
    """What is known of origins from one run to the next: ``robots.txt`` (§2.4), and addresses."""

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        """Return the stored bytes, and the seconds until they expire; ``None`` for none.

        Empty bytes mean that there are no rules.
        """

    def remember(self, origin: str, read: bytes) -> None:
        """Store the bytes read just now."""

    def recall_reach(self, host: str) -> bool | None:
        """Return whether a name first led to a public address; ``None`` if it is not known."""

    def remember_reach(self, host: str, *, is_public: bool) -> None:
        """Store where a name led first."""


class NoKnownOrigins:
    """A store that stores nothing."""

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        """Return ``None``."""
        del origin
        return None

    def remember(self, origin: str, read: bytes) -> None:
        """Discard it."""
        del origin, read

    def recall_reach(self, host: str) -> bool | None:
        """Return ``None``."""
        del host
        return None

    def remember_reach(self, host: str, *, is_public: bool) -> None:
        """Discard it."""
        del host, is_public


class EnoughReadError(StorageError):
    """The part of a ``robots.txt`` that is read is complete; the rest is not fetched."""


class RobotsSink:
    """A sink for the part of a ``robots.txt`` that is read."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, chunk: bytes) -> None:
        """Store the next bytes."""
        self.content += chunk[: READ_AT_MOST - len(self.content)]
        if len(self.content) == READ_AT_MOST:
            raise EnoughReadError("the rest of robots.txt is not read")

    def restart(self) -> None:
        """Discard all bytes so far."""
        self.content.clear()


class RobotsRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one origin; without ``robots`` there are none.

    ``unread`` is why the file could not be fetched: discovery must then not guess.
    """

    robots: "Protego | None" = None
    unread: SourceError | None = None
    requested_delay: float = 0.0  # seconds between two requests; 0 for none

    @property
    def delay(self) -> float:
        """Seconds to leave between two requests: those in the file, at most 30."""
        return min(self.requested_delay, LONGEST_DELAY)

    def refusal(self, uri: str, purpose: Purpose) -> SourceError | None:
        """Return why a URI must not be fetched, or ``None`` when it may."""
        if self.robots is not None and not self.robots.can_fetch(uri, AGENT):
            return SourceRefusedError(
                "robots.txt disallows it",
                uri=uri,
                hint="if the site's owner agrees, ignore its robots.txt: -o robots=ignore",
                code="robots",
            )
        return None if purpose in _UNBOUND else self.unread


def parse_rules(body: bytes) -> RobotsRules:
    """Return the rules in a ``robots.txt``; invalid lines are ignored."""
    from protego import Protego  # noqa: PLC0415 - many sites have no rules

    text = body.decode("utf-8-sig", "replace").replace("\0", "")
    robots = Protego.parse(text)
    asked = robots.crawl_delay(AGENT) or 0.0
    return RobotsRules(robots=robots, requested_delay=asked if 0 < asked < inf else 0.0)


def rules_after_failure(error: SourceError | StorageError, read: bytes) -> RobotsRules:
    """Return the rules if ``robots.txt`` was not fetched completely.

    A missing (4xx) or unusable file has no rules. An overlong one is read up to the limit. One
    that is unavailable now (5xx, no response) stops discovery only, since the URIs in a list are
    meant to be fetched.
    """
    if isinstance(error, StorageError):
        return parse_rules(read)
    if isinstance(error, ResourceMissingError):
        return RobotsRules()
    if 400 <= error.status < 500 and not error.transient:  # noqa: PLR2004
        return RobotsRules()
    return RobotsRules(unread=error)
