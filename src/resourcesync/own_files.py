"""Files opened by descriptor: nothing that somebody put in their place is followed or waited for.

One rule for all files of ours. Each name is opened in the folder above it; a link is not followed,
a pipe is not waited for, and what was opened is a regular file. An operator names the path up to
``.resourcesync``, which may have links; from there on all is ours, and nothing is a link.

SQLite alone opens by path, and `check_database` looks before. Who may write in the folder can still
swap a name between the look and the opening.
"""

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from resourcesync.errors import StateError
from resourcesync.model.own_names import OWN_FOLDER

# Some file systems cannot sync a folder; they report it with one of these.
_NO_FOLDER_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP})


def is_read_only(path: Path | str) -> bool:
    """True if the file system of a path is mounted read-only."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def sync_folder(folder: int) -> None:
    """Make the names in a folder durable."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def is_present(path: Path | str) -> bool:
    """True if something is at a path; an error where that cannot be seen.

    ``Path.exists`` of Python 3.14 says no then, as ``os.path.lexists`` always did.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        os.stat(path)  # noqa: PTH116 - a text may be given
        return True
    return False


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder durably, with those above it; an existing one is no error."""
    missing = list(takewhile(lambda folder: not folder.exists(), (path, *path.parents)))
    path.mkdir(mode, parents=True, exist_ok=True)
    for made in reversed(missing):
        sync_name(made)


def sync_name(path: Path) -> None:
    """Make the name of a file or folder durable: sync its parent folder."""
    # A folder that may be written need not be readable.
    with suppress(PermissionError), opened(os.open(path.parent, ROOT)) as above:
        sync_folder(above)


@contextmanager
def opened(descriptor: int) -> Iterator[int]:
    """Lend a descriptor to the block, and close it."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags to read a file; who opens by them alone must still look what was opened."""
LOCK: Final = os.O_RDWR | os.O_CREAT
"""Flags of a file that is locked: made if missing, and never emptied."""
NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL
"""Flags of a file that must not exist yet."""
ROOT: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags of a folder that an operator named."""
FOLDER: Final = ROOT | os.O_NOFOLLOW
IN_TRASH: Final = "a file in the trash"
_NO_NAMES: Final = frozenset({"", ".", ".."})
_LOCKED: Final = (errno.EWOULDBLOCK, errno.EACCES)
_LONGEST_HOLDER: Final = 4096
_BESIDE_DATABASES: Final = ("", "-wal", "-shm", "-journal")


def is_regular(info: os.stat_result) -> bool:
    """True for a regular file: no folder, link, device, socket or pipe."""
    return stat.S_ISREG(info.st_mode)


def one_name(name: str, of: str = "a file") -> str:
    """Return a name that is one component of a path; ``of`` says what has the name."""
    if name in _NO_NAMES or "/" in name or "\0" in name:
        raise StateError(
            f"{name[:200]!r} cannot be the name of {of}: it leads to another folder",
            evidence=(("kept", "nothing was touched there"),),
            hint=f"move {OWN_FOLDER}/state.db away and pull the address again: copies are kept",
        )
    return name


def open_below(folder: int, names: Iterable[str | bytes], mode: int = 0) -> int:
    """Return a new descriptor of a folder below an open one; no component may be a link."""
    reached = os.dup(folder)
    try:
        for name in names:
            if mode:
                with suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=reached)
                    sync_folder(reached)
            deeper = _enter(reached, name)
            os.close(reached)
            reached = deeper
    except OSError:
        os.close(reached)
        raise
    return reached


def _enter(folder: int, name: str | bytes) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=folder)
    except NotADirectoryError as error:
        raise OSError(errno.ELOOP, f"{os.fsdecode(name)} is a link, or no folder") from error


def link_target(folder: tuple[str, ...], target: str, roots: Iterable[str]) -> tuple[str, ...]:
    """Return the names that a link in a folder means, from a root on; none if it leads out of it.

    ``..`` goes up from the folder alone: what the target names first may itself be a link.
    """
    if target.startswith("/"):
        inside = (root.rstrip("/") + "/" for root in roots)
        root = next((root for root in inside if target.startswith(root)), None)
        if root is None:
            return ()
        folder, target = (), target[len(root) :]
    down = False
    for name in target.split("/"):
        if name in {"", "."}:
            continue
        if name != "..":
            folder, down = (*folder, name), True
        elif folder and not down:
            folder = folder[:-1]
        else:  # above the root; or back from a folder that may itself be a link
            return ()
    return folder


def open_folder(path: Path, mode: int = 0, *, below: tuple[str, ...] = ()) -> int:
    """Return a descriptor of a folder: from ``.resourcesync`` on, no part of its path is a link."""
    named, ours = _parts(path)
    ours += below
    if mode:
        make_folder(named, 0o777 if ours else mode)
    with opened(os.open(named, ROOT)) as root:
        return open_below(root, ours, mode)


def _parts(path: Path) -> tuple[Path, tuple[str, ...]]:
    parts = path.parts
    ours = parts.index(OWN_FOLDER) if OWN_FOLDER in parts else len(parts)
    return Path(*parts[:ours]), parts[ours:]


def open_file(name: str | bytes, folder: int, flags: int = FILE, mode: int = 0o600) -> int:
    """Return a descriptor of a regular file in an open folder."""
    file = os.open(name, flags | FILE, mode, dir_fd=folder)
    if not flags & os.O_EXCL:  # what the call has made is one
        regular_status(file)
    return file


def regular_status(file: int) -> os.stat_result:
    """Return the status of an open file; one that is not regular is closed, which is an error."""
    found = os.fstat(file)
    if is_regular(found):
        return found
    os.close(file)
    raise OSError(errno.EINVAL, "it is not an ordinary file")


def open_path(path: Path, flags: int = FILE) -> int:
    """Return a descriptor of a regular file of ours."""
    with opened(open_folder(path.parent)) as folder:
        return open_file(path.name, folder, flags)


def read_file(path: Path, most: int) -> bytes:
    """Return up to ``most`` bytes of a file of ours."""
    with os.fdopen(open_path(path), "rb") as stream:
        return stream.read(most)


def replace_file(path: Path, content: bytes, *, mode: int = 0o600, folder_mode: int = 0) -> None:
    """Write a file of ours durably: whole under its name, or not at all."""
    with opened(open_folder(path.parent, folder_mode)) as folder:
        replace_in(folder, path.name, content, mode)


def replace_in(folder: int, name: str, content: bytes, mode: int = 0o600) -> None:
    """Do as `replace_file`, in an open folder."""
    beside = f".{os.urandom(8).hex()}"
    try:
        with os.fdopen(open_file(beside, folder, NEW, mode), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise
    sync_folder(folder)


def remove_file(path: Path) -> None:
    """Remove a file of ours; it is no error if it is gone."""
    with suppress(FileNotFoundError), opened(open_folder(path.parent)) as folder:
        os.unlink(path.name, dir_fd=folder)


def lock_file(lock: int, since: str) -> bool:
    """Lock an open file for this process, and note that in it; false if another one has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _LOCKED:
            raise
        return False
    holder = {"pid": os.getpid(), "host": os.uname().nodename, "since": since}
    with suppress(OSError):  # on a full disk the lock holds without its note
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps(holder).encode(), 0)
    return True


def holder_of(lock: int) -> str:
    """Return the process that has locked an open file, as that says."""
    try:
        holder = json.loads(os.pread(lock, _LONGEST_HOLDER, 0).decode("utf-8", "replace"))
        return f"process {int(holder['pid'])} on {holder['host']} since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "it did not say which"


def check_database(path: Path) -> None:
    """Check that a SQLite file, and those beside it, are regular files, or missing.

    They are not opened: whoever closes a file in a process ends all locks of that process on it.
    """
    named, ours = _parts(path.parent)
    for name in ours:
        named /= name
        _check(named, stat.S_ISDIR)
    for suffix in _BESIDE_DATABASES:
        _check(path.with_name(f"{path.name}{suffix}"), stat.S_ISREG)


def _check(path: Path, is_right: Callable[[int], bool]) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        if not is_right(path.lstat().st_mode):
            raise StateError(
                f"{path} is not an ordinary {'file' if is_right is stat.S_ISREG else 'folder'}",
                evidence=(("kept", "nothing was changed"),),
                hint="move it away, then try again",
            )
