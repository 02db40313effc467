"""The table of decisions: a copy, its entry, its task and the policy of the run."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from resourcesync.destination.pending_tasks import is_missed, pending_delete, pending_fetch, task_of
from resourcesync.destination.planner import (
    ABSENT,
    DELETED_BY_SOURCE,
    DISPUTED,
    FILTERED,
    MISSED,
    OPEN_REASONS,
    OUT_OF_SCOPE,
    SEEN_LATER,
    Absence,
    Decision,
    DecisionPolicy,
    Delete,
    Fetch,
    ListedEntry,
    Postponed,
    Retain,
    UpToDate,
    as_suspect,
    decide,
    decide_all,
    listed_from_task,
)
from resourcesync.mirror_state.rows import Copy, Fixity, PatchLink, Pending, PendingTask

SHA, OTHER = (f"sha-256:{letter * 64}" for letter in "ab")
NOW, LATER, READ = 100, 200, 5
PATCH = PatchLink("application/xml", "http://p/1", SHA, 10, is_exact=True)

COPY = Copy("u", "kept/path", 3, SHA, SHA, 10, '"e"', "then", "sig", "verified", 0)
RESTORED = COPY._replace(fixity=Fixity.RESTORED)
ENTRY = ListedEntry("u", "http://h/u", "path", SHA, 3, 10, "")
NEWER = ENTRY._replace(hash=OTHER)
DATED = ENTRY._replace(hash="")
VAGUE = DATED._replace(lastmod=None)
EXCLUDED = ENTRY._replace(change=FILTERED)
UNUSABLE = EXCLUDED._replace(loc="", hash="", length=None, lastmod=None)
GONE = ENTRY._replace(change="deleted", hash="")

CHANGES = DecisionPolicy(absence=Absence.UNCHANGED, now=NOW, counts_until=READ)
LISTS = structs.replace(CHANGES, absence=Absence.UNPROVEN)
WHOLE = structs.replace(CHANGES, absence=Absence.DELETED)
LOOSE = structs.replace(CHANGES, absence=Absence.TWICE, now=1_000_000_000)


def failed(listed: ListedEntry = NEWER, due: int = LATER) -> Pending:
    task = pending_fetch(listed, known=None, now=0, at=0, generation=READ, code="http-error")
    return task._replace(tries=7, due=due)


def gone(reason: str = DELETED_BY_SOURCE, generation: int = READ) -> Pending:
    return pending_delete(COPY, reason=reason, now=0, at=0, generation=generation)


def retained(reason: str = DELETED_BY_SOURCE) -> Pending:
    return gone(reason)._replace(task=PendingTask.RETAIN)


def update(row: ListedEntry, before: Copy = COPY, *, ask: bool = False) -> Fetch:
    return Fetch(row._replace(path=before.path), before, is_conditional=ask)


ROWS: dict[str, tuple[Any, Any, Any, DecisionPolicy, Any]] = {
    "a copy with the listed hash is up to date": (COPY, ENTRY, None, LISTS, UpToDate(COPY)),
    "a copy with the listed time is up to date": (COPY, DATED, None, LISTS, UpToDate(COPY)),
    "a change to the hash of the copy is done": (COPY, ENTRY, None, CHANGES, UpToDate(COPY)),
    "a change with the time of the copy may be a second one, and is requested": (
        *(COPY, DATED, None, CHANGES),
        update(DATED, ask=True),
    ),
    "a copy with another hash is fetched": (COPY, NEWER, None, LISTS, update(NEWER)),
    "a copy of which the list has nothing to compare is requested": (
        *(COPY, VAGUE, None, LISTS),
        update(VAGUE, ask=True),
    ),
    "a copy whose date moved back is requested if it has an etag": (
        *(COPY, DATED._replace(lastmod=9), None, LISTS),
        update(DATED._replace(lastmod=9), ask=True),
    ),
    "a copy whose date moved back is fetched if its server knows only dates": (
        *(COPY._replace(etag=""), DATED._replace(lastmod=9), None, LISTS),
        update(DATED._replace(lastmod=9), COPY._replace(etag="")),
    ),
    "a suspect copy is fetched whatever it had": (
        *(as_suspect(COPY), ENTRY, None, LISTS),
        update(ENTRY, as_suspect(COPY)),
    ),
    "a restored copy that is listed again is requested": (
        *(RESTORED, ENTRY, None, LISTS),
        update(ENTRY, RESTORED, ask=True),
    ),
    "a resource without a copy is fetched to its own path": (
        *(None, NEWER, None, LISTS),
        Fetch(NEWER, None),
    ),
    "a disputed resource without a copy is fetched": (
        *(None, NEWER._replace(change=DISPUTED, undated=True), None, LISTS),
        Fetch(NEWER._replace(change=DISPUTED, undated=True), None),
    ),
    "a copy is patched only if a change follows the version that it has": (
        *(COPY, NEWER._replace(patch=PATCH), None, CHANGES),
        update(NEWER._replace(patch=PATCH)),
    ),
    "a comparison with a whole list uses no patch": (
        *(COPY, NEWER._replace(patch=PATCH), None, LISTS),
        update(NEWER),
    ),
    "a resource that failed often waits": (
        *(COPY, NEWER, failed(), LISTS),
        Postponed(failed(), COPY),
    ),
    "a resource without a copy that failed often waits": (
        *(None, NEWER, failed(), WHOLE),
        Postponed(failed(), None),
    ),
    "a resource that failed often is fetched when it is due": (
        *(COPY, NEWER, failed(due=NOW), LISTS),
        update(NEWER),
    ),
    "a resource that failed often is fetched at once if something else is listed": (
        *(COPY, NEWER, failed(VAGUE), LISTS),
        update(NEWER),
    ),
    "a resource that failed often is fetched at once if it is disputed now": (
        *(None, NEWER._replace(undated=True, rivals=((SHA, 3),)), failed(), LISTS),
        Fetch(NEWER._replace(undated=True, rivals=((SHA, 3),)), None),
    ),
    "a copy that is as listed needs no further try": (
        COPY,
        ENTRY,
        failed(ENTRY),
        LISTS,
        UpToDate(COPY),
    ),
    "a new change of a resource that failed often is tried at once": (
        *(COPY, NEWER, None, CHANGES),
        update(NEWER),
    ),
    "a copy that the filters exclude is kept": (
        *(COPY, EXCLUDED, None, LISTS),
        Retain(COPY, listed=True),
    ),
    "a copy that the filters exclude is deleted by a run that prunes": (
        *(COPY, EXCLUDED, None, structs.replace(LISTS, prunes=True)),
        Delete(COPY, OUT_OF_SCOPE),
    ),
    "a copy whose entry cannot be used is kept also by a run that prunes": (
        *(COPY, UNUSABLE, None, structs.replace(LISTS, prunes=True)),
        Retain(COPY, listed=True),
    ),
    "the policy of deletions is none of pruning": (
        *(COPY, EXCLUDED, None, structs.replace(LISTS, prunes=True, delete="never")),
        Delete(COPY, OUT_OF_SCOPE),
    ),
    "without a copy nothing is done for what the filters exclude": (
        *(None, EXCLUDED, failed(), LISTS),
        None,
    ),
    "a copy that a change calls deleted is deleted": (
        *(COPY, GONE, None, LISTS),
        Delete(COPY, DELETED_BY_SOURCE),
    ),
    "a copy that a late change calls deleted is requested": (
        *(COPY, GONE._replace(undated=True), None, CHANGES),
        update(GONE._replace(undated=True, change=DISPUTED), ask=True),
    ),
    "without a copy nothing is done for what a late change calls deleted": (
        *(None, GONE._replace(undated=True), None, CHANGES),
        None,
    ),
    "a copy that a change calls deleted is retained if nothing is to be deleted": (
        *(COPY, GONE, None, structs.replace(CHANGES, delete="never")),
        Retain(COPY, reason=DELETED_BY_SOURCE),
    ),
    "a restored copy stays though a change calls it deleted": (
        *(RESTORED, GONE, None, CHANGES),
        Retain(RESTORED),
    ),
    "without a copy nothing is done for what a change calls deleted": (
        *(None, GONE, failed(), CHANGES),
        None,
    ),
    "a copy that a whole list lacks is deleted": (COPY, None, None, WHOLE, Delete(COPY, ABSENT)),
    "a copy that a whole list lacks is retained where only signalled deletions count": (
        *(COPY, None, None, structs.replace(WHOLE, delete="signalled")),
        Retain(COPY, reason=ABSENT),
    ),
    "a copy that lists lack is kept if they do not prove that it is gone": (
        *(COPY, None, None, LISTS),
        Retain(COPY),
    ),
    "a restored copy that a whole list lacks is kept": (
        *(RESTORED, None, None, WHOLE),
        Retain(RESTORED),
    ),
    "a restored copy is deleted if the operator deletes what is not listed": (
        *(RESTORED, None, None, structs.replace(WHOLE, deletes_restored=True)),
        Delete(RESTORED, ABSENT),
    ),
    "a copy of what existed after the list waits for a newer one": (
        *(COPY._replace(evidence=NOW + 1), None, None, structs.replace(WHOLE, absent_at=NOW)),
        Retain(COPY._replace(evidence=NOW + 1), reason=SEEN_LATER),
    ),
    "a copy that parts of several moments lack waits for the next reading": (
        *(COPY, None, None, LOOSE),
        Retain(COPY, reason=MISSED),
    ),
    "a copy that two readings of such parts lack is deleted": (
        *(COPY, None, retained(MISSED), LOOSE),
        Delete(COPY, ABSENT),
    ),
    "a copy that two readings lack within minutes waits again": (
        *(COPY, None, retained(MISSED), structs.replace(LOOSE, now=NOW)),
        Retain(COPY, reason=MISSED),
    ),
    "a copy that a reading lacked which was not completed waits again": (
        *(COPY, None, retained(MISSED)._replace(generation=READ + 1), LOOSE),
        Retain(COPY, reason=MISSED),
    ),
    "an earlier deletion by the Source counts while lists do not prove anything": (
        *(COPY, None, gone(), LISTS),
        Delete(COPY, DELETED_BY_SOURCE),
    ),
    "an earlier deletion by the Source stays signalled in a whole list": (
        *(COPY, None, gone(), structs.replace(WHOLE, delete="signalled")),
        Delete(COPY, DELETED_BY_SOURCE),
    ),
    "a deletion that an earlier policy did not allow is done when it is allowed": (
        *(COPY, None, retained(), LISTS),
        Delete(COPY, DELETED_BY_SOURCE),
    ),
    "an earlier deletion is not done when the policy forbids it now": (
        *(COPY, None, gone(), structs.replace(LISTS, delete="never")),
        Retain(COPY, reason=DELETED_BY_SOURCE),
    ),
    "an earlier deletion does not count if its reading was not completed": (
        *(COPY, None, gone(generation=READ + 1), LISTS),
        Retain(COPY),
    ),
    "an earlier deletion does not count if changes were withdrawn since": (
        *(COPY, None, gone(), structs.replace(LISTS, counts_until=-1)),
        Retain(COPY),
    ),
    "absence from an earlier list does not count": (COPY, None, gone(ABSENT), LISTS, Retain(COPY)),
    "an earlier deletion does not count if the resource is listed": (
        *(COPY, ENTRY, gone(), LISTS),
        UpToDate(COPY),
    ),
    "a copy that failed and is not listed any more is kept": (
        *(COPY, None, failed(), LISTS),
        Retain(COPY),
    ),
    "without a copy nothing is done for what is not listed any more": (
        *(None, None, failed(), LISTS),
        None,
    ),
    "of changes, a pending deletion stands": (
        *(COPY, None, gone(ABSENT, generation=READ + 1), CHANGES),
        Delete(COPY, ABSENT),
    ),
    "of changes, a pending deletion is held back by another policy": (
        *(COPY, None, gone(ABSENT), structs.replace(CHANGES, delete="signalled")),
        Retain(COPY, reason=ABSENT),
    ),
    "of changes, a deletion by filters is withdrawn by a run that does not prune": (
        *(COPY, None, gone(OUT_OF_SCOPE), CHANGES),
        Retain(COPY, listed=True),
    ),
    "of changes, a deletion by filters stands in a run that prunes": (
        *(COPY, None, gone(OUT_OF_SCOPE), structs.replace(CHANGES, prunes=True)),
        Delete(COPY, OUT_OF_SCOPE),
    ),
    "of changes, nothing is done for a pending deletion without a copy": (
        *(None, None, gone(), CHANGES),
        None,
    ),
}


@pytest.mark.parametrize("sentence", ROWS)
def test_row_of_the_table(sentence: str) -> None:
    copy, row, task, policy, expected = ROWS[sentence]

    decision = decide(copy, row, task, policy)

    assert decision == expected
    assert type(decision) is type(expected)


copies = st.sampled_from(
    [None, COPY, RESTORED, as_suspect(COPY), COPY._replace(lastmod=None, listed="", evidence=3)]
)
entries = st.sampled_from([None, ENTRY, NEWER, DATED, VAGUE, EXCLUDED, GONE, UNUSABLE])
tasks = st.sampled_from(
    [None, failed(), failed(due=NOW), failed(VAGUE)]
    + [make(reason) for make in (gone, retained) for reason in (ABSENT, MISSED, OUT_OF_SCOPE, "x")]
)
policies = st.builds(
    DecisionPolicy,
    absence=st.sampled_from(Absence),
    delete=st.sampled_from(["auto", "signalled", "absent", "never"]),
    prunes=st.booleans(),
    deletes_restored=st.booleans(),
    counts_until=st.sampled_from([-1, READ]),
    absent_at=st.sampled_from([0, 5]),
    now=st.just(NOW),
)


@given(copies, entries, tasks, policies)
def test_no_row_deletes_without_a_reason_or_against_the_policy(
    copy: Copy | None, row: ListedEntry | None, task: Pending | None, policy: DecisionPolicy
) -> None:
    decision = decide(copy, row, task, policy)

    if isinstance(decision, Delete):
        assert decision.copy == copy
        assert decision.reason
        assert not policy.retains(decision.reason)
        assert row is None or row.change in (FILTERED, "deleted")
        is_known = task is not None and task.reason == decision.reason
        is_proven = policy.absence is Absence.DELETED and copy.evidence <= policy.absent_at
        is_proven |= policy.absence is Absence.TWICE and task is not None and is_missed(task)
        assert row is not None or is_proven or is_known
    if isinstance(decision, Retain) and decision.reason not in {"", *OPEN_REASONS}:
        assert policy.retains(decision.reason)
    if isinstance(decision, Fetch):
        assert row is not None
        assert decision.before == copy
        assert decision.listed.path == (row.path if copy is None else copy.path)
    if decision is None:
        assert copy is None


@given(copies, entries, tasks, policies)
def test_a_task_that_a_decision_leaves_leads_to_the_same_decision(
    copy: Copy | None, row: ListedEntry | None, task: Pending | None, policy: DecisionPolicy
) -> None:
    decision = decide(copy, row, None if policy.absence is Absence.UNCHANGED else task, policy)
    if not isinstance(decision, Delete | Retain | Postponed):
        return

    left = task_of(decision, now=NOW, at=0, generation=READ + 1)

    row = listed_from_task(left) if left.task == PendingTask.FETCH else None
    again = decide(copy, row, left, structs.replace(policy, absence=Absence.UNCHANGED))
    assert isinstance(decision, Postponed) == isinstance(again, Postponed)
    assert isinstance(decision, Delete) == isinstance(again, Delete)


@given(st.lists(st.tuples(copies, entries, tasks), max_size=6), policies)
def test_a_whole_comparison_makes_the_decision_of_the_table_for_each_uri(
    cases: list[tuple[Copy | None, ListedEntry | None, Pending | None]], policy: DecisionPolicy
) -> None:
    if policy.absence is Absence.UNCHANGED:
        policy = structs.replace(policy, absence=Absence.UNPROVEN)
    here: list[Copy] = []
    listed: list[ListedEntry] = []
    waiting: list[Pending] = []
    expected: list[Decision | None] = []
    for number, (copy, row, task) in enumerate(cases):
        here += [] if copy is None else [copy._replace(uri=f"{number}")]
        listed += [] if row is None else [row._replace(uri=f"{number}")]
        waiting += [] if task is None else [task._replace(uri=f"{number}")]
        expected.append(
            decide(
                None if copy is None else here[-1],
                None if row is None else listed[-1],
                None if task is None else waiting[-1],
                policy,
            )
        )

    decided = list(decide_all(here, listed, waiting, policy))

    assert decided == [decision for decision in expected if decision is not None]


@pytest.mark.parametrize("policy", [CHANGES, WHOLE])
def test_a_deletion_from_before_the_resource_was_seen_is_a_question(policy: DecisionPolicy) -> None:
    seen = COPY._replace(evidence=20)

    asked = decide(seen, GONE, None, policy)

    assert isinstance(asked, Fetch)
    assert asked.listed.change == DISPUTED
    assert isinstance(decide(seen, GONE._replace(lastmod=30), None, policy), Delete)
