"""The folder of a simulation's results: they come into it when all of them are whole."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from resourcesync.errors import ConfigurationError, LockedError, StorageError

_UNFINISHED: Final = ".unfinished"
_MOST_NAMED: Final = 5


@contextmanager
def results_folder(out: Path) -> Iterator[Path]:
    """Give a folder for what is being made; it all comes to ``out`` when the block ends well.

    When the block ends in any other way, nothing of it stays. What a run left that was killed is
    removed, and is in nobody's way.

    Args:
        out: A folder that is empty, or not there yet.

    Raises:
        ConfigurationError: It has something in it; nothing was changed.
        LockedError: Another run is at work for this folder.
        StorageError: It cannot be made or written.
    """
    work = out / _UNFINISHED
    held = _lock_folder(out, work)
    try:
        _check_target(out)  # again: another run may have ended just now
        _clear(work)
        yield work
        _move_results(work, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        os.close(held)


def _lock_folder(out: Path, work: Path) -> int:
    """Return the folder to work in, made and locked."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        _check_target(out)
        work.mkdir(exist_ok=True)
        held = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _folder_error(out, error) from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(held)
        raise LockedError(
            f"another run is writing into {out}", hint="wait for it to end, or name another folder"
        ) from error
    except OSError:  # a file system on which no folder can be locked, such as NFS
        pass
    return held


def _check_target(out: Path) -> None:
    found = sorted(it.name for it in out.iterdir() if it.name != _UNFINISHED)
    if found:
        more = ", ..." if len(found) > _MOST_NAMED else ""
        raise ConfigurationError(
            f"{out} is not empty",
            evidence=(("found", ", ".join(found[:_MOST_NAMED]) + more),),
            hint="name a folder that is empty, or not there",
        )


def _clear(work: Path) -> None:
    try:
        for it in work.iterdir():
            if it.is_dir() and not it.is_symlink():
                shutil.rmtree(it)
            else:
                it.unlink()
    except OSError as error:
        raise _folder_error(work, error) from error


def _move_results(work: Path, out: Path) -> None:
    moved: list[Path] = []
    try:
        for it in sorted(work.iterdir()):
            moved.append(out / it.name)
            it.rename(moved[-1])
    except BaseException as error:
        for it in moved:
            with suppress(OSError):
                it.unlink()
        if isinstance(error, OSError):
            raise _folder_error(out, error) from error
        raise


def _folder_error(out: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot write into {out}: {error.strerror}")
