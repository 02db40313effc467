"""A Source that is judged through the library, and what is found in it."""

from collections.abc import Callable

from resourcesync.adapters.system import SystemClock
from resourcesync.app.checks.target_access import new_validator
from resourcesync.ports.cancellation import CancelToken
from resourcesync.settings.network import Network
from resourcesync.validator.events import ValidationEvent, ValidationOptions
from resourcesync.validator.findings import RuleFinding

LONG = 30.0
"""Seconds that only a judge waits who is told to."""


class ActingClock(SystemClock):
    """A clock during whose one long wait something happens."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.waited: list[float] = []
        self._act = act

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        if seconds == LONG:  # politeness waits, too
            self._act()


def judged(
    target: str, *, act: Callable[[], None] = lambda: None, **how: object
) -> list[ValidationEvent]:
    judge = new_validator(
        ValidationOptions(**how),  # type: ignore[arg-type]  # its fields
        network=Network(allow_origins=(target,), retries=0),
        cancel=CancelToken(ActingClock(act)),
    )
    return list(judge.judge(target))


def broken(events: list[ValidationEvent], *rules: str) -> list[tuple[str, str]]:
    """Which of the rules are broken, and where."""
    found = [event for event in events if isinstance(event, RuleFinding)]
    return [(finding.rule.id, finding.uri) for finding in found if finding.rule.id in rules]
