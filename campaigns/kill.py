"""``pull`` and ``publish`` killed again and again, as real processes on a real disk."""

from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.crashes.killed import kill_again_and_again


def run(asked: Asked) -> Outcome:
    """Kill so often as asked, each of the two half of the times."""
    outcome = Outcome()
    each = -(-asked.size // 2)
    try:
        killed = kill_again_and_again(asked.folder, kills=each, seed=asked.seed)
    except AssertionError as error:
        outcome.violations.append(f"seed {asked.seed}: {error}")
        return outcome
    outcome.require(sum(killed.values()) >= asked.size > 0, "fewer were killed")
    for name, count in killed.items():
        outcome.add(f"kills of {name}", count)
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=1_000, unit="kills")
