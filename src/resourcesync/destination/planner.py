"""Planner: the one table of decisions, and the limit of deletions; from values alone.

`decide` is the table: a copy, its listed entry, its pending task and the policy of the run give the
decision. Baseline, incremental synchronization, repair, dry run, review and workers all use it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

import msgspec

from resourcesync.destination.reports import Mode, PlanSummary
from resourcesync.destination.scope_and_filters import LinkTarget
from resourcesync.merge_join import Created, Deleted, Same, Updated, compare
from resourcesync.mirror_state.rows import (
    ALTERED,
    MISSING,
    ONLY_BY_REQUEST,
    Copy,
    Fixity,
    PatchLink,
    Pending,
    PendingTask,
    decode_patch,
    decode_stored,
    make_copy,
)
from resourcesync.model.digests import Digest, agree, format_digests, parse_digests, usable
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import end_of_lastmod
from resourcesync.model.vocabulary import ChangeKind

FILTERED: Final = "filtered"
"""Value of ``ListedEntry.change``: the operator's filters exclude the entry."""

DISPUTED: Final = "disputed"
"""Value of ``ListedEntry.change``: listed, and deleted by a change of unknown age."""

MADE_AGAIN: Final = "made again"
"""Value of ``ListedEntry.change``: the same, but the list has a later version than was deleted."""

UNLISTED: Final = "unlisted"
"""Value of ``ListedEntry.change``: a change dated before the Resource List, which lacks it."""

MAY_BE_GONE: Final = frozenset({DISPUTED, MADE_AGAIN, UNLISTED})
"""Values of ``ListedEntry.change``: the Source is asked whether the resource exists."""

UNREADABLE: Final = "unreadable"
"""Value of ``ListedEntry.change``: a change that cannot be read; `last_changes` consumes it."""

UNKNOWN_CONTENT: Final = "its content is not verified"

NOT_WANTED: Final = frozenset({FILTERED, ChangeKind.DELETED})
"""Values of ``ListedEntry.change``: the mirror is to have no copy."""

ALWAYS_ALLOWED_DELETIONS: Final = 25


MAX_MIRRORS: Final = 8
"""Other locations of a resource that may be used."""


class ListedEntry(NamedTuple):
    """Entry of the Source for one resource, ready to be compared with a copy.

    ``uri`` is normalised, the sort key; ``loc`` is as written. ``lastmod`` may be the time of the
    change, which of a deletion comes first. ``change`` is empty in a Resource List, else a
    ``ChangeKind`` or one of the values above. ``entry`` is as ``EntryRow.links``. ``via`` is the
    listed resource that links to it; empty for one with its own entry.

    It is unknown whether the Resource List includes an ``undated`` change. ``rivals`` are
    candidates for the content, each by hash and length, the first that of the Resource List: lists
    contradict each other, and it is unknown which is later. ``is_older``: the change that the list
    contradicts is dated before it, or an earlier pull acted on it. Neither decides an order, but
    what only this change says replaces no copy as the list has it.
    """

    uri: str
    loc: str
    path: str
    hash: str
    length: int | None
    lastmod: int | None
    change: str
    mirrors: tuple[str, ...] = ()
    memento: str = ""
    patch: PatchLink | None = None
    links: tuple[LinkTarget, ...] = ()
    via: str = ""
    entry: str = ""
    undated: bool = False
    rivals: tuple[tuple[str, int | None], ...] = ()
    is_older: bool = False

    @property
    def contents(self) -> tuple[tuple[str, int | None], ...]:
        """Its content, or the candidates for it: each by hash and length, as in ``rivals``."""
        return self.rivals or ((self.hash, self.length),)

    def candidates(self) -> list["ListedEntry"]:
        """Return the entry with each of its contents."""
        return [self._replace(hash=text, length=size, rivals=()) for text, size in self.contents]


def is_out_of_scope(listed: ListedEntry) -> bool:
    """True if a usable entry is excluded by the filters."""
    return listed.change == FILTERED and listed.loc != ""


class Match(Enum):
    """Result of comparing a copy with its entry."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """Undecided by the list: only a conditional request to the Source can tell."""


def match_copy(copy: Copy, listed: ListedEntry) -> Match:
    """Compare a copy with its entry: by hash, else by length and ``lastmod`` (§5.2).

    A ``lastmod`` whose interval was not over when the copy was fetched is not recorded with it:
    only the Source can tell whether the resource changed again within it.
    """
    if not listed.undated:  # as most are
        return _match(copy, listed)
    is_other = all(_match(copy, row) is Match.DIFFERENT for row in listed.candidates())
    return Match.DIFFERENT if is_other else Match.UNKNOWN


def _match(copy: Copy, listed: ListedEntry) -> Match:
    if copy.is_damaged or (listed.length is not None and listed.length != copy.length):
        return Match.DIFFERENT
    if copy.fixity in ONLY_BY_REQUEST:
        return Match.UNKNOWN
    if listed.hash:
        if listed.hash == copy.listed:
            return Match.SAME
        digests = usable(parse_digests(listed.hash))
        known = parse_digests(copy.digests)
        if digests and agree(known, digests):
            return Match.SAME
        if digests:
            return Match.DIFFERENT
    if listed.lastmod is not None and copy.lastmod is not None:
        return Match.SAME if listed.lastmod == copy.lastmod else Match.DIFFERENT
    return Match.UNKNOWN


def has_moved_date(copy: Copy, listed: ListedEntry) -> bool:
    """True if nothing but its date says that a resource changed since it was fetched.

    The date may move without the bytes, at each build of a site say: the Source is asked whether
    they did. If it says that they did not, one of the two is wrong. If the date moved back, only
    an ``ETag`` can ask: an older version is not modified since the date of the copy, either.
    """
    if listed.lastmod is None or copy.lastmod is None or listed.lastmod == copy.lastmod:
        return False
    if listed.lastmod < copy.lastmod and not copy.etag:
        return False
    is_dated = not (listed.undated or usable(parse_digests(listed.hash)))
    return is_dated and not copy.is_damaged and listed.length in {None, copy.length}


def recordable_lastmod(listed: ListedEntry, as_of: int) -> int | None:
    """Return the ``lastmod`` to record with bytes; ``None`` while it proves nothing."""
    lastmod = listed.lastmod
    if lastmod is None or listed.hash or as_of >= end_of_lastmod(lastmod):
        return lastmod
    return None


def as_unknown(copy: Copy) -> Copy:
    """Return a copy with unknown content, known only by its path: it equals nothing listed."""
    return make_copy((*copy[:2], -1, "", "", -1, "", "", *copy[8:]))


def as_suspect(copy: Copy, *, is_missing: bool = False) -> Copy:
    """Return a copy whose file is not as installed; what was installed stays recorded."""
    return copy._replace(signature=MISSING if is_missing else ALTERED)


def is_restored(copy: Copy) -> bool:
    """True if a copy was restored by hand: it stays until the Source lists it again."""
    return copy.fixity == Fixity.RESTORED


CONTRADICTION_PREFIX: Final = "lists "
"""Prefix of the line that stores a contradiction between lists: no URI begins so."""


class _Contradiction(NamedTuple):
    change: str
    rivals: tuple[tuple[str, int | None], ...]
    is_older: bool


def listed_from_task(task: Pending) -> ListedEntry:
    """Return the Source's entry that a pending task stores."""
    memento, *mirrors = task.elsewhere.split("\n")
    patch = decode_patch(mirrors[-1]) if mirrors else None
    listed = ListedEntry(
        uri=task.uri,
        loc=task.loc,
        path=task.path,
        hash=task.listed,
        length=task.length,
        lastmod=task.lastmod,
        change=ChangeKind.UPDATED,
        mirrors=tuple(mirrors if patch is None else mirrors[:-1]),
        memento=memento,
        patch=patch,
    )
    return decode_contradiction(listed)


def decode_contradiction(listed: ListedEntry) -> ListedEntry:
    """Return a row with the contradiction that its last mirror stores, if it does."""
    if not listed.mirrors or not listed.mirrors[-1].startswith(CONTRADICTION_PREFIX):
        return listed
    *mirrors, line = listed.mirrors
    stored = decode_stored(line.removeprefix(CONTRADICTION_PREFIX), _Contradiction)
    return listed._replace(mirrors=tuple(mirrors), undated=True, **stored._asdict())


def is_gone(task: Pending) -> bool:
    """True if the resource is gone at the Source, as far as known; its copy may be retained."""
    is_kept = task.task == PendingTask.RETAIN and task.reason not in _NOT_GONE and not task.code
    return is_kept or task.task == PendingTask.DELETE


ABSENT: Final = "no longer listed"
"""Reason of a deletion without a Change List: a later Resource List may list it again."""

MISSED: Final = "not in the last reading of a list whose parts are of several moments"
"""Reason to retain a copy: the next reading decides whether the resource is gone."""

SEEN_LATER: Final = "not in a list that is older than its last answer"
"""Reason to retain a copy: a newer list decides whether the resource is gone."""

WRITING_TIME: Final = 600_000_000
"""Longest time in which the documents of one list are written, microseconds."""

OPEN_REASONS: Final = frozenset({MISSED, SEEN_LATER})
"""Reasons to retain copies while it is unknown whether their resources are gone."""

_NOT_GONE: Final = frozenset({"", *OPEN_REASONS})

DELETED_BY_SOURCE: Final = "deleted by the Source"
"""Reason of a deletion that a Change List reports."""

OUT_OF_SCOPE: Final = "no longer matches the filters"
"""Reason of a deletion of a listed resource: only in a run that prunes."""


class Absence(Enum):
    """Meaning of a copy that has no row."""

    UNCHANGED = "unchanged"
    """The rows are new changes: what was decided before stands."""
    UNPROVEN = "unproven"
    """The rows are all that is listed, but what is not listed may exist."""
    DELETED = "deleted"
    """The rows are all that is listed, and what is not listed is gone."""
    TWICE = "twice"
    """As before, but of several moments: what two readings in a row lack is gone."""


class DecisionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Policy of the decisions of one run.

    ``counts_until`` is the last reading of the Source whose deletions still count, if all that is
    listed is read again: they may have been withdrawn since (-1: none do). Up to ``absent_at`` the
    rows are all that is listed: a copy of a resource that existed later is not absent.
    ``is_old_reading``: the lists report less than was processed, and what they call deleted may
    have been made again since. ``asks_unlisted``: they lost changes, maybe creations, and the
    Source is asked whether it has what they lack. Tasks that are due by ``now`` are tried.
    """

    absence: Absence
    delete: str = "auto"
    prunes: bool = False
    deletes_restored: bool = False
    counts_until: int = -1
    absent_at: int = 0
    is_old_reading: bool = False
    asks_unlisted: bool = False
    now: int = 0

    def retains(self, reason: str) -> bool:
        """True if copies with this reason of deletion are retained."""
        if reason == OUT_OF_SCOPE:
            return not self.prunes
        return self.delete == "never" or (self.delete == "signalled" and reason == ABSENT)


class Fetch(NamedTuple):
    """Decision to fetch and install a resource.

    ``is_conditional``: the Source may answer "not modified". ``is_missing``: the copy has no file.
    """

    listed: ListedEntry
    before: Copy | None
    is_conditional: bool = False
    is_missing: bool = False

    @property
    def creates(self) -> bool:
        """True if the resource has no file in the mirror."""
        return self.before is None or self.is_missing


class Postponed(NamedTuple):
    """Decision to fetch a resource in a later run: it failed often, and is not due yet."""

    task: Pending
    before: Copy | None


class Delete(NamedTuple):
    """Decision to delete a copy: deleted at the Source, or excluded by the operator."""

    copy: Copy
    reason: str


class Retain(NamedTuple):
    """Decision to keep a copy that is no longer listed, or no longer matches the filters.

    ``listed``: the Source lists it, so that a held deletion is withdrawn. ``reason`` is that of a
    deletion under another policy.
    """

    copy: Copy
    listed: bool = False
    reason: str = ""


class UpToDate(NamedTuple):
    """Decision that a copy is as listed."""

    copy: Copy


# The constructors of named tuples are Python code, and there are millions of decisions.
_up_to_date: Final[Callable[[tuple[Copy]], UpToDate]] = partial(tuple.__new__, UpToDate)
_fetch: Final[Callable[[tuple[ListedEntry, Copy | None, bool, bool]], Fetch]] = partial(
    tuple.__new__, Fetch
)
ReviewedDecision = Fetch | Delete | Retain
Decision = ReviewedDecision | Postponed | UpToDate


def decide(
    copy: Copy | None, row: ListedEntry | None, task: Pending | None, policy: DecisionPolicy
) -> Decision | None:
    """Return the decision about one resource; ``None``: nothing to do, nor a task to keep."""
    if row is None:
        return None if copy is None else _decide_unlisted(copy, task, policy)
    is_news = policy.absence is Absence.UNCHANGED
    if copy is not None:
        row = _as_question(copy, row, task, policy)
    if row.change in NOT_WANTED:
        return None if copy is None else _decide_unwanted(copy, row, task, policy)
    match = None if copy is None else match_copy(copy, row)
    # A modification time alone is no proof of a change, since there may be two in its second; nor
    # where the Source did not serve the resource when it was requested again.
    is_open = is_news or (task is not None and task.task == PendingTask.FETCH)
    if copy is not None and match is Match.SAME and (row.hash or not is_open):
        return UpToDate(copy)
    if task is not None and _is_postponed(task, row, policy.now):
        return Postponed(task, copy)
    if copy is None:
        return _fetch((row, None, False, False))
    if row.path != copy.path:  # a copy keeps its path
        row = row._replace(path=copy.path)
    listed = row if is_news else without_patch(row)
    # A change says more than its date: it is fetched.
    may_be_same = match is not Match.DIFFERENT or (not is_news and has_moved_date(copy, row))
    is_missing = copy.is_incoming or copy.signature == MISSING
    return _fetch((listed, copy, may_be_same, is_missing))


def _as_question(
    copy: Copy, row: ListedEntry, task: Pending | None, policy: DecisionPolicy
) -> ListedEntry:
    """Return the row of a change that may be later than what is in the mirror, or not.

    A new deletion may be late, and the resource made again. One on which a pull has acted is new as
    long as the Source has not answered. One from before the copy was served is one, too: clocks
    differ, so a 404 counts. In a reading that is behind the mirror, each is one, and none counts.
    """
    if row.change == ChangeKind.DELETED:
        seen = max(copy.evidence, copy.installed)
        if seen > (row.lastmod or seen) or policy.is_old_reading:
            return row._replace(change=DISPUTED, undated=True, is_older=policy.is_old_reading)
    if not row.undated:
        return row
    if row.change == ChangeKind.DELETED and policy.absence is Absence.UNCHANGED:
        return row._replace(change=DISPUTED)
    if row.is_older and task is not None and task.task == PendingTask.FETCH:
        stored = listed_from_task(task)
        return row._replace(is_older=stored.is_older or not stored.undated)
    return row


def _is_postponed(task: Pending, row: ListedEntry, now: int) -> bool:
    if task.task != PendingTask.FETCH or task.due <= now:
        return False
    is_same = (task.listed, task.length, task.lastmod) == row[3:6]
    return is_same and listed_from_task(task).rivals == row.rivals


def _decide_unwanted(
    copy: Copy, row: ListedEntry, task: Pending | None, policy: DecisionPolicy
) -> Decision:
    if row.change == ChangeKind.DELETED:
        return decide_gone(copy, DELETED_BY_SOURCE, policy, task)
    if policy.prunes and is_out_of_scope(row):
        return Delete(copy, OUT_OF_SCOPE)
    return Retain(copy, listed=True)


def _decide_unlisted(copy: Copy, task: Pending | None, policy: DecisionPolicy) -> Decision:
    """Return the decision about a copy without a row.

    An earlier deletion by the Source counts, as long as it was not withdrawn since. Mere absence
    from an earlier list does not: the list read now decides, or nothing does.
    """
    reason = _reason_of_absence(copy, task, policy)
    if policy.absence is Absence.UNCHANGED and task is not None and task.code == FILTERED:
        reason = OUT_OF_SCOPE
    if reason == SEEN_LATER and policy.asks_unlisted and not is_restored(copy):
        row = ListedEntry(copy.uri, copy.uri, copy.path, "", None, None, DISPUTED, undated=True)
        return _fetch((row, copy, True, copy.signature == MISSING))
    if task is not None and is_gone(task):
        is_signalled = task.reason not in {ABSENT, OUT_OF_SCOPE}
        still_counts = is_signalled and task.generation <= policy.counts_until
        still_counts |= is_restored(copy) and task.task == PendingTask.DELETE
        if policy.absence is Absence.UNCHANGED or still_counts:
            reason = task.reason
    if reason == OUT_OF_SCOPE and not policy.prunes:
        return Retain(copy, listed=True)  # the Source still has the resource
    return decide_gone(copy, reason, policy, task)


def _reason_of_absence(copy: Copy, task: Pending | None, policy: DecisionPolicy) -> str:
    if policy.absence not in {Absence.DELETED, Absence.TWICE}:
        return ""
    if copy.evidence > policy.absent_at:
        return "" if policy.retains(ABSENT) else SEEN_LATER
    if policy.absence is Absence.TWICE and not policy.retains(ABSENT):
        was_missed = task is not None and task.reason == MISSED
        is_known = task is not None and task.generation <= policy.counts_until
        is_past = task is not None and task.first <= policy.now - WRITING_TIME
        return ABSENT if was_missed and is_known and is_past else MISSED
    return ABSENT


def decide_gone(
    copy: Copy, reason: str, policy: DecisionPolicy, task: Pending | None = None
) -> Delete | Retain:
    """Return the decision about a copy whose resource is gone; no reason: it is not gone."""
    if reason in OPEN_REASONS and not is_restored(copy):
        return Retain(copy, reason=reason)
    is_asked = policy.deletes_restored or (task is not None and task.task == PendingTask.DELETE)
    if not reason or (is_restored(copy) and not is_asked):  # only the operator deletes it
        return Retain(copy)
    return Retain(copy, reason=reason) if policy.retains(reason) else Delete(copy, reason)


def decide_all(
    copies: Iterable[Copy],
    rows: Iterable[ListedEntry],
    tasks: Iterable[Pending],
    policy: DecisionPolicy,
) -> Iterator[Decision]:
    """Compare all copies with all that is listed, and yield the decision for each URI.

    All three are in URI order, with one row for each URI; absence is not ``UNCHANGED``.
    """
    rest = iter(tasks)
    task = next(rest, None)
    copy: Copy | None
    row: ListedEntry | None
    uri: str
    for difference in compare(copies, rows, same=_is_same):
        match difference:
            case Same(copy, row) if task is None or row.hash:  # as most are
                yield _up_to_date((copy,))
                continue
            case Same(copy, row) | Updated(copy, row):
                uri = row.uri
            case Deleted(copy):
                row, uri = None, copy.uri
            case Created(row):
                copy, uri = None, row.uri
        while task is not None and task.uri < uri:
            task = next(rest, None)
        known = task if task is not None and task.uri == uri else None
        decision = decide(copy, row, known, policy)
        if decision is not None:
            yield decision


def without_patch(listed: ListedEntry) -> ListedEntry:
    """Return the entry without its patch: the version before is not in the mirror."""
    return listed if listed.patch is None else listed._replace(patch=None)


def _is_same(copy: Copy, row: ListedEntry) -> bool:
    return row.change not in NOT_WANTED and match_copy(copy, row) is Match.SAME


class DecisionCounts(NamedTuple):
    """Counts of the decisions of a run.

    A later reading decides about the ``missed``. ``filtered`` copies are listed, and do not match
    the filters; ``postponed`` resources are not due yet, and ``outdated`` of them have a copy.
    ``unsure``: some entry alone cannot show that a copy is still good.
    """

    plan: PlanSummary
    retained: int
    filtered: int
    postponed: int
    outdated: int
    unsure: bool
    missed: int = 0


def count_decisions(
    decisions: Iterable[Decision], mode: Mode, was_absent: Callable[[str], bool] | None
) -> DecisionCounts:
    """Count decisions; ``was_absent``: not served to an earlier run, which is accepted."""
    same = create = fetched = delete = untold = postponed = outdated = 0
    retained = filtered = size = unsized = may_be_same = missed = absent = 0
    unsure = False
    for decision in decisions:
        match decision:
            case UpToDate():
                same += 1
            case Fetch(row):
                fetched += 1
                create += decision.creates
                absent += was_absent is not None and was_absent(row.uri)
                size += row.length or 0
                unsized += row.length is None
                may_be_same += decision.is_conditional
                unsure = unsure or not (row.hash or row.lastmod is not None)
            case Delete(_, reason):
                delete += 1
                untold += reason == ABSENT
            case Retain(copy, listed, reason):
                is_open = reason in OPEN_REASONS
                missed += is_open
                retained += not (is_open or listed or is_restored(copy) or copy.is_damaged)
                filtered += listed and not copy.is_damaged
            case Postponed(task, before):
                postponed += 1
                outdated += before is not None
                unsure = unsure or not (task.listed or task.lastmod is not None)
    work = {"same": same, "create": create, "update": fetched - create, "delete": delete}
    sizes = {"size": size, "unsized": unsized, "may_be_same": may_be_same}
    plan = PlanSummary(mode=mode, **work, **sizes, unsignalled=untold, absent=absent)
    return DecisionCounts(plan, retained, filtered, postponed, outdated, unsure, missed)


def agrees_with_list(copy: Copy | None, row: ListedEntry) -> bool:
    """True if a copy is as the Resource List has it, and only an older change says otherwise."""
    if not row.is_older or copy is None or copy.is_damaged:
        return False
    return _match(copy, row.candidates()[0]) is Match.SAME


def is_undecided(row: ListedEntry, copy: Copy | None) -> bool:
    """True if an answer does not settle what lists contradict each other about.

    The Source serves what one list calls deleted, or what only a change says that is older than
    the Resource List: an older replica may have answered.
    """
    if row.change == DISPUTED:
        return True
    return row.is_older and bool(row.rivals) and not agrees_with_list(copy, row)


def is_gone_by_answer(fetch: Fetch, *, is_old_reading: bool) -> bool:
    """True if it settles what lists dispute that the Source does not have a resource.

    It does not where an older replica may have answered, or the lists report less than before.
    """
    return not (is_old_reading or (fetch.listed.is_older and fetch.before is not None))


def has_old_bytes(row: ListedEntry, copy: Copy | None, found: Sequence[Digest]) -> bool:
    """True if bytes are as only a change says that is older than the list, which the copy is as."""
    if not row.is_older or not agrees_with_list(copy, row):
        return False
    if has_bytes(copy, format_digests(found)):
        return False
    return not agree(found, usable(parse_digests(row.contents[0][0])))


def has_unlisted_bytes(row: ListedEntry, copy: Copy | None, digests: str) -> bool:
    """True if bytes differ from a copy, and no list tells of them: a page may say "deleted"."""
    if row.change != DISPUTED or row.hash or copy is None or copy.is_damaged:
        return False
    return copy.digests != digests


def has_bytes(copy: Copy | None, digests: str) -> bool:
    """True if a copy has these very bytes, and is not suspect."""
    return copy is not None and copy.digests == digests and not copy.is_damaged


def algorithms_for(listed: ListedEntry, own: str) -> tuple[str, ...]:
    """Return the algorithms to compute: the mirror's own and each usable one of the Source."""
    if listed.hash.startswith(f"{own}:") and " " not in listed.hash:
        return (own,)
    claims = [claim for hash_, _ in listed.contents for claim in usable(parse_digests(hash_))]
    return tuple(dict.fromkeys((own, *(claim.algorithm for claim in claims))))


def may_delete(limit: Limit, deletions: int, copies: int, *, untold: int) -> bool:
    """True if one run may delete this many; a share is one of the copies before the run.

    A few are allowed whatever the share, unless a number is set; but of deletions that no Change
    List reports, never more than half of the copies: a small mirror counts, too.
    """
    if limit.number is not None:
        return deletions <= limit.number
    few = ALWAYS_ALLOWED_DELETIONS if untold <= copies // 2 else 0
    return deletions <= max(few, int(copies * (limit.percent or 0.0) / 100))
