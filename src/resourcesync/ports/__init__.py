"""Ports: small protocols for what the package needs from outside, each with adapters behind it.

``Originals`` and ``Copies`` are the two terms that the specification lacks: the resources as a
Source has them, and the resources as a Destination stores them.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from resourcesync.ports.copies import (
    Copies,
    CopyInspector,
    CopyInstallation,
    CopyMove,
    CopyRemoval,
    StagedCopy,
)
from resourcesync.ports.fetcher import (
    Fetcher,
    FetchFailure,
    FetchRequest,
    FetchResponse,
    Message,
    Outcomes,
    PartialBody,
    Proof,
    Purpose,
    Sink,
    Streamer,
    modified_at,
    served_at,
    validators_of,
)

__all__ = [
    "Clock",
    "Copies",
    "CopyInspector",
    "CopyInstallation",
    "CopyMove",
    "CopyRemoval",
    "FetchFailure",
    "FetchRequest",
    "FetchResponse",
    "Fetcher",
    "Message",
    "Outcomes",
    "PartialBody",
    "Proof",
    "Purpose",
    "Reporter",
    "Sink",
    "StagedCopy",
    "Streamer",
    "modified_at",
    "served_at",
    "validators_of",
]


class Clock(Protocol):
    """The clock: the only source of time."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for durations."""

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds``."""


Reporter = Callable[[str, Mapping[str, object]], None]
"""Receives ``(event, fields)`` during a run; an embedder or the command line shows them."""
