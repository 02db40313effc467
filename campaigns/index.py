"""Indexes follow a mirror; the pull and whoever fills the indexes are killed at random moments.

The Source changes in rounds. In each round the pull, the two programs of ``examples/`` and a plain
loop over ``Mirror.changes`` run at the same time, as real processes, and about half of them get
SIGKILL: at any moment, or before one of the statements that store their work. Every ten rounds,
and in the end, all come to their end: each index has what the mirror has, by content, nothing of
what was deleted, and nothing twice.
"""

from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.crashes.indexing import PROGRAMS, index_and_kill

_CHANGES_EACH_KILL: Final = 50
_AT_WORK: Final = "of these in the middle of a change"


def run(asked: Asked) -> Outcome:
    """Make so many changes as asked, and at least one kill for each fifty of them."""
    outcome = Outcome()
    try:
        counts = index_and_kill(
            asked.folder,
            changes=asked.size,
            kills=-(-asked.size // _CHANGES_EACH_KILL),
            seed=asked.seed,
        )
    except AssertionError as error:
        outcome.violations.append(f"seed {asked.seed}: {error}")
        return outcome
    for name in ("changes", "rounds", *(f"kills of {name}" for name in PROGRAMS), _AT_WORK):
        outcome.add(name, counts[name])
    outcome.add("comparisons", counts["comparisons"])
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=1_000, unit="changes")
