"""``python -m campaigns NAME``: run one campaign; exit 1 on a violation.

What was counted is printed as a short table. The last line says it in one, and what to run to see
the first violation again.
"""

import argparse
import importlib
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from campaigns.outcome import Asked, Campaign, line, table

NAMES: Final = (
    "ablation",
    "arxiv",
    "bucket",
    "crash",
    "cursor",
    "elasticsearch",
    "engines",
    "fuzz",
    "http2",
    "inventory",
    "kill",
    "large",
    "latency",
    "lists",
    "oai",
    "power",
    "push",
    "race",
    "soak",
    "spread",
    "tables",
    "torture",
    "uris",
    "watched",
    "wikipedia",
)

_WHO: Final = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def load(name: str) -> Campaign:
    """Return a campaign; only its own module is imported."""
    campaign: Campaign = importlib.import_module(f"campaigns.{name}").CAMPAIGN
    return campaign


def main(words: list[str] | None = None) -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--size", "--resources", type=int, help="how much")
    parser.add_argument("--seed", type=int, default=2026, help="what all choices follow from")
    parser.add_argument("--disk", type=Path, metavar="DIR", help="a folder to work in")
    parser.add_argument("--days", type=int, default=10, help="arxiv: how long")
    parser.add_argument("--changes", type=int, default=1_800, help="arxiv: how many each day")
    parser.add_argument(
        "--remembered", action="store_true", help="arxiv: the mirror begins without files"
    )
    asked = parser.parse_args(words)
    campaign = load(asked.name)
    size: int = campaign.size if asked.size is None else asked.size
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rs-campaign-", dir=asked.disk) as folder:
        work = Asked(
            size=size,
            seed=asked.seed,
            folder=Path(folder),
            days=asked.days,
            changes=asked.changes,
            remembered=asked.remembered,
        )
        outcome = campaign.run(work)
    seconds = time.monotonic() - began
    spent = sum(sum(resource.getrusage(who)[:2]) for who in _WHO)
    outcome.add("seconds of processors", spent)
    outcome.add("seconds in all", seconds)
    print("\n".join(table(asked.name, outcome)))
    print(line(asked.name, campaign.unit, work, outcome, seconds), flush=True)
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
