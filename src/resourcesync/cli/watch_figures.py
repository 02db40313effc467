"""What ``watch`` tells operators: figures for Prometheus, and its state as JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from resourcesync import __version__
from resourcesync.cli.configured import Configuration
from resourcesync.cli.json_output import line_of
from resourcesync.cli.notes import Notes
from resourcesync.cli.status import Check, look
from resourcesync.cli.status_formats import Labels, Limits, Seen, figures_of
from resourcesync.server.figures import Figure

_CHANGES: Final = ("created", "updated", "deleted")


class WatchFigures:
    """Counts what ``watch`` did, and reads what its mirrors say of themselves.

    Args:
        names: Gives the mirrors, and the configuration that names them.
        intervals: Gives the seconds between two pulls of mirrors that have an interval.
        hints: Gives how many notifications came, by outcome.
    """

    def __init__(
        self,
        names: Callable[[], tuple[tuple[str, ...], Configuration]],
        intervals: Callable[[], Mapping[Labels, float]],
        hints: Callable[[], Mapping[str, int]],
    ) -> None:
        self._names, self._intervals, self._hints = names, intervals, hints
        self._runs: Counter[Labels] = Counter()
        self._changes: Counter[Labels] = Counter()
        self._received: Counter[Labels] = Counter()
        self._seconds: dict[Labels, float] = {}
        self._accuracy: dict[Labels, float] = {}
        self._last: dict[str, Mapping[str, object]] = {}

    def count(self, kind: str, fields: Mapping[str, Any], seconds: float) -> None:
        """Count an errand that ended.

        Args:
            kind: ``pull``, ``audit`` or ``hand-on``.
            fields: Of its event.
            seconds: How long it took.
        """
        mirror = (("mirror", str(fields["mirror"])),)
        self._runs[(*mirror, ("kind", kind), ("exit", str(fields["exit"])))] += 1
        self._last[f"{fields['mirror']} {kind}"] = fields
        if kind == "audit" and "accuracy" in fields:
            self._accuracy[mirror] = float(fields["accuracy"])
        if kind != "pull":
            return
        self._seconds[mirror] = seconds
        for name in _CHANGES:
            self._changes[(*mirror, ("change", name))] += int(fields.get(name, 0))
        self._received[mirror] += int(fields.get("bytes", 0))

    def figures(self) -> Iterator[Figure]:
        """Yield all figures."""
        yield _one("build_info", "The version of this program.", {(("version", __version__),): 1})
        yield from figures_of(self._look()[0])
        yield _many("runs_total", "Runs that ended, by exit code.", self._runs)
        yield _many("changes_total", "Changes that pulls brought.", self._changes)
        yield _many("fetch_bytes_total", "Bytes that pulls received.", self._received)
        yield _one("pull_duration_seconds", "How long the last pull took.", self._seconds)
        yield _one(
            "audit_accuracy_ratio",
            "Share of the copies that the last audit found right.",
            self._accuracy,
        )
        yield _one("mirror_interval_seconds", "Time between two pulls.", self._intervals())
        hints: dict[Labels, float] = {
            (("direction", "in"), ("outcome", it)): n for it, n in self._hints().items()
        }
        yield _many("notifications_total", "Notifications that came.", hints)

    def status(self) -> bytes:
        """Return the mirrors as ``status --json`` tells them, and how their last runs ended."""
        _, mirrors = self._look()
        lines = [msgspec.json.decode(line_of("mirror", "", it)) for it in mirrors]
        ended = [msgspec.json.decode(line_of("ended", "", it)) for it in list(self._last.values())]
        return msgspec.json.encode({"v": 1, "mirrors": lines, "ended": ended})

    def _look(self) -> tuple[list[Seen], list[Mapping[str, object]]]:
        names, configuration = self._names()
        seen: list[Seen] = []
        mirrors: list[Mapping[str, object]] = []
        for name in names:
            notes = Notes()
            found = look((name,), configuration, notes, Check(asked=False, limits=Limits()))
            seen += found.seen
            mirrors += notes.mirrors
            mirrors += ({"mirror": name, "code": it.code} for it in notes.problems)
        return seen, mirrors


def _one(name: str, what: str, values: Mapping[Labels, float]) -> Figure:
    return Figure(
        name=f"resourcesync_{name}", kind="gauge", what=what, values=tuple(values.items())
    )


def _many(name: str, what: str, values: Mapping[Labels, float]) -> Figure:
    return Figure(
        name=f"resourcesync_{name}",
        kind="counter",
        what=what,
        values=tuple(sorted(values.items())),
    )
