"""Convert one document of this machine: from a file or a stream, to a file or a stream."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from resourcesync.documents.any_form import Tolerated, read_any
from resourcesync.documents.converting import Conversion
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.model.capabilities import RefusedEntry
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports import Clock

STANDARD = "-"
"""Stands for standard input."""
MOST_REFUSED: Final = 10
"""Entries that cannot be used and are kept to be named."""
_RECENT: Final = frozenset({Dialect.V0_9_1, Dialect.V1_0, Dialect.V1_1, Dialect.SITEMAP})
_OLD_WAYS: Final = frozenset({"relation-old", "time-modified"})
"""Faults of a recent document that the versions before 0.9.1 asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A document that was converted.

    Attributes:
        conversion: What became of it.
        dialect: Which dialect it was in.
        refused: The first entries that could not be used, ten at most.
        refusals: How many there are in all.
        tolerated: What reading forgave, each kind once. What an old version asked for is no fault
            of a document that is written in it.
    """

    conversion: Conversion
    dialect: Dialect
    refused: tuple[RefusedEntry, ...]
    refusals: int
    tolerated: tuple[Tolerated, ...]


def convert(
    source: str,
    target: Path | None,
    dialect: Dialect,
    *,
    clock: Clock,
    lastmod_compat: bool = False,
    strict: bool = False,
) -> Converted:
    """Convert a document; nothing is written before all of it was converted.

    Args:
        source: A file, or ``-``.
        target: Where to write; standard output by default. A file is replaced at once.
        dialect: What to write.
        clock: Tells the time of writing, for dialects that ask for it.
        lastmod_compat: As `writing.write` has it.
        strict: Whether a document that breaks a rule of 1.1, or has an entry that cannot be used,
            is refused.

    Raises:
        ConfigurationError: There is no such file.
        DocumentError: It is no document, the dialect cannot say it, or a rule is broken and
            ``strict``.
        StorageError: Reading or writing failed.
    """
    refused: list[RefusedEntry] = []
    tolerated: list[Tolerated] = []

    def keep(entry: RefusedEntry) -> None:
        if len(refused) < MOST_REFUSED:
            refused.append(entry)

    with _opened(source) as stream, tempfile.TemporaryFile() as held:
        document = read_any(
            stream, uri=source, on_refused=keep, on_tolerated=tolerated.append, strict=strict
        )
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
        is_recent = document.dialect in _RECENT
        return Converted(
            conversion=conversion,
            dialect=document.dialect,
            refused=tuple(refused),
            refusals=document.refused,
            tolerated=tuple(it for it in tolerated if is_recent or it.code not in _OLD_WAYS),
        )


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    if source == STANDARD:
        yield sys.stdin.buffer
        return
    path = Path(source)
    if not path.exists():
        hint = "look for the file: it is not here; - stands for standard input"
        if "://" in source:
            hint = f"this reads files only: curl {source} | resourcesync convert - --to DIALECT"
        raise ConfigurationError(f"there is no file {source}", hint=hint)
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
