"""What earlier readings of a Source left to be done, and whether it still counts."""

from itertools import islice
from typing import Final

from resourcesync.destination.plan import ABSENT, FILTERED, OUT_OF_SCOPE, ListedEntry
from resourcesync.destination.pulling import SyncSession
from resourcesync.destination.tasks import gone_rows, is_gone, listed_from_task
from resourcesync.ports.mirror import Copy, Pending, PendingTask, StateTransaction

_CHUNK: Final = 1_000


def apply_policy_to_pending(pull: SyncSession) -> None:
    """Let what is known to be gone wait to be deleted, or stay, as the policy of this run says.

    That it is gone stays known: the next run may have another policy. What the filters do not want
    is deleted by a run that prunes, and by no later one: the Source has it.
    """
    state, rows = pull.state, gone_rows(pull.state)
    while group := list(islice(rows, _CHUNK)):
        chosen, settled = list[Pending](), list[str]()
        for row in group:
            now = pull.apply_policy(row)
            if now.task == PendingTask.RETAIN and row.reason == OUT_OF_SCOPE:
                now = now._replace(reason="", code=FILTERED)
            if now == row:
                continue
            if now.task == PendingTask.RETAIN and state.copy(row.uri) is None:
                settled.append(row.uri)
            else:
                chosen.append(now)
        state.commit(StateTransaction(pending=chosen, completed=settled))


def pending_deletion_of(pull: SyncSession, copy: Copy) -> Pending | None:
    """Return the task of a copy that the Source called deleted before, and that is still here.

    It says so only of a reading that came to its end, and only if nothing was taken back since:
    else this deletion may be what was. What an earlier list only did not list is not kept so: the
    list that is read now has the say, and where it proves no absence, nothing does.

    Args:
        pull: What the pull works with.
        copy: A copy that no list tells of now.
    """
    known = pull.state.pending_of(copy.uri)
    if (
        known is None
        or not is_gone(known)
        or known.generation > pull.sync_state.completed_generation
    ):
        return None
    if known.reason in (ABSENT, OUT_OF_SCOPE) or pull.sync_state.is_rolled_back:
        return None
    return pull.apply_policy(known._replace(generation=pull.generation))


def postponed_fetch(pull: SyncSession, listed: ListedEntry) -> Pending | None:
    """Return the row of a resource that failed often and rests; ``None`` when it is due.

    Args:
        pull: What the pull works with.
        listed: What the Source lists of it now.
    """
    known = pull.state.pending_of(listed.uri)
    if known is None or known.task != PendingTask.FETCH or known.due <= pull.now:
        return None
    same = (known.listed, known.length, known.lastmod) == listed[3:6]
    if not same or listed_from_task(known).rivals != listed.rivals:
        return None  # the Source lists something new: try at once
    return known._replace(generation=pull.generation)
