"""``python -m campaigns NAME``: run one campaign; exit 1 on a violation, 2 if it cannot run here.

What was counted is printed as a short table. The last line says it in one, and what to run to see
the first violation again. In a campaign of real processes a seed fixes what is chosen, not when
each of them gets its turn: there the same seed need not show it again.

``python -m campaigns night`` runs all of them, and ``summary`` writes their results as a page.
"""

import argparse
import importlib
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from campaigns import night
from campaigns.outcome import Asked, Campaign, Outcome, line, table
from campaigns.sizes import SIZES

NAMES: Final = tuple(SIZES)

_WHO: Final = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def load(name: str) -> Campaign:
    """Return a campaign; only its own module is imported."""
    campaign: Campaign = importlib.import_module(f"campaigns.{name}").CAMPAIGN
    return campaign


class _Parser(argparse.ArgumentParser):
    """Tells in its help how much each campaign does; only then all of them are imported."""

    def format_help(self) -> str:
        lines = "\n".join(f"  {name:<14} {_usual(name)}" for name in NAMES)
        return f"{super().format_help()}\nusual sizes:\n{lines}\n"


def _usual(name: str) -> str:
    try:
        campaign = load(name)
    except ImportError:
        return f"{'':>9} something that it needs is not installed"
    limits = "" if (campaign.least, campaign.most) == (1, None) else f", from {campaign.bounds}"
    return f"{campaign.size:>9,} {campaign.unit}{limits}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument(
        "--size", "--resources", type=int, help="how much, in the unit of the campaign: see below"
    )
    parser.add_argument(
        "--seed", type=int, default=2026, help="what all choices follow from; 2026 is usual"
    )
    parser.add_argument(
        "--disk", type=Path, metavar="DIR", help="a folder to work in, not that for temporary files"
    )
    parser.add_argument("--kills", type=int, default=10, help="large: how often; 10 is usual")
    parser.add_argument("--record", type=Path, metavar="FILE", help="also write the result as JSON")
    return parser


def _record(path: Path, size: int, outcome: Outcome, seconds: float, spent: float) -> None:
    """Write the result of a campaign for ``night``."""
    status = "not run" if outcome.missing else "violated" if outcome.violations else "held"
    record = {
        "status": status,
        "reason": outcome.missing,
        "tried": size if outcome.tried is None else outcome.tried,
        "violations": outcome.violations,
        "seconds": round(seconds, 1),
        "processor": round(spent, 1),
        "rows": [(label, str(value)) for label, value in outcome.rows],
    }
    path.write_text(json.dumps(record), "utf-8")


def main(words: list[str] | None = None) -> int:
    """Run what is asked for."""
    words = sys.argv[1:] if words is None else words
    if words[:1] in (["night"], ["summary"]):
        return night.main(words)
    parser = _parser()
    asked = parser.parse_args(words)
    campaign = load(asked.name)
    size: int = campaign.size if asked.size is None else asked.size
    if size < campaign.least or (campaign.most is not None and size > campaign.most):
        parser.error(f"--size must be {campaign.bounds} {campaign.unit}, not {size:,}")
    began = time.monotonic()
    try:
        place = tempfile.TemporaryDirectory(prefix="rs-campaign-", dir=asked.disk)
    except OSError as error:
        parser.error(f"cannot work in {asked.disk or 'a folder'}: {error.strerror}")
    with place as folder:
        work = Asked(size=size, seed=asked.seed, folder=Path(folder), kills=asked.kills)
        outcome = campaign.run(work)
        seconds = time.monotonic() - began
        spent = sum(sum(resource.getrusage(who)[:2]) for who in _WHO)
        outcome.add("seconds of processors", spent)
        outcome.add("seconds in all", seconds)
        # Before millions of files are removed: that takes longer than many a campaign.
        print("\n".join(table(asked.name, outcome)))
        print(line(asked.name, campaign, work, outcome, seconds), flush=True)
        if asked.record:
            _record(asked.record, size, outcome, seconds, spent)
    return 2 if outcome.missing else 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
