"""A Resource List of millions of entries, planned and audited by lists; no body is fetched."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from campaigns.generated import (
    PER_LIST,
    GeneratedSource,
    body_of,
    generated_source,
    hash_of,
    installed,
)
from campaigns.measured import Measured, command
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.destination.sync_state import SyncState
from resourcesync.mirror_state.rows import Copy, Fixity, StateTransaction

SECONDS: Final = 60.0
PEAK_MIB: Final = 500.0
FULL_SIZE: Final = 2_400_000
_EVERY: Final = 2_500
_STAMP: Final = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z in microseconds, as the lists say."""


def run(asked: Asked) -> Outcome:
    """Fill a mirror's memory, then plan and audit; one in 2,500 is missing, one is outdated."""
    outcome = Outcome()
    if not installed():
        outcome.missing = "nginx is not here"
        return outcome
    mirror, size = asked.folder / "mirror", asked.size
    with generated_source(asked.folder / "source") as source:
        source.offer(1, at="2026-01-01T00:00:00Z")
        first = command("pull", source.url, mirror, "--quiet", home=asked.folder)
        if first.code:
            outcome.violations.append(f"the first pull ended with {first.code}: {first.said}")
            return outcome
        source.offer(size, at="2026-01-02T00:00:00Z")
        remember(mirror, _held(source, size), lastmod=_STAMP)
        planned = command("pull", mirror, "-n", "--json", home=asked.folder)
        audited = command("audit", mirror, "--method", "lists", "--json", home=asked.folder)
    missing = len(range(1, size, _EVERY))
    outdated = len(range(2, size, _EVERY))
    outcome.add("lists", -(-size // PER_LIST))
    for name, measured in (("plan", planned), ("audit by lists", audited)):
        _judge(outcome, name, measured, is_full=size >= FULL_SIZE)
    plan, audit = _told(planned, "plan"), _told(audited, "run.end")
    outcome.add("to fetch", plan.get("create", 0) + plan.get("update", 0))
    outcome.require(planned.code == 0, f"the plan ended with {planned.code}: {planned.said[-500:]}")
    outcome.require(
        (plan.get("create"), plan.get("update")) == (missing, outdated),
        f"the plan is to fetch {plan.get('create')} + {plan.get('update')}",
    )
    outcome.require(
        audited.code == 1, f"the audit ended with {audited.code}: {audited.said[-500:]}"
    )
    found = (audit.get("listed"), audit.get("present"), audit.get("accurate"))
    outcome.require(
        found == (size, size - missing, size - missing - outdated), f"the audit counted {found}"
    )
    return outcome


def _judge(outcome: Outcome, name: str, measured: Measured, *, is_full: bool) -> None:
    outcome.add(f"{name}, seconds", measured.seconds)
    outcome.add(f"{name}, seconds of processor time", measured.cpu)
    outcome.add(f"{name}, peak MiB", measured.peak_mib)
    if is_full:
        outcome.add(f"{name}, within 60 s", measured.seconds < SECONDS)
        outcome.require(measured.peak_mib < PEAK_MIB, f"{name} held {measured.peak_mib:.0f} MiB")


def _told(measured: Measured, kind: str) -> dict[str, Any]:
    """Return the last event of a type."""
    for line in reversed(measured.said.splitlines()):
        event: dict[str, Any] = json.loads(line)
        if event["type"] == kind:
            return event
    return {}


def remember(mirror: Path, held: Iterable[tuple[str, bytes]], *, lastmod: int | None) -> None:
    """Let a mirror remember copies that were never fetched, by their URIs and bytes."""
    with MirrorFolder(mirror, SystemClock()) as folder:
        assert folder.state is not None
        mapping = SyncState(folder.state).mapping()
        assert mapping is not None
        place = mapping.path
        batch: list[Copy] = []
        for uri, body in held:
            batch.append(_copy(uri, place(uri), body, lastmod))
            if len(batch) >= 20_000:
                folder.state.commit(StateTransaction(installed=batch))
                batch = []
        folder.state.commit(StateTransaction(installed=batch))


def _held(source: GeneratedSource, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield what is here already: all but the first, which was pulled, and those that miss."""
    for number in range(1, size):
        if number % _EVERY != 1:
            yield source.uri(number), body_of(number if number % _EVERY != 2 else -number)


def _copy(uri: str, path: str, body: bytes, lastmod: int | None) -> Copy:
    digests = hash_of(body)
    return Copy(
        uri=uri,
        path=path,
        length=len(body),
        digests=digests,
        listed=digests,
        lastmod=lastmod,
        etag="",
        last_modified="",
        signature=f"{len(body)}:0:0",
        fixity=Fixity.VERIFIED.value,
        installed=_STAMP,
    )


CAMPAIGN: Final = Campaign(run=run, size=FULL_SIZE, unit="entries")
