"""Convert one document of this machine: from a file or a stream, to a file or a stream."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from resourcesync.documents.any_form import read_any
from resourcesync.documents.converting import Conversion
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.model.capabilities import RefusedEntry
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports import Clock

STANDARD = "-"
"""Stands for standard input."""


def convert(
    source: str,
    target: Path | None,
    dialect: Dialect,
    *,
    clock: Clock,
    on_refused: Callable[[RefusedEntry], None],
    lastmod_compat: bool = False,
) -> tuple[Conversion, Dialect]:
    """Convert a document; nothing is written before all of it was converted.

    Args:
        source: A file, or ``-``.
        target: Where to write; standard output by default. A file is replaced at once.
        dialect: What to write.
        clock: Tells the time of writing, for dialects that ask for it.
        on_refused: Told of each entry that cannot be used.
        lastmod_compat: As `writing.write` has it.

    Returns:
        What became of the document, and which dialect it was in.

    Raises:
        ConfigurationError: There is no such file.
        DocumentError: It is no document, or the dialect cannot say it.
        StorageError: Reading or writing failed.
    """
    with _opened(source) as stream, tempfile.TemporaryFile() as held:
        document = read_any(stream, uri=source, on_refused=on_refused)
        conversion = Conversion(document, dialect, now=clock.now(), lastmod_compat=lastmod_compat)
        try:
            for chunk in conversion.chunks():
                held.write(chunk)
            held.seek(0)
            if target is not None:
                _replace(target, held)
        except OSError as error:
            raise StorageError(
                f"the document cannot be converted here: {error.strerror}"
            ) from error
        if target is None:
            shutil.copyfileobj(held, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return conversion, document.dialect


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    if source == STANDARD:
        yield sys.stdin.buffer
        return
    path = Path(source)
    if not path.exists():
        raise ConfigurationError(f"there is no file {source}")
    try:
        stream = path.open("rb")
    except OSError as error:
        raise StorageError(f"{source}: {error.strerror}") from error
    with stream:
        yield stream


def _replace(target: Path, held: BinaryIO) -> None:
    """Put a whole document in place of the file that may be there."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            shutil.copyfileobj(held, stream)
            stream.flush()
            os.fsync(stream.fileno())
            os.fchmod(stream.fileno(), _mode(target))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or those of a new one."""
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
