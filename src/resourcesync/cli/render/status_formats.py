"""Mirrors as ``status`` and ``watch`` find them, and their metrics for Prometheus."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from resourcesync.destination.reports import MirrorState, MirrorStatus
from resourcesync.settings.mirror import FreshnessSettings

if TYPE_CHECKING:
    from resourcesync.cli.output import Problem
    from resourcesync.server.metrics import Metric

Labels = tuple[tuple[str, str], ...]
_PREFIX: Final = "resourcesync_mirror_"
_LEAST_ROOM: Final = 1024 * 1024


class DiskSpace(NamedTuple):
    """Bytes of a file system: those in all, and those free for this user."""

    total: int
    free: int


class CheckedMirror(NamedTuple):
    """A mirror as it is now.

    Attributes:
        status: The mirror's status.
        lag: Seconds since the last run that found it in sync; ``None`` if there was none.
        quiet: Seconds since the Source's last publication; ``None`` if its lists have no times.
        disk: The file system of the mirror's folder; ``None`` if it is unknown.
        folder: The mirror's folder.
    """

    status: MirrorStatus
    lag: float | None
    limits: FreshnessSettings = FreshnessSettings()
    quiet: float | None = None
    disk: DiskSpace | None = None
    folder: Path = Path()

    @property
    def is_late(self) -> bool:
        """True if the lag is over the limit."""
        return _is_over(self.lag, self.limits.max_lag)

    @property
    def is_too_quiet(self) -> bool:
        """True if the Source has not published for longer than the limit."""
        return _is_over(self.quiet, self.limits.max_quiet)

    @property
    def is_full(self) -> bool:
        """True if the file system has no room to speak of: no pull can store what it does."""
        return self.disk is not None and self.disk.free < _LEAST_ROOM

    @property
    def is_fine(self) -> bool:
        """True if the mirror is in sync, within the limits."""
        in_sync = self.status.judged is MirrorState.IN_SYNC
        return in_sync and not self.is_late and not self.is_too_quiet


class UnreadableMirror(NamedTuple):
    """A mirror whose state cannot be read now: its name, and the reason."""

    name: str
    problem: "Problem"


def _is_over(seconds: float | None, most: float | None) -> bool:
    """True if a time is over a limit; an unknown time is."""
    return most is not None and (seconds is None or seconds > most)


def prometheus_lines(
    mirrors: Sequence[CheckedMirror], unreadable: Sequence[UnreadableMirror] = ()
) -> list[str]:
    """Return the lines of the text format of Prometheus."""
    from resourcesync.server.metrics import write_metrics  # noqa: PLC0415 - rarely needed

    return write_metrics(mirror_figures(mirrors, unreadable)).decode("utf-8").splitlines()


def mirror_figures(
    mirrors: Sequence[CheckedMirror], unreadable: Sequence[UnreadableMirror]
) -> "Iterator[Metric]":
    """Yield the figures of mirrors; of those that cannot be read, only that they cannot."""
    from resourcesync.server.metrics import Metric  # noqa: PLC0415 - rarely needed

    readable = [(_label(mirror), 1.0) for mirror in mirrors]
    rows = [
        (
            "readable",
            _READABLE_HELP,
            (*readable, *(((("mirror", mirror.name),), 0.0) for mirror in unreadable)),
        ),
        (
            "state",
            "State of the mirror: 1 for the one that it is in, 0 for the others.",
            tuple(_states(mirrors)),
        ),
    ]
    for name, what, value in _FIGURES:
        known = [
            (_label(mirror), found) for mirror in mirrors if (found := value(mirror)) is not None
        ]
        rows.append((name, what, tuple(known)))
    for name, what, values in rows:
        if values:
            yield Metric(name=_PREFIX + name, kind="gauge", help_text=what, values=values)


_READABLE_HELP: Final = "1 if the state of the mirror can be read; else it has no other metrics."


def _states(mirrors: Sequence[CheckedMirror]) -> "Iterator[tuple[Labels, float]]":
    for seen in mirrors:
        for state in MirrorState:
            yield (*_label(seen), ("state", state.value)), int(seen.status.judged is state)


def _label(seen: CheckedMirror) -> "Labels":
    return (("mirror", seen.status.folder),)


def _ratio(seen: CheckedMirror) -> float | None:
    return seen.status.share


def _moment(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _disk_total(seen: CheckedMirror) -> float | None:
    return None if seen.disk is None else seen.disk.total


def _disk_free(seen: CheckedMirror) -> float | None:
    return None if seen.disk is None else seen.disk.free


_FIGURES: Final[tuple[tuple[str, str, Callable[[CheckedMirror], float | None]], ...]] = (
    (
        "running",
        "1 while a pull or an audit of the mirror runs.",
        lambda mirror: float(mirror.status.state is MirrorState.SYNCING),
    ),
    (
        "lag_seconds",
        "Time since the last run that found the mirror in sync.",
        lambda mirror: mirror.lag,
    ),
    ("max_lag_seconds", "Longest accepted lag.", lambda mirror: mirror.limits.max_lag),
    (
        "source_quiet_seconds",
        "Time since the last publication of the Source.",
        lambda mirror: mirror.quiet,
    ),
    ("in_sync_ratio", "Share of the listed resources that are in the mirror as listed.", _ratio),
    ("resources", "Resources in the mirror.", lambda mirror: mirror.status.resources),
    (
        "pending_resources",
        "Listed resources that are not in the mirror as listed.",
        lambda mirror: mirror.status.pending,
    ),
    (
        "contradicting_resources",
        "Pending resources that are stored but do not match the list.",
        lambda mirror: mirror.status.contradicting,
    ),
    (
        "refused_entries",
        "Entries of the Source that cannot be used.",
        lambda mirror: mirror.status.refused,
    ),
    ("held_deletions", "Deletions that are not applied.", lambda mirror: mirror.status.held),
    (
        "complete_until_timestamp_seconds",
        "Time of the Source up to which the mirror is complete.",
        lambda mirror: _moment(mirror.status.as_of),
    ),
    (
        "last_success_timestamp_seconds",
        "Start of the last run that found the mirror in sync.",
        lambda mirror: _moment(mirror.status.in_sync_at),
    ),
    (
        "last_run_timestamp_seconds",
        "End of the last pull.",
        lambda mirror: _moment(mirror.status.last_run),
    ),
    (
        "source_certificate_expiry_timestamp_seconds",
        "End of the first TLS certificate of the servers of the lists, by the last pull.",
        lambda mirror: _moment(mirror.status.certificate_until),
    ),
    ("copies_bytes", "Bytes of the copies in the mirror.", lambda mirror: mirror.status.size),
    ("filesystem_size_bytes", "Size of the file system of the mirror's folder.", _disk_total),
    ("filesystem_avail_bytes", "Bytes free in the file system of the mirror's folder.", _disk_free),
)
