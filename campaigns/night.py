"""``python -m campaigns night``: all campaigns, one after the other, each in its own process.

Each result is one line of JSON in a file. A campaign that held with the same files, seed and size
is not run again, so a run that was stopped goes on where it was. ``summary`` writes the last
results into ``campaigns/results.md``.
"""

import argparse
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from campaigns.outcome import Campaign
from campaigns.sizes import SIZES

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "campaigns" / "results.md"
FOLDER: Final = ROOT / "build" / "campaigns"
_HEAD: Final = """\
| Campaign | Tried | Share | Seed | Result | Elapsed | Processor | Date | Commit |
|---|---|--:|--:|---|--:|--:|---|---|"""
_EXPLANATION: Final = """\
`python -m campaigns night` runs all campaigns, in the sizes of a release unless `--scale` says \
less; `python -m campaigns summary` writes this page from its results. The last result of each \
campaign is here, whatever it was. *Share* is how much of the size of a release was run. A commit \
with `+` had changes that were not committed. Times are UTC and say little where others used the \
processors."""


def version() -> str:
    """Return the commit, and a digest of what differs from it; empty outside a checkout."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout

    try:
        commit = git("rev-parse", "--short=12", "HEAD").strip()
        changed = git("diff", "HEAD", "--", ".", ":!campaigns/results.md")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}+{hashlib.sha256(changed.encode()).hexdigest()[:8]}" if changed else commit


def read(results: Path) -> Iterator[dict[str, Any]]:
    """Yield the results that are whole: a line that was cut off by a kill is left out."""
    for text in results.read_text("utf-8").splitlines() if results.exists() else ():
        with contextlib.suppress(ValueError):
            yield json.loads(text)


def scaled(campaign: Campaign, size: int, scale: float) -> int:
    """Return a part of a size, within the bounds of the campaign."""
    least = max(round(size * scale), campaign.least)
    return least if campaign.most is None else min(least, campaign.most)


def _run(name: str, words: Sequence[str], folder: Path, seconds: float) -> dict[str, Any]:
    """Run a campaign in its own process; return its record, or why there is none."""
    record, log = folder / "last.json", folder / f"{name}.txt"
    record.unlink(missing_ok=True)
    command = [sys.executable, "-m", "campaigns", name, *words, "--record", str(record)]
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends the campaign too
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True
        )
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            return {"status": "not run", "reason": "the time was over before its end"}
        finally:
            with contextlib.suppress(ProcessLookupError):  # also what it left running
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            signal.signal(signal.SIGTERM, before)
    if record.exists():
        found: dict[str, Any] = json.loads(record.read_text("utf-8"))
        return found
    last = (log.read_text("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
    return {"status": "failed", "reason": f"exit {child.returncode}: {last}"[:300]}


def main(words: Sequence[str]) -> int:
    """Run all campaigns, or write the page of results; return 1 if one did not hold."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("what", choices=("night", "summary"))
    parser.add_argument("--only", help="names of campaigns, with commas; all is usual")
    parser.add_argument("--hours", type=float, default=8.0, help="when it ends; 8 is usual")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the sizes; 1 is usual")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--ci", action="store_true", help="what CI runs, in its sizes")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="for the summary")
    options = parser.parse_args(words)
    names = options.only.split(",") if options.only else list(SIZES)
    if unknown := sorted(set(names) - SIZES.keys()):
        parser.error(f"there is no campaign {unknown[0]!r}")
    results = options.results or FOLDER / ("ci.jsonl" if options.ci else "results.jsonl")
    if options.what == "summary":
        options.page.write_text(summary(list(read(results))), "utf-8")
        return 0
    results.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.hours * 3600
    chosen = [name for name in names if SIZES[name].ci or not options.ci]
    return max([_tried(name, options, results, end) for name in chosen], default=0)


def _tried(name: str, options: argparse.Namespace, results: Path, end: float) -> int:
    """Run a campaign, unless it held before; return 1 if it does not hold."""
    record = _begun(name, options)
    known = ("campaign", "commit", "seed", "size")
    if not options.ci and any(
        found["status"] == "held" and all(found[key] == record[key] for key in known)
        for found in read(results)
        if record["commit"]
    ):
        print(f"{name}: held before, with the same files, seed and size", flush=True)
        return 0
    left = end - time.monotonic()
    if "reason" in record:
        record["status"] = "not run"
    elif left <= 0:
        record |= {"status": "not run", "reason": "the time was over"}
    else:
        size = ("--size", str(record["size"]), "--seed", str(options.seed))
        record |= _run(name, size, results.parent, left)
    with results.open("a", encoding="utf-8") as file:
        file.write(f"\n{json.dumps(record)}\n")  # a kill may have cut off the last line
        file.flush()
        os.fsync(file.fileno())
    print(f"{name}: {record['size']:,}: {_result(record)}", flush=True)
    if record["status"] not in {"violated", "failed"}:
        return 0
    print((results.parent / f"{name}.txt").read_text("utf-8", "replace"))
    return 1


def _begun(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what is known of a campaign before it runs."""
    from campaigns.__main__ import load  # noqa: PLC0415 - it imports this module

    release, ci = SIZES[name]
    record: dict[str, Any] = {
        "campaign": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": version(),
        "seed": options.seed,
        "size": ci if options.ci else release,
    }
    try:
        campaign = load(name)
    except ImportError as error:
        return record | {"reason": str(error)}
    if not options.ci:
        record["size"] = scaled(campaign, release, options.scale)
    return record | {"unit": campaign.unit}


def _result(record: dict[str, Any]) -> str:
    many = len(record.get("violations", ()))
    return {
        "held": "held",
        "violated": f"**{many} violations**: {(record.get('violations') or [''])[0][:120]}",
    }.get(record["status"], f"**{record['status']}**: {record.get('reason', '')[:120]}")


def _row(record: dict[str, Any]) -> str:
    release = SIZES[record["campaign"]].release
    cells = (
        f"`{record['campaign']}`",
        f"{record.get('tried', record['size']):,} {record.get('unit', '')}",
        "all" if record["size"] >= release else f"{record['size'] / release:.2%}",
        str(record["seed"]),
        _result(record),
        f"{record['seconds']:.0f} s" if "seconds" in record else "",
        f"{record['processor']:.0f} s" if "processor" in record else "",
        record["date"][:16].replace("T", " "),
        f"`{record['commit']}`",
    )
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def summary(records: Sequence[dict[str, Any]]) -> str:
    """Return the page: the last result of each campaign, and which have none."""
    last = {record["campaign"]: record for record in records if record["campaign"] in SIZES}
    held = sum(record["status"] == "held" for record in last.values())
    none = ", ".join(f"`{name}`" for name in SIZES if name not in last)
    return "\n".join(
        (
            "# Results of the campaigns",
            "",
            _EXPLANATION,
            "",
            f"Of {len(SIZES)} campaigns {held} held. Without a result: {none or 'none'}.",
            "",
            _HEAD,
            *(_row(last[name]) for name in SIZES if name in last),
            "",
        )
    )
