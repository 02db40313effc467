"""What is to be done, decided from values alone: no network, no disk, no clock."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from resourcesync.compare import Created, Deleted, Same, Updated, compare
from resourcesync.destination.links import PatchFields
from resourcesync.destination.reports import Mode, PlanSummary
from resourcesync.model.digests import STRONG, agree, disagree, parse_digests, usable
from resourcesync.model.timestamps import end_of_lastmod
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.mirror import Copy, Fixity, Pending, PendingTask

FILTERED: Final = "filtered"
"""In ``Listed.change``: the Source lists it, the operator's filters do not want it."""

DISPUTED: Final = "disputed"
"""In ``Listed.change``: the Resource List has it, and a change of unknown age calls it deleted."""

ALTERED: Final = "altered"
"""In place of a copy's signature: no file has it, so whatever is there goes to quarantine."""

DAMAGED: Final = "damaged"
"""In ``Pending.code``: an audit found that the file is not what was put there."""

RESTORED: Final = "restored"
"""In ``Pending.code``: a copy was brought back by hand that the Source does not list."""

CONTRADICTING: Final = "contradicting"
"""In ``Pending.code``: bytes are kept that are not what the list says (``--verify lenient``)."""

LOCAL_CHANGE: Final = "local-change"
"""The code of the error that a file is not as it was put there."""

EDITED: Final = "edited"
"""In ``Pending.code``: a file that is to be deleted was changed here, and so is kept."""

EDITED_REASON: Final = "it is to be deleted, and was changed here since it was fetched"

ABSENT_CODES: Final = ("missing",)
"""In ``Pending.code``: the server says that it does not have it (404, 410)."""

REDIRECTED: Final = "redirect"
"""The code of the error that a redirect leads where it is not followed."""

SKIPPED_CODES: Final = ("robots", REDIRECTED)
"""In ``Pending.code``: the Source keeps programs out of it, or sends them to another site."""

UNAVAILABLE_CODES: Final = (*ABSENT_CODES, *SKIPPED_CODES)
"""In ``Pending.code``: the Source lists it and does not give it, which may be accepted."""

MISMATCH_CODES: Final = ("hash-mismatch", "length-mismatch")
"""In ``Pending.code``: the Source serves other bytes than are listed."""

UNKNOWN_CONTENT: Final = "its content is not known to be good"

_NOT_WANTED: Final = frozenset({FILTERED, ChangeKind.DELETED})

ALWAYS_ALLOWED_DELETIONS: Final = 25
_ONE_STRONG: Final = "sha-256:"


class ListedEntry(NamedTuple):
    """What the Source says of one resource, ready to be compared with a copy.

    Attributes:
        uri: Its URI, normalised: what accounts are ordered by.
        loc: Its URI as the Source wrote it: what is requested.
        path: Its place in the mirror.
        hash: The ``hash`` as the Source wrote it, in our form.
        length: Bytes, or ``None``.
        lastmod: ``lastmod``, else the time of the change, in microseconds; or ``None``.
        change: Empty in a Resource List, else a ``ChangeKind``, or ``FILTERED``, or ``DISPUTED``.
        mirrors: Other addresses of the same bytes, the preferred one first (§14.2).
        memento: The address of the very version that is listed (§14.6); empty for none.
        patch: What leads to it from the version before (§14.4); a ``PatchLink``'s fields.
        links: What it links to that is to be here too; a ``Target``'s fields.
        via: The listed resource that links to it; empty for what is listed itself.
        entry: What it links to, as in ``EntryRow.links``; empty for nothing that is remembered.
        undated: Whether it is a change of which nobody knows whether the Resource List has it.
        rivals: The contents, each by hash and length, of which the resource has one: lists
            contradict each other, and nobody knows which is later. Empty where ``hash`` says it.
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
    patch: PatchFields | None = None
    links: tuple[tuple[str, str, int | None, int | None], ...] = ()
    via: str = ""
    entry: str = ""
    undated: bool = False
    rivals: tuple[tuple[str, int | None], ...] = ()


def as_retained(listed: ListedEntry) -> ListedEntry:
    """Return a row that keeps the copy as it is: what the Source says of it cannot be used."""
    return listed._replace(loc="", change=FILTERED, hash="", length=None, lastmod=None)


def is_out_of_scope(listed: ListedEntry) -> bool:
    """Whether a usable entry is one that the filters do not want."""
    return listed.change == FILTERED and listed.loc != ""


class Match(Enum):
    """Whether a copy is what the Source lists."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """The list does not tell: only the Source itself can, by a conditional request."""


def match_copy(copy: Copy, listed: ListedEntry) -> Match:
    """Compare a copy with what the Source lists: by hash, else by length and ``lastmod`` (§5.2).

    A ``lastmod`` that was not over when the copy was fetched is not remembered with it: only the
    Source can say whether the resource changed once more before it was.
    """
    if not listed.undated:  # as most are
        return _match(copy, listed)
    contents = listed.rivals or ((listed.hash, listed.length),)
    rows = (listed._replace(hash=digest, length=length) for digest, length in contents)
    is_other = all(_match(copy, row) is Match.DIFFERENT for row in rows)
    return Match.DIFFERENT if is_other else Match.UNKNOWN


def _match(copy: Copy, listed: ListedEntry) -> Match:
    if is_suspect(copy) or (listed.length is not None and listed.length != copy.length):
        return Match.DIFFERENT
    if is_restored(copy):  # it was deleted there: what is listed again is a new resource
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


def recordable_lastmod(listed: ListedEntry, as_of: int) -> int | None:
    """Return the ``lastmod`` to remember with bytes; ``None`` while it proves nothing.

    Args:
        listed: What the Source says; where it lists a hash, that decides.
        as_of: The bytes are those of the Source at this moment, or a later one; microseconds.
    """
    lastmod = listed.lastmod
    if lastmod is None or listed.hash or as_of >= end_of_lastmod(lastmod):
        return lastmod
    return None


def is_proven(copy: Copy | None, listed: ListedEntry) -> bool:
    """Whether a copy is surely what a change led to.

    A time of modification alone is no proof then: there may be two changes in its second.
    """
    return copy is not None and bool(listed.hash) and match_copy(copy, listed) is Match.SAME


def as_unknown(copy: Copy) -> Copy:
    """Return a copy of which nothing is known but where it was: it equals nothing listed."""
    return copy._replace(length=-1, digests="", listed="", lastmod=-1, etag="", last_modified="")


def is_unknown(copy: Copy) -> bool:
    """Whether nothing is known of a copy: a run was killed while its file was changed."""
    return copy.length < 0


def as_suspect(copy: Copy) -> Copy:
    """Return a copy whose file is not what was put there; what was put there stays known."""
    return copy._replace(signature=ALTERED)


def is_suspect(copy: Copy) -> bool:
    """Whether an audit found the file of a copy altered or gone, and nothing mended it yet."""
    return copy.signature == ALTERED


def is_restored(copy: Copy) -> bool:
    """Whether a copy was brought back by hand: it stays until the Source lists it again."""
    return copy.fixity == Fixity.RESTORED


class Fetch(NamedTuple):
    """Fetch a resource and put it in place.

    Attributes:
        listed: What the Source says of it.
        before: The copy that is here now, or ``None``.
        ask: Whether the Source may answer that our copy is still good (a conditional request).
        is_missing: Whether there is no file where that copy ought to be.
    """

    listed: ListedEntry
    before: Copy | None
    is_conditional: bool = False
    is_missing: bool = False

    @property
    def creates(self) -> bool:
        """Whether the resource is not here yet, or not here any more."""
        return self.before is None or self.is_missing


ABSENT: Final = "no longer listed"
"""Why a copy goes that no Change List calls deleted: a later Resource List may list it again."""


DELETED_BY_SOURCE: Final = "deleted by the Source"
"""Why a copy goes that a Change List calls deleted."""


OUT_OF_SCOPE: Final = "the filters do not want it any more"
"""Why a copy goes that the Source lists: only in a run that was told to prune."""


class Delete(NamedTuple):
    """Delete a copy: the Source took the resource away, or the operator wants it no more."""

    copy: Copy
    reason: str


class Retain(NamedTuple):
    """Leave a copy that the Source lists no more, or that the filters do not want any more.

    Attributes:
        copy: The copy.
        listed: Whether the Source lists it, so that a deletion that was held is taken back.
        reason: Why another policy of deletion would take it away; empty if none would.
    """

    copy: Copy
    listed: bool = False
    reason: str = ""


class UpToDate(NamedTuple):
    """A copy is what the Source lists."""

    copy: Copy


_up_to_date: Final[Callable[[tuple[Copy]], UpToDate]] = partial(tuple.__new__, UpToDate)
Decision = Fetch | Delete | Retain | UpToDate


def policy_retains(policy: str, reason: str) -> bool:
    """Whether a policy of deletion keeps what the Source took away, for this reason."""
    return policy == "never" or (policy == "signalled" and reason == ABSENT)


def apply_deletion_policy(decisions: Iterable[Decision], policy: str) -> Iterator[Decision]:
    """Yield decisions; what a policy of deletion spares is kept, and why it would go is said."""
    if policy in ("auto", "absent"):  # as most are: nothing is spared
        return iter(decisions)
    return (_apply_policy(decision, policy) for decision in decisions)


def _apply_policy(decision: Decision, policy: str) -> Decision:
    if isinstance(decision, Delete) and decision.reason != OUT_OF_SCOPE:
        copy, reason = decision
        return Retain(copy, reason=reason) if policy_retains(policy, reason) else decision
    return decision


def decide(
    copies: Iterable[Copy],
    rows: Iterable[ListedEntry],
    *,
    sweeping: bool,
    pruning: bool = False,
) -> Iterator[Decision]:
    """Compare what the mirror holds with what the Source says, and decide for each URI.

    Only the Source decides here; ``apply_deletion_policy`` applies the deletion policy afterwards.

    Args:
        copies: What the mirror holds, in URI order.
        rows: What the Source says, one row for each URI, in URI order.
        sweeping: Whether the list proves that what it does not list is gone.
        pruning: Whether a copy that the filters do not want any more is to be deleted.
    """
    for difference in compare(copies, rows, same=_is_same):
        if isinstance(difference, Same):  # as most are
            yield _up_to_date((difference.before,))
            continue
        match difference:
            case Deleted(copy):
                yield decide_unlisted(copy, sweeping=sweeping)
            case Created(row):
                if row.change not in _NOT_WANTED:
                    yield Fetch(row, None)
            case Updated(copy, row):
                if pruning and is_out_of_scope(row):
                    yield Delete(copy, OUT_OF_SCOPE)
                else:
                    yield _decide_updated(copy, row)


def decide_unlisted(copy: Copy, *, sweeping: bool) -> Delete | Retain:
    """Decide on a copy that is not listed."""
    return Delete(copy, ABSENT) if sweeping and not is_restored(copy) else Retain(copy)


def _decide_updated(copy: Copy, row: ListedEntry) -> Decision:
    if row.change == FILTERED:
        return Retain(copy, listed=True)
    if row.change == ChangeKind.DELETED:
        return Retain(copy) if is_restored(copy) else Delete(copy, DELETED_BY_SOURCE)
    if row.path != copy.path:  # where it is, is where it stays
        row = row._replace(path=copy.path)
    return Fetch(without_patch(row), copy, is_conditional=match_copy(copy, row) is Match.UNKNOWN)


def without_patch(listed: ListedEntry) -> ListedEntry:
    """Return it without a patch: the version that the patch begins with is not here."""
    return listed if listed.patch is None else listed._replace(patch=None)


def _is_same(copy: Copy, row: ListedEntry) -> bool:
    return row.change not in _NOT_WANTED and match_copy(copy, row) is Match.SAME


def count_decisions(decisions: Iterable[Decision], mode: Mode) -> tuple[PlanSummary, int, bool]:
    """Count decisions.

    Returns:
        The plan; how many copies are kept that are not listed; and whether some entry tells too
        little to see from the list alone that a copy is still good.
    """
    same = create = update = delete = untold = kept = size = unsized = 0
    unsure = False
    for decision in decisions:
        if isinstance(decision, UpToDate):  # as most are
            same += 1
            continue
        match decision:
            case Delete(_, reason):
                delete += 1
                untold += reason == ABSENT
            case Retain(copy, listed):
                kept += not (listed or is_restored(copy))
            case Fetch(row):
                create += decision.creates
                update += not decision.creates
                size += row.length or 0
                unsized += row.length is None
                unsure = unsure or not (row.hash or row.lastmod is not None)
    plan = PlanSummary(
        mode=mode,
        same=same,
        create=create,
        update=update,
        delete=delete,
        unsignalled=untold,
        size=size,
        unsized=unsized,
    )
    return plan, kept, unsure


def deduplicate(
    rows: Iterable[ListedEntry], on_conflict: Callable[[ListedEntry, ListedEntry], None]
) -> Iterator[ListedEntry]:
    """Yield one row for each URI: its last change, else its one entry in the Resource List.

    A URI that a Resource List gives twice with different content is told to ``on_conflict``;
    neither telling can be trusted, so its row is kept as it is (``as_retained``).

    Args:
        rows: In URI order; those of one URI in the order in which the Source gave them.
        on_conflict: Takes the first and the differing row.
    """
    rest = iter(rows)
    first = current = next(rest, None)
    if current is None or first is None:
        return
    uri = current.uri
    for row in rest:
        if row.uri != uri:
            yield current
            first = current = row
            uri = row.uri
        elif row.change:
            current = without_patch(row)  # we do not hold the version between
            if row.undated and row.change != FILTERED:
                current = _merge_contradicting(first, current)
        elif not current.change and _content_of(row) != _content_of(current):
            on_conflict(current, row)
            current = as_retained(current)
    yield current


def _merge_contradicting(listed: ListedEntry, changed: ListedEntry) -> ListedEntry:
    """Return what is known of a resource when nobody knows which of two rows is the later one.

    If they contradict each other, only the Source itself can say what it has.
    """
    if listed.change:  # the list does not say what it is
        is_kept = listed.change == FILTERED and changed.change == ChangeKind.DELETED
        return listed if is_kept else changed
    if changed.change == ChangeKind.DELETED:
        return listed._replace(change=DISPUTED, undated=True)
    is_same = listed.hash == changed.hash
    if not listed.hash and not changed.hash:
        is_same = listed.lastmod is not None and listed.lastmod == changed.lastmod
    if is_same:
        return listed
    rivals = ((listed.hash, listed.length), (changed.hash, changed.length))
    return changed._replace(hash="", length=None, lastmod=None, rivals=rivals)


class ListingStatus(Enum):
    """What is known of a resource, where lists may contradict each other."""

    LISTED = "listed"
    """It is what its row says: lists agree, or a pull asked the Source, which gave one of two."""
    GONE = "gone"
    """One list calls it deleted, and the Source did not have it when a pull asked."""
    OPEN = "open"
    """The Source was not asked since, did not answer, or gives what one list calls deleted."""


def listing_status(
    row: ListedEntry, copy: Copy | None, waiting: Pending | None, *, is_read: bool
) -> ListingStatus:
    """Say what is known of a resource that is listed; for whoever does not ask the Source.

    Args:
        row: What `settle` made of its lists; neither filtered nor deleted.
        copy: The copy that is here, if any.
        waiting: What is still to be done for it, if anything.
        is_read: Whether a pull read these very lists, and so asked where they contradict.
    """
    if not row.undated:
        return ListingStatus.LISTED
    if not is_read or (waiting is not None and waiting.task == PendingTask.FETCH):
        return ListingStatus.OPEN
    if row.change != DISPUTED:
        return ListingStatus.LISTED
    return ListingStatus.GONE if copy is None or waiting is not None else ListingStatus.OPEN


def _content_of(row: ListedEntry) -> tuple[str, int | None, int | None]:
    return row.hash, row.length, row.lastmod


def verify_bytes(
    listed: ListedEntry, length: int, digests: str
) -> tuple[Fixity, tuple[str, str, str] | None]:
    """Say how well received bytes are proven, and what is wrong with them if anything is.

    Args:
        listed: What the Source says.
        length: Bytes received.
        digests: Their digests, as in a ``hash`` attribute.

    Returns:
        The fixity, and ``None`` or ``(code, expected, actual)`` of a mismatch.
    """
    if listed.hash == digests and digests.startswith(_ONE_STRONG) and listed.length == length:
        return Fixity.VERIFIED, None  # the common case, without taking the digests apart
    if listed.rivals:
        rivals = (
            listed._replace(hash=rival[0], length=rival[1], rivals=()) for rival in listed.rivals
        )
        judged = [verify_bytes(rival, length, digests) for rival in rivals]
        return next((item for item in judged if item[1] is None), judged[-1])
    if listed.length is not None and listed.length != length:
        return Fixity.UNVERIFIED, ("length-mismatch", f"{listed.length} B", f"{length} B")
    claims = usable(parse_digests(listed.hash))
    found = parse_digests(digests)
    if claims and disagree(found, claims):
        actual = next((str(d) for d in found if d.algorithm == claims[0].algorithm), digests)
        return Fixity.UNVERIFIED, ("hash-mismatch", str(claims[0]), actual)
    if claims and agree(found, claims):
        strong = any(claim.algorithm in STRONG for claim in claims)
        return (Fixity.VERIFIED if strong else Fixity.WEAK), None
    return (Fixity.WEAK if listed.length is not None else Fixity.UNVERIFIED), None


def describe_mismatch(wrong: tuple[str, str, str]) -> str:
    """Say what is wrong with received bytes, in the terms of ``verify_bytes``."""
    _, expected, actual = wrong
    return f"the list says {expected}, the Source served {actual}"


def has_bytes(copy: Copy | None, digests: str) -> bool:
    """Whether a copy has these very bytes, and nobody doubts it."""
    return copy is not None and copy.digests == digests and not is_suspect(copy)


def algorithms_for(listed: ListedEntry, own: str) -> tuple[str, ...]:
    """Return the algorithms to compute: our own and each that the Source lets us check."""
    if listed.hash.startswith(f"{own}:") and " " not in listed.hash:
        return (own,)
    hashes = (listed.hash, *(digest for digest, _ in listed.rivals))
    claims = [claim for hash_ in hashes for claim in usable(parse_digests(hash_))]
    return tuple(dict.fromkeys((own, *(claim.algorithm for claim in claims))))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionLimit:
    """How many copies one run may delete.

    Attributes:
        count: A number; wins over ``percent``.
        percent: A share of the copies that were here before the run, 0 to 100.
    """

    count: int | None = None
    percent: float = 10.0

    def allows(self, deletions: int, copies: int, *, untold: int) -> bool:
        """Whether one run may delete this many.

        A few are allowed whatever the share, unless a count is set; but of what no Change List
        calls deleted, never more than half of what was here: few copies are a mirror, too.

        Args:
            deletions: How many.
            copies: How many copies were here before the run.
            untold: How many of the deletions no Change List told.
        """
        if self.count is not None:
            return deletions <= self.count
        few = ALWAYS_ALLOWED_DELETIONS if untold <= copies // 2 else 0
        return deletions <= max(few, int(copies * self.percent / 100))

    def __str__(self) -> str:
        return f"{self.percent:g} %" if self.count is None else str(self.count)
