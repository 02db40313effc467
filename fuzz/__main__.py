"""The command line: ``python -m fuzz [TARGET...] --count N --seed S --seconds T``."""

import argparse
import sys

from fuzz.campaign import campaign, told
from fuzz.targets import TARGETS


def main(arguments: list[str] | None = None) -> int:
    """Run targets; return 1 when one of them has a finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", choices=[*TARGETS, []], help="all when none is named")
    parser.add_argument("--count", type=int, default=200_000, help="inputs of each target")
    parser.add_argument("--seed", type=int, default=1, help="which inputs")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of each target")
    options = parser.parse_args(arguments)
    found = 0
    for name in options.target or TARGETS:
        outcome = campaign(
            TARGETS[name], count=options.count, seed=options.seed, seconds=options.seconds
        )
        sys.stdout.write("\n".join(told(name, outcome)) + "\n")
        sys.stdout.flush()
        found += len(outcome.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
