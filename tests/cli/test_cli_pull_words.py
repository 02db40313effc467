"""The words of a pull that are seldom needed, and so must be right the first time."""

from datetime import UTC, datetime
from typing import Any

import pytest

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import DETAIL, NORMAL, TextLine
from resourcesync.cli.render.pull import PullRenderer
from resourcesync.cli.render.pull_outcome import conclude
from resourcesync.destination.reports import MirrorState, Mode, RunReport

AS_OF = datetime(2026, 11, 20, 11, 4, 9, tzinfo=UTC)


def said(words: PullRenderer, event: str, **fields: object) -> list[TextLine]:
    return list(words(event, fields))


def report(state: MirrorState = MirrorState.IN_SYNC, **counts: Any) -> RunReport:
    return RunReport(
        run="r", mode=Mode.INCREMENTAL, state=state, seconds=0.2, as_of=AS_OF, **counts
    )


def test_events_that_are_not_known_are_not_shown() -> None:
    assert said(PullRenderer(), "gossip", text="x") == []


def test_lists_and_plan_are_shown_the_first_time_only() -> None:
    source = {"entry": "http://h/", "spec": "1.1", "change_list": "http://h/c.xml"}

    first = said(PullRenderer(first=True), "source", **source)
    later = said(PullRenderer(first=False), "source", **source)

    assert [line.level for line in first] == [NORMAL, NORMAL]
    assert [line.level for line in later] == [DETAIL, DETAIL]
    assert first[1].text == "Change List http://h/c.xml"


def test_a_plan_of_changes_counts_them_and_says_what_is_not_known() -> None:
    (line,) = said(
        PullRenderer(),
        "plan",
        mode="incremental",
        create=1,
        update=2,
        delete=3,
        bytes=8230,
        unsized=4,
    )

    assert line.text == (
        "incremental: create 1, update 2, delete 3; 8.2 kB and 4 of unknown size to fetch"
    )


def test_what_is_the_same_is_a_detail() -> None:
    (line,) = said(
        PullRenderer(itemize=True), "item", status="notneeded", action="update", path="a"
    )

    assert line == TextLine("/a", "=", DETAIL)


def test_a_dry_run_says_would() -> None:
    (line,) = said(
        PullRenderer(itemize=True, dry_run=True), "item", status="ok", action="create", path="a"
    )

    assert line == TextLine("/a   would create", "+", NORMAL)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"bytes": 82, "was_bytes": 8114},
            "/a   8,114 → 82 B",
        ),
        ({"bytes": 8230, "was_bytes": -1}, "/a   8,230 B"),
        (
            {"bytes": 1, "verified": True, "hash": "sha-512:ab md5:cd"},
            "/a   1 B   sha-512 verified",
        ),
        (
            {"bytes": 1, "verified": False, "fixity": "server-verified", "hash": "sha-256:ab"},
            "/a   1 B   verified by the server's digest",
        ),
        (
            {"bytes": 1, "verified": False, "fixity": "unverified", "bad_digest": True},
            "/a   1 B   its digest field is malformed",
        ),
    ],
)
def test_an_action_says_sizes_and_proof(fields: dict[str, object], text: str) -> None:
    (line,) = said(PullRenderer(), "item", status="ok", action="update", path="a", **fields)

    assert line == TextLine(text, "*", DETAIL)


def test_a_failure_says_how_often_and_what_was_kept() -> None:
    (line,) = said(
        PullRenderer(),
        "item",
        status="error",
        action="update",
        path="a",
        reason="sha-256 differs from the list",
        tries=3,
        kept=True,
    )

    assert line == TextLine(
        "/a   sha-256 differs from the list after 3 tries; old copy kept", "!", NORMAL
    )


def test_an_entry_without_a_place_is_named_by_its_uri() -> None:
    (line,) = said(
        PullRenderer(),
        "item",
        status="impossible",
        action="refuse",
        path="",
        uri="x:/",
        reason="no",
    )

    assert line.text == "x:/   no"


def test_copies_that_the_filters_do_not_want_any_more_are_counted_apart() -> None:
    outcome = conclude(report(resources=5, filtered=2), "museum", first=False, plan={})

    assert "2 files no longer match the filters (kept)" in outcome.closing[1].text
    assert len(outcome.closing) == 2
    assert outcome.fields["filtered"] == 2


def test_copies_that_are_kept_though_unlisted_are_counted() -> None:
    outcome = conclude(report(resources=5, unlisted=2), "museum", first=False, plan={})

    assert outcome.exit is ExitCode.OK
    assert outcome.closing[-1].text == (
        "          2 files no longer listed (kept); --delete absent deletes them"
    )


def test_copies_of_what_is_absent_are_told_of_where_there_are_some() -> None:
    none = conclude(report(absent=1), "museum", first=False, plan={})
    some = conclude(report(absent=2, unknown=1), "museum", first=False, plan={})

    listed = "listed but absent at the Source (404)"
    assert none.closing[-1].text == f"          1 {listed}"
    assert some.closing[-1].text == f"          2 {listed}; 1 older copy kept"


def test_some_hashes_verified_is_not_all() -> None:
    outcome = conclude(
        report(resources=3, created=3, verified=1, weak=1, unverified=1), "m", first=True, plan={}
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
    outcome = conclude(report(resources=3, created=3, **counts), "m", first=True, plan={})

    assert f"(3 created, {text})" in outcome.closing[0].text


def test_a_mirror_that_only_lost_copies_says_nothing_of_hashes() -> None:
    outcome = conclude(report(resources=3, deleted=1), "m", first=True, plan={})

    assert "(1 deleted)" in outcome.closing[0].text


def test_a_source_without_a_time_has_none_in_the_closing_lines() -> None:
    timeless = RunReport(run="r", mode=Mode.UNCHANGED, state=MirrorState.IN_SYNC, unchanged=1)

    outcome = conclude(timeless, "m", first=False, plan={})

    assert outcome.closing[0].text == "1 resource, nothing changed, 0 requests, 0.0 s"


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
