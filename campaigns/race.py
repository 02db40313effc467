"""Copies written, moved, read and removed while another process swaps their folders for links.

A seed fixes the operations and their order. When the other process swaps is left to chance, so how
many are done and how many are refused differs from run to run.
"""

from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.storage.racing import race


def run(asked: Asked) -> Outcome:
    """Race, then look for what lies where it must not."""
    result = race(asked.folder, operations=asked.size, seed=asked.seed)
    outcome = Outcome()
    outcome.add("operations", result.operations)
    outcome.add("done", result.done)
    outcome.add("refused, a link was in the way", result.refused)
    outcome.add("moved", result.moved)
    outcome.add("swaps by the other process", result.swaps)
    outcome.add("escapes", len(result.escapes))
    outcome.violations += result.escapes
    outcome.require(
        result.refused and result.swaps and result.moved, "nobody raced: nothing was proven"
    )
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=30_000, unit="operations")
