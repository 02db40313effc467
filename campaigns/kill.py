"""``pull`` and ``publish`` killed again and again, as real processes on a real disk."""

from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.killed import kill_again_and_again


def run(asked: Asked) -> Outcome:
    """Kill each of the two so often as asked."""
    outcome = Outcome()
    try:
        killed = kill_again_and_again(asked.folder, kills=asked.size, seed=asked.seed)
    except AssertionError as error:
        outcome.violations.append(f"seed {asked.seed}: {error}")
        return outcome
    for name, count in killed.items():
        outcome.add(f"kills of {name}", count)
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=1_000, unit="kills of each")
