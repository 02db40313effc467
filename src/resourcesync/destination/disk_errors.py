"""What the system says of temporary files on the mirror's disk, in our words."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from resourcesync.errors import DiskFullError, StorageError

_DISK_FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def translate_disk_errors(what: str) -> Iterator[None]:
    """Turn the system's errors into ours.

    Args:
        what: What is worked with, as in ``a temporary file of the mirror``.

    Raises:
        DiskFullError: No room is left.
        StorageError: Anything else went wrong.
    """
    try:
        yield
    except OSError as error:
        is_full = error.errno in _DISK_FULL_ERRNOS
        kind = DiskFullError if is_full else StorageError
        raise kind(
            f"{what} failed: {error.strerror or error}",
            evidence=(("kept", "all complete copies"),),
            hint=f"{'make room' if is_full else 'look at the disk'}, then run the same command",
        ) from error
