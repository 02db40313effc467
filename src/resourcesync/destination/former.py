"""What earlier readings of a Source left to be done, and whether it still counts."""

from resourcesync.destination.plan import ABSENT, Listed, spares
from resourcesync.destination.pulling import Pull
from resourcesync.destination.tasks import listed_again
from resourcesync.ports.mirror import Copy, Pending, Task


def still_to_delete(pull: Pull, copy: Copy) -> Pending | None:
    """Return the task of a copy that the Source called deleted before, and that was held.

    It says so only of a reading that came to its end, and only if nothing was taken back since:
    else this deletion may be what was. What an earlier list only did not list is not kept so: the
    list that is read now has the say, and where it proves no absence, nothing does.

    Args:
        pull: What the pull works with.
        copy: A copy that no list tells of now.
    """
    known = pull.state.pending_of(copy.uri)
    if known is None or known.task != Task.DELETE or known.generation > pull.memory.settled:
        return None
    if known.reason == ABSENT:
        return None
    if pull.memory.is_taken_back or spares(pull.options.delete, known.reason):
        return None
    return known._replace(generation=pull.generation)


def not_due(pull: Pull, listed: Listed) -> Pending | None:
    """Return the row of a resource that failed often and rests; ``None`` when it is due.

    Args:
        pull: What the pull works with.
        listed: What the Source lists of it now.
    """
    known = pull.state.pending_of(listed.uri)
    if known is None or known.task != Task.FETCH or known.due <= pull.now:
        return None
    same = (known.listed, known.length, known.lastmod) == listed[3:6]
    if not same or listed_again(known).rivals != listed.rivals:
        return None  # the Source lists something new: try at once
    return known._replace(generation=pull.generation)
