"""The words of a pull that are seldom needed, and so must be right the first time."""

from datetime import UTC, datetime
from typing import Any

import pytest

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.render.pull_outcome import conclude
from resourcesync.destination.reports import FetchedCounts, MirrorState, Mode, RunReport

AS_OF = datetime(2026, 11, 20, 11, 4, 9, tzinfo=UTC)


def report(state: MirrorState = MirrorState.IN_SYNC, **counts: Any) -> RunReport:
    return RunReport(
        pull="r", mode=Mode.INCREMENTAL, state=state, seconds=0.2, as_of=AS_OF, **counts
    )


def test_some_hashes_verified_is_not_all() -> None:
    outcome = conclude(
        report(
            resources=3,
            created=3,
            fetched=FetchedCounts(verified=1, weak=1, unverified=1),
        ),
        "m",
        first=True,
        plan={},
    )

    assert "(3 created, 1 of 3 hashes verified, 1 by MD5, SHA-1 or length only)" in (
        outcome.closing[0].text
    )


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"server_verified": 3}, "0 of 3 hashes verified, 3 by the server's digests"),
        (
            {"verified": 1, "server_verified": 2},
            "1 of 3 hashes verified, 2 by the server's digests",
        ),
        ({"verified": 3}, "all hashes verified"),
    ],
)
def test_what_a_server_verified_is_not_what_the_list_did(counts: dict[str, Any], text: str) -> None:
    outcome = conclude(
        report(resources=3, created=3, fetched=FetchedCounts(**counts)), "m", first=True, plan={}
    )

    assert f"(3 created, {text})" in outcome.closing[0].text


def test_a_mirror_that_only_lost_copies_says_nothing_of_hashes() -> None:
    outcome = conclude(report(resources=3, deleted=1), "m", first=True, plan={})

    assert "(1 deleted)" in outcome.closing[0].text


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (MirrorState.BEHIND, ExitCode.PARTIAL),
        (MirrorState.FAILING, ExitCode.PARTIAL),
        (MirrorState.STOPPED, ExitCode.STOPPED),
    ],
)
def test_every_state_but_in_sync_is_a_failure(state: MirrorState, code: ExitCode) -> None:
    outcome = conclude(report(state, resources=2, failed=1), "m", first=False, plan={})

    assert outcome.exit is code
    assert outcome.closing[0].text.endswith(f"exit {int(code)}")
    assert outcome.shows_exit
