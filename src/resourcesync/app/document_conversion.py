"""Conversion of one document of this machine: from a file or a stream, to a file or a stream."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from resourcesync.documents.converter import Conversion, read_any
from resourcesync.documents.reader import Tolerated
from resourcesync.errors import ConfigurationError, MalformedDocumentError, Remedy, StorageError
from resourcesync.model.capabilities import RefusedEntry
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports import Clock

STANDARD_STREAM = "-"
"""Name of standard input."""
MOST_REFUSED: Final = 10
"""Most unusable entries that are listed."""
_RECENT: Final = frozenset({Dialect.V0_9_1, Dialect.V1_0, Dialect.V1_1, Dialect.SITEMAP})
_OLD_FORMS: Final = frozenset({"relation-old", "time-modified"})
"""Faults of a recent document that the versions before 0.9.1 required."""


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a conversion.

    Attributes:
        conversion: The counts of the conversion.
        dialect: Dialect of the original.
        refused: The first entries that could not be used, ten at most.
        refusals: Number of all such entries.
        tolerated: Faults that the reader tolerated, each kind once. A form that an old version
            required is no fault of a document that is written in it.
    """

    conversion: Conversion
    dialect: Dialect
    refused: tuple[RefusedEntry, ...]
    refusals: int
    tolerated: tuple[Tolerated, ...]


class ConversionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a conversion.

    Attributes:
        dialect: The dialect to write.
        lastmod_compat: As for `writing.write`.
        strict: True if a document that breaks a rule of 1.1, or has an entry that cannot be used,
            is refused.
        leave_out: True if entries that cannot be used are left out.
    """

    dialect: Dialect
    lastmod_compat: bool = False
    strict: bool = False
    leave_out: bool = False


def convert(
    source: str, target: Path | None, manner: ConversionOptions, *, clock: Clock
) -> Converted:
    """Convert a document; nothing is written before all of it was converted.

    A list with missing entries would make readers delete those resources, so nothing is written
    when an entry cannot be used without permission to leave it out, or when none is left.

    Args:
        source: A file, or ``-``.
        target: The file to write; standard output by default. A file is replaced at once.
        manner: The options.
        clock: Gives the time of writing, for dialects with one.

    Raises:
        ConfigurationError: There is no such file.
        DocumentError: It is not a document, the dialect cannot express it, a rule is broken and
            that is refused, or entries cannot be used.
        StorageError: Reading or writing failed.
    """
    refused: list[RefusedEntry] = []
    tolerated: list[Tolerated] = []

    def keep(entry: RefusedEntry) -> None:
        if len(refused) < MOST_REFUSED:
            refused.append(entry)

    with _open_source(source) as stream, tempfile.TemporaryFile() as converted:
        on_tolerated, strict = tolerated.append, manner.strict
        document = read_any(
            stream, uri=source, on_refused=keep, on_tolerated=on_tolerated, strict=strict
        )
        conversion = Conversion(
            document, manner.dialect, now=clock.now(), lastmod_compat=manner.lastmod_compat
        )
        try:
            for chunk in conversion.chunks():
                converted.write(chunk)
            if document.refused and not (manner.leave_out and conversion.entries):
                raise _unusable(source, refused, document.refused, conversion.entries)
            converted.seek(0)
            if target is not None:
                _replace(target, converted)
        except OSError as error:
            raise StorageError(
                f"the document cannot be converted: {error.strerror}",
                hint="free space or fix permissions, then try again",
            ) from error
        if target is None:
            shutil.copyfileobj(converted, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return Converted(
            conversion=conversion,
            dialect=document.dialect,
            refused=tuple(refused),
            refusals=document.refused,
            tolerated=_unexpected_forms(tolerated, document.dialect),
        )


def _unexpected_forms(tolerated: Iterable[Tolerated], dialect: Dialect) -> tuple[Tolerated, ...]:
    """Return the tolerated faults, without the forms of older versions."""
    is_recent = dialect in _RECENT
    return tuple(
        tolerated for tolerated in tolerated if is_recent or tolerated.code not in _OLD_FORMS
    )


def _unusable(
    source: str, refused: list[RefusedEntry], refusals: int, entries: int
) -> MalformedDocumentError:
    """Return the error for entries that cannot be used: their number, and the first of them."""
    evidence = [(f"line {entry.line}", entry.reason) for entry in refused]
    if refusals > len(refused):
        evidence.append(("", f"and {refusals - len(refused):,} more"))
    number = f"{refusals:,} of the {refusals + entries:,}" if entries else f"all {refusals:,}"
    return MalformedDocumentError(
        f"{number} entries cannot be used; nothing was written",
        uri=source,
        line=refused[0].line,
        column=1,
        evidence=tuple(evidence),
        hint="the others can be written without them" if entries else "",
        code=refused[0].code,
        remedy=Remedy("leave-out") if entries else None,
    )


@contextmanager
def _open_source(source: str) -> Iterator[BinaryIO]:
    if source == STANDARD_STREAM:
        yield sys.stdin.buffer
        return
    path = Path(source)
    if not path.exists():
        hint, remedy = "check the path; - is standard input", None
        if "://" in source:
            hint, remedy = "this reads files only", Remedy("convert-stream", target=source)
        raise ConfigurationError(f"there is no file {source}", hint=hint, remedy=remedy)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise StorageError(f"{source}: {error.strerror}") from error
    with stream:
        yield stream


def _replace(target: Path, converted: BinaryIO) -> None:
    """Replace the file by a whole document."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            shutil.copyfileobj(converted, stream)
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
