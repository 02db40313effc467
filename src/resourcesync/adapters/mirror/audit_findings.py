"""Findings of audits, stored for a later repair: those of the last 20 audits, 100,000 of each.

They are not in the mirror's state, which has one writer at a time.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.errors import ConfigurationError, StateError

MAX_AUDITS: Final = 20
MAX_FINDINGS: Final = 100_000
_AUDIT: Final = re.compile(r"[0-9]{20}-([0-9a-f]{12})\.ndjson")
"""Names sort by time, to the microsecond."""
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


class AuditFiles:
    """The files of audit findings."""

    def __init__(self, own: Path) -> None:
        self._folder = own / "reports"

    @contextmanager
    def write_findings(self) -> Iterator["AuditFindingWriter"]:
        """Store the findings of one audit; without ``set_name`` they are discarded."""
        unnamed = self._folder / "unfinished"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(unnamed, _FLAGS, 0o600), "wb") as stream:
                kept = AuditFindingWriter(stream)
                yield kept
            if kept.name:
                unnamed.rename(self._folder / kept.name)
                for name in self._names()[:-MAX_AUDITS]:
                    (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise mirror_error(error, "storing the audit's findings") from error
        finally:
            with suppress(OSError):
                unnamed.unlink()

    def read_findings(self, audit: str) -> Iterator[Mapping[str, str]]:
        """Yield the findings of an audit: ``kind``, ``uri``, ``path`` and ``reason`` of each."""
        names = self._names()
        chosen = names[-1:] if audit == "last" else [n for n in names if _id(n) == audit]
        if not chosen:
            raise ConfigurationError(
                f"there is no audit {audit[:100]!r} of this mirror",
                evidence=(("here", ", ".join(map(_id, names)) or "none"),),
                hint="audit the mirror again, or name no audit: resourcesync audit MIRROR",
            )
        path = self._folder / chosen[0]
        try:
            with path.open("rb") as stream:
                for line in stream:
                    yield _decode(line)
        except OSError as error:
            raise mirror_error(error, f"reading {path}") from error
        except msgspec.MsgspecError as error:
            raise StateError(f"{path} is damaged", hint="audit the mirror again") from error

    def _names(self) -> list[str]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if _AUDIT.fullmatch(name))


class AuditFindingWriter:
    """A writer of the findings of one audit."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._count = 0
        self.name = ""

    def add(self, fields: Mapping[str, object]) -> None:
        """Write one finding; beyond 100,000 they are only counted elsewhere."""
        self._count += 1
        if self._count <= MAX_FINDINGS:
            row = {name: str(fields[name]) for name in ("kind", "uri", "path", "reason")}
            self._stream.write(_encode(row) + b"\n")

    def set_name(self, audit: str, moment: str) -> None:
        """Set the audit's id and its time, as ``20261121020004123456``; then it will be stored."""
        self.name = f"{moment}-{audit}.ndjson"


def _id(name: str) -> str:
    found = _AUDIT.fullmatch(name)
    return "" if found is None else found[1]
