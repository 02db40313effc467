"""Installed files: whether the file of a copy is still as it was installed.

That is a statement about bytes (`has_content`). A file with the recorded stat signature is not
read. Any other is: a mirror that was copied or restored by ``cp -a``, tar or rsync has other inodes
or times, and the same bytes. What was read and found right has its present signature recorded.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from resourcesync.destination.options import Dependencies
from resourcesync.destination.planner import as_unknown, is_unknown
from resourcesync.errors import StorageError
from resourcesync.mirror_state.rows import Copy, StateTransaction
from resourcesync.ports import CopyInspector
from resourcesync.ports.copies import CopyContent, has_content

_CHUNK: Final = 1_000


def installed_content(copy: Copy | None) -> CopyContent | None:
    """Return the content that was installed; ``None`` if a killed run left it unknown."""
    return None if copy is None or is_unknown(copy) else CopyContent(copy.length, copy.digests)


def check_installed(copy: Copy, look: CopyInspector) -> Copy | None:
    """Return the copy with the present signature of its file, which is as installed."""
    if look.signature(copy.path) == copy.signature and not is_unknown(copy):
        return copy
    return read_installed(copy, look)


def read_installed(copy: Copy, look: CopyInspector) -> Copy | None:
    """Return the same as `check_installed`, and read every byte, whatever the signature is."""
    signature = look.signature(copy.path)  # first: one that changes while it is read is not learned
    if signature is None or not has_content(look, copy.path, installed_content(copy)):
        return None
    return copy if signature == copy.signature else copy._replace(signature=signature)


def inspected_copies(equipment: Dependencies, *, dry_run: bool) -> Iterator[Copy]:
    """Yield all copies as their files are now: those that are not as installed are unknown.

    The present signatures of the others are recorded, except in a dry run.
    """
    copies = equipment.state.copies()
    with equipment.copies.inspect() as look:
        while group := list(islice(copies, _CHUNK)):
            found = [_inspected(copy, look) for copy in group]
            pairs = zip(group, found, strict=True)
            learned = [now for copy, now in pairs if now.signature != copy.signature]
            if learned and not dry_run:
                equipment.state.commit(StateTransaction(suspect=learned))
            yield from found


def _inspected(copy: Copy, look: CopyInspector) -> Copy:
    try:
        return check_installed(copy, look) or as_unknown(copy)
    except StorageError:  # it cannot be read
        return as_unknown(copy)
