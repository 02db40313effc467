"""A mirror of few resources whose Source lists millions of changes, pulled in flat memory.

Half of the changes are updates of what the mirror has; the others are resources that are created
and deleted again. So all changes must be read and sorted, and few resources fetched. The same is
done with half of the changes: time for each change, and memory, must be about the same.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from campaigns.generated import (
    PER_LIST,
    Change,
    GeneratedSource,
    body_of,
    generated_source,
    installed,
)
from campaigns.measured import Measured, command
from campaigns.outcome import Asked, Campaign, Outcome

RESOURCES: Final = 200
PEAK_MIB: Final = 200.0
GROWTH: Final = 1.1
"""How many times the memory of half of the changes all of them may take.

It is judged where half fills a list: before that, buffers of a fixed size are being filled. The
last of them are those of the sort, which are full at three million changes.
"""
_SINCE: Final = datetime(2026, 1, 2, tzinfo=UTC)


def run(asked: Asked) -> Outcome:
    """Pull half of the changes, then all of them, each into a mirror of its own."""
    outcome = Outcome()
    if not installed():
        outcome.missing = "nginx is not here"
        return outcome
    peaks = [
        _follow(outcome, asked.folder / str(size), size) for size in (asked.size // 2, asked.size)
    ]
    outcome.add("peak, times that of half", peaks[1] / peaks[0])
    is_judged = asked.size // 2 >= PER_LIST
    outcome.add("growth is judged: half fills a list", is_judged)
    is_flat = not is_judged or peaks[1] <= peaks[0] * GROWTH
    outcome.require(is_flat, f"{peaks[0]:.0f} MiB became {peaks[1]:.0f} MiB")
    return outcome


def _follow(outcome: Outcome, folder: Path, size: int) -> float:
    """Return the peak memory of a pull of so many changes, in MiB."""
    mirror, home = folder / "mirror", folder / "home"
    home.mkdir(parents=True)
    with generated_source(folder / "source") as source:
        source.offer(RESOURCES, at="2026-01-02T00:00:00Z")
        source.offer_changes((), since=_SINCE)
        first = command("pull", source.url, mirror, "--quiet", home=home)
        lists = source.offer_changes(_changes(size), since=_SINCE)
        final = _serve_last(source, size)
        pulled = command("pull", mirror, "--json", home=home)
        again = command("pull", mirror, "--json", home=home)
    outcome.add(f"{size:,} changes in so many lists", lists)
    outcome.add(f"{size:,} changes, pull, seconds", pulled.seconds)
    outcome.add(f"{size:,} changes, pull, seconds of processor time", pulled.cpu)
    outcome.add(f"{size:,} changes, nothing new, seconds of processor time", again.cpu)
    each = (pulled.cpu - again.cpu) / size * 1e6
    outcome.add(f"{size:,} changes, microseconds of processor time for each", each)
    outcome.add(f"{size:,} changes, peak MiB", pulled.peak_mib)
    for name, ended in (("first pull", first), ("pull", pulled), ("second pull", again)):
        outcome.require(ended.code == 0, f"{name} ended with {ended.code}: {ended.said[-500:]}")
    for number, body in final.items():
        path = mirror / source.uri(number).removeprefix(f"{source.url}/")
        right = path.is_file() and path.read_bytes() == body
        outcome.require(right, f"{path.name} is not as the last change lists it")
    files = sum(path.is_file() for path in (mirror / "r").rglob("*"))
    outcome.require(files == RESOURCES, f"{files} files, not {RESOURCES}")
    _judge(outcome, pulled, updated=sum(body != body_of(number) for number, body in final.items()))
    return pulled.peak_mib


def _changes(size: int) -> Iterator[Change]:
    for number in range(size):
        if number % 2 == 0:
            resource = number // 2 % RESOURCES
            yield "updated", resource, _version(resource, number)
        elif number % 4 == 1:
            yield "created", RESOURCES + number // 4, body_of(number)
        else:
            yield "deleted", RESOURCES + number // 4, None


def _version(resource: int, change: int) -> bytes:
    return b"%sas of change %d\n" % (body_of(resource), change)


def _serve_last(source: GeneratedSource, size: int) -> dict[int, bytes]:
    """Serve each resource as the last change lists it; return the bytes of all of them."""
    final = {number: body_of(number) for number in range(RESOURCES)}
    for number in range(max(0, size - 2 * RESOURCES), size):
        if number % 2 == 0:
            final[number // 2 % RESOURCES] = _version(number // 2 % RESOURCES, number)
    for number, body in final.items():
        path = source.root / source.uri(number).removeprefix(f"{source.url}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return final


def _judge(outcome: Outcome, pulled: Measured, *, updated: int) -> None:
    event = json.loads(pulled.said.splitlines()[-1])
    told = (event.get("mode"), event.get("updated"))
    outcome.require(told == ("incremental", updated), f"the pull was {told}")
    outcome.require(pulled.peak_mib < PEAK_MIB, f"the pull held {pulled.peak_mib:.0f} MiB")


CAMPAIGN: Final = Campaign(run=run, size=5_000_000, unit="changes", least=10)
