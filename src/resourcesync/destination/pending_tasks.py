"""Pending tasks of resources, as rows of the mirror's state and back. Pure."""

import json
from typing import Final

from resourcesync.destination import planner
from resourcesync.destination.reports import Failing
from resourcesync.discovery.uris import origin
from resourcesync.errors import ResourceSyncError, SourceError
from resourcesync.mirror_state import rows
from resourcesync.mirror_state.rows import Copy, Pending, PendingTask, RefusedRow, encode_patch
from resourcesync.model.timestamps import from_microseconds

DAMAGED: Final = "damaged"
"""Value of ``Pending.code``: an audit found that the file is not as installed."""

STALE: Final = "stale"
"""Value of ``Pending.code``: an audit was served other bytes than the copy has."""

STALE_REASON: Final = "the Source serves other bytes than the copy has"

RESTORED: Final = "restored"
"""Value of ``Pending.code``: an unlisted copy was restored by hand."""

OPEN: Final = "open"
"""Value of ``Pending.code``: the list does not prove yet that an unlisted copy is gone."""

CONTRADICTING: Final = "contradicting"
"""Value of ``Pending.code``: bytes that are not as listed are kept (``verify`` is lenient)."""

OLD_ANSWER: Final = "old-answer"
"""Value of ``Pending.code``: the Source answers as only a change says that seems to be older."""

OLD_ANSWER_REASON: Final = (
    "the Source answers as a change says that is dated before its Resource List, or that an earlier"
    " pull acted on (an old copy of a server?): the copy stays"
)

SHARED: Final = "shared-answer"
"""Value of ``Pending.code``: the Source gives one answer for many pages."""

SHARED_REASON: Final = "the Source gives one answer for many pages, such as a login: the copy stays"

LOCAL_CHANGE: Final = "local-change"
"""Error code: a file is not as installed."""

PART_UNREAD: Final = "part-unread"
"""Code of a refused part of a list that cannot be read."""

EDITED: Final = rows.EDITED
"""Value of ``Pending.code``: a file to be deleted was changed locally, and is kept."""

EDITED_REASON: Final = "to be deleted, but changed locally since it was fetched"

NOT_TRIED: Final = "not fetched yet"
"""Reason of a task that no run has tried."""

ABSENT_CODES: Final = ("missing",)
"""Values of ``Pending.code``: the server does not have the resource (404, 410)."""

REDIRECTED: Final = "redirect"
"""Error code: a redirect that is not followed."""

SKIPPED_CODES: Final = ("robots", REDIRECTED)
"""Values of ``Pending.code``: excluded by robots.txt, or redirected to another site."""

UNAVAILABLE_CODES: Final = (*ABSENT_CODES, *SKIPPED_CODES)
"""Values of ``Pending.code``: listed but not served, which may be accepted."""

MISMATCH_CODES: Final = ("hash-mismatch", "length-mismatch")
"""Values of ``Pending.code``: the Source serves other bytes than are listed."""


_IMMEDIATE_TRIES: Final = 5
_MINUTE: Final = 60_000_000
_MAX_WAIT: Final = 24 * 60 * _MINUTE


def failure_of(error: ResourceSyncError, asked: str) -> tuple[str, str]:
    """Return the code and reason of a failed request; another site is not tried again."""
    if isinstance(error, SourceError) and error.code in {"dns", "egress"} and error.uri:
        site = origin(error.uri)
        if site != origin(asked):
            return REDIRECTED, f"redirected to another site, {site}: {error.message}"
    return error.code, error.cause


def next_try(tries: int, now: int) -> int:
    """Return when a resource that failed ``tries`` times is due again, in microseconds.

    The first five attempts are in the next runs; then the wait doubles, from a minute to a day.
    """
    if tries < _IMMEDIATE_TRIES:
        return now
    return now + min(_MAX_WAIT, _MINUTE << min(tries - _IMMEDIATE_TRIES, 16))


def failing(row: Pending, uri: str) -> Failing:
    """Return the report of a task that waits, for a resource with this URI."""
    due = from_microseconds(row.due) if is_resting(row) else None
    return Failing(uri=uri, code=row.code, reason=row.reason, tries=row.tries, due=due)


def is_resting(row: Pending) -> bool:
    """True if a resource failed so often that not every run tries it again."""
    return row.task == PendingTask.FETCH and row.tries >= _IMMEDIATE_TRIES


def pending_fetch(  # noqa: PLR0913 - a row has that many columns
    listed: planner.ListedEntry,
    *,
    known: Pending | None,
    now: int,
    at: int,
    generation: int,
    code: str = "",
    reason: str = "",
    failed: bool = True,
) -> Pending:
    """Return the task to fetch a resource, after a failure or before an attempt."""
    before = known.tries if known is not None and known.task == PendingTask.FETCH else 0
    tries = before + 1 if failed else before
    stored = (*encode_contradiction(listed), *encode_patch(listed.patch))
    return Pending(
        uri=listed.uri,
        loc=listed.loc,
        path=listed.path,
        task=PendingTask.FETCH,
        listed=listed.hash,
        length=listed.length,
        lastmod=listed.lastmod,
        code=code,
        reason=reason,
        tries=tries,
        due=next_try(tries, now) if failed else now,
        first=now,
        first_at=at,
        generation=generation,
        elsewhere="\n".join((listed.memento, *listed.mirrors, *stored)),
    )


def encode_contradiction(listed: planner.ListedEntry) -> tuple[str, ...]:
    """Return the line that stores a contradiction between lists; none if there is none."""
    if not listed.undated:
        return ()
    stored = [listed.change, listed.rivals, listed.is_older]
    return (planner.CONTRADICTION_PREFIX + json.dumps(stored, separators=(",", ":")),)


def pending_delete(copy: Copy, *, reason: str, now: int, at: int, generation: int) -> Pending:
    """Return the task to delete a copy."""
    return Pending(
        uri=copy.uri,
        loc=copy.uri,
        path=copy.path,
        task=PendingTask.DELETE,
        listed="",
        length=None,
        lastmod=None,
        code="",
        reason=reason,
        tries=0,
        due=now,
        first=now,
        first_at=at,
        generation=generation,
    )


def task_of(
    decision: planner.Fetch | planner.Delete | planner.Retain | planner.Postponed,
    known: Pending | None = None,
    *,
    now: int,
    at: int,
    generation: int,
) -> Pending:
    """Return the task that a decision leaves."""
    if isinstance(decision, planner.Postponed):
        return decision.task._replace(generation=generation)
    if isinstance(decision, planner.Fetch):
        code, reason = ("", "") if known is None else (known.code, known.reason)
        return pending_fetch(
            decision.listed,
            known=known,
            now=now,
            at=at,
            generation=generation,
            code=code,
            reason=reason,
            failed=False,
        )
    copy, reason = decision.copy, decision.reason
    task = known or pending_delete(copy, reason=reason, now=now, at=at, generation=generation)
    if isinstance(decision, planner.Delete):
        return task._replace(task=PendingTask.DELETE, reason=reason)
    code = OPEN if reason in planner.OPEN_REASONS else ""
    code = planner.FILTERED if decision.listed else RESTORED if planner.is_restored(copy) else code
    return task._replace(task=PendingTask.RETAIN, reason=reason, code=code)


def is_retained(row: Pending) -> bool:
    """True if a copy stays although the Source does not list it, and no pull is to decide that."""
    return row.task == PendingTask.RETAIN and row.code != planner.FILTERED and not is_missed(row)


def is_missed(row: Pending) -> bool:
    """True if the last reading of a list lacks a resource, and a later one decides about it."""
    return row.task == PendingTask.RETAIN and row.reason in planner.OPEN_REASONS


def failed_item(  # noqa: PLR0913 - an event has that many fields
    action: str,
    uri: str,
    path: str,
    code: str,
    reason: str,
    *,
    kept: bool,
    tries: int = 1,
    status: str = "error",
) -> dict[str, object]:
    """Return the fields of a resource whose action failed."""
    return {
        "status": status,
        "action": action,
        "uri": uri,
        "path": path,
        "code": code,
        "reason": reason,
        "tries": tries,
        "kept": kept,
    }


def refused_item(refused: RefusedRow) -> dict[str, object]:
    """Return the fields of an entry of the Source that cannot be used."""
    return {
        "status": "impossible",
        "action": "refuse",
        "uri": refused.uri,
        "path": "",
        "code": refused.code,
        "reason": refused.reason,
    }


def quarantine_warning(path: str, place: str) -> dict[str, object]:
    """Return the fields of the warning that a file was moved to quarantine."""
    where = f".resourcesync/quarantine/{place}"
    message = f"{path} is not known to be from the Source: it was moved to {where}"
    return {"code": "set-aside", "message": message}
