"""Names that survive a power cut: without its name the content of a file is lost."""

import errno
import os
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Some file systems cannot sync a folder; they report it with one of these.
_NO_FOLDER_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP})


def sync_folder(folder: int) -> None:
    """Make the names in a folder durable."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder durably, with those above it; an existing one is no error."""
    missing = list(takewhile(lambda folder: not folder.exists(), (path, *path.parents)))
    path.mkdir(mode, parents=True, exist_ok=True)
    for made in reversed(missing):
        sync_name(made)


def sync_name(path: Path) -> None:
    """Make the name of a file or folder durable: sync its parent folder."""
    with suppress(PermissionError):  # a folder that may be written need not be readable
        above = os.open(path.parent, _FLAGS)
        try:
            sync_folder(above)
        finally:
            os.close(above)
