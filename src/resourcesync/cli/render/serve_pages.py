"""The content of the pages of ``serve --admin``: the Source for its operators."""

import logging
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.app.checks.target_access import new_validator
from resourcesync.app.hubs import OpenHub
from resourcesync.app.serving.applications import PublishedTree
from resourcesync.cli.formatting import clause_of, counted
from resourcesync.cli.output import problem_of
from resourcesync.cli.render.explore_pages import CachedExplorer
from resourcesync.cli.render.validate import ValidationTally, cut_short_message
from resourcesync.errors import BudgetError, ResourceSyncError
from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken
from resourcesync.server.admin import MetricsSource
from resourcesync.server.dashboard.layout import INTERVALS, interval_start, report_page
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.server.dashboard.views import (
    DocumentFile,
    DocumentTree,
    SourceView,
    ValidationStatus,
)
from resourcesync.settings.network import Network
from resourcesync.validator.events import (
    CutShort,
    Judged,
    Sampled,
    StandaloneDocument,
    Unopened,
    ValidationEvent,
    ValidationOptions,
)
from resourcesync.validator.rule import AppliedRules, RuleFinding
from resourcesync.validator.sample import Unreached

_LOG: Final = logging.getLogger(__name__)

_SECONDS: Final = 600.0
_MOST_FINDINGS: Final = 1_000
_MOST_SUBSCRIBERS: Final = 50
_JOIN_SECONDS: Final = 5.0
_RERUN_SECONDS: Final = 30.0


class _FinishedValidation(msgspec.Struct, frozen=True):
    view: ValidationStatus
    report: str
    documents: tuple[DocumentFile, ...]
    moment: float


class Validation:
    """A validation of a tree on request, in its own thread, one at a time."""

    def __init__(self, tree: Path, clock: Clock, seconds: float = _SECONDS) -> None:
        self._tree, self._clock, self._seconds = tree, clock, seconds
        self._thread: threading.Thread | None = None
        self._tally = ValidationTally(fail_on="error")
        self._finished: _FinishedValidation | None = None

    def view(self, documents: tuple[DocumentFile, ...]) -> ValidationStatus:
        """Return the status of the validation."""
        thread, ended = self._thread, self._finished
        is_running = thread is not None and thread.is_alive()
        if ended is None:
            return ValidationStatus(
                now=self._clock.now(), is_running=is_running, documents=self._tally.documents
            )
        is_stale = ended.documents != documents
        return replace(ended.view, now=self._clock.now(), is_running=is_running, is_stale=is_stale)

    def request(self, documents: tuple[DocumentFile, ...], *, again: bool) -> str | None:
        """Return the findings as a page; ``None`` while the validation runs.

        It starts if there is none or the documents changed, and, after `_RERUN_SECONDS`, on a
        request to run it again.
        """
        ended = self._finished
        is_old = ended is None or self._clock.monotonic() - ended.moment >= _RERUN_SECONDS
        is_stale = ended is None or ended.documents != documents
        thread = self._thread
        if (thread is None or not thread.is_alive()) and (is_stale or (again and is_old)):
            self._tally, self._finished = ValidationTally(fail_on="error"), None
            thread = threading.Thread(
                target=self._judge, args=(documents,), name="resourcesync-validate", daemon=True
            )
            self._thread = thread
            thread.start()
        if thread is not None:
            thread.join(_JOIN_SECONDS)
        return None if self._finished is None else self._finished.report

    def _judge(self, documents: tuple[DocumentFile, ...]) -> None:
        tally, events, cancel = self._tally, list[ValidationEvent](), CancelToken(self._clock)
        trouble = ""
        try:
            with cancel.within(self._seconds):
                cancel.raise_if_cancelled()
                judge = new_validator(ValidationOptions(), network=Network(proxy=""), cancel=cancel)
                for event in judge.judge(str(self._tree)):
                    cancel.raise_if_cancelled()  # reading a disk does not check it
                    tally.add(event)
                    if not isinstance(event, RuleFinding) or len(events) < _MOST_FINDINGS:
                        events.append(event)
        except BudgetError:
            trouble = f"The validation took longer than {self._seconds:g} s and was stopped."
        except ResourceSyncError as error:
            trouble = f"{problem_of(error).message}."
        except Exception:  # noqa: BLE001 - a thread's edge: a bug is reported as such
            _LOG.exception("validation of %s", self._tree)
            trouble = "The validation failed: a bug in resourcesync, see its log."
        now = self._clock.now()
        status = ValidationStatus(
            now=now,
            documents=tally.documents,
            ended=now,
            summary=tally.sentence(),
            is_good=not tally.has_failures and not trouble,
            error=trouble,
        )
        report = "" if trouble else findings_page(events, tally)
        self._finished = _FinishedValidation(status, report, documents, self._clock.monotonic())


class ServePages:
    """The data of the pages (``server.dashboard.views.SourceViews``)."""

    def __init__(
        self,
        tree: PublishedTree,
        clock: Clock,
        counts: Sequence[MetricsSource],
        hub: OpenHub | None,
    ) -> None:
        self._tree, self._clock, self._counts, self._hub = tree, clock, counts, hub
        self._lookout = tree.status()
        self._explorer = CachedExplorer(clock)
        self._validation = Validation(tree.out, clock)

    def source(self, days: int) -> SourceView:
        """Return the Source, with its changes of the last days."""
        now, documents = self._clock.now(), self._lookout.documents()
        since = interval_start(now - timedelta(days=days), INTERVALS[days])
        hub = self._hub
        return SourceView(
            now=now,
            overview=self._lookout.overview(),
            documents=documents,
            figures=tuple(figure for count in self._counts for figure in count()),
            days=days,
            since=since,
            changes=self._changes(since, now, INTERVALS[days]),
            subscribers=None
            if hub is None
            else tuple(hub.store.list_subscribers(_MOST_SUBSCRIBERS)),
            subscribed=0 if hub is None else hub.store.count_subscriptions(),
            validated=self._validation.view(documents),
        )

    def _changes(
        self, since: datetime, now: datetime, step: timedelta
    ) -> tuple[tuple[str, tuple[int, ...]], ...]:
        rates = self._lookout.rates(since, step)
        length = (now - since) // step + 1
        kinds = ("created", "updated", "deleted")
        return tuple(
            (kind, tuple(rates.get((number, kind), 0) for number in range(length)))
            for kind in kinds
        )

    def explore(self, depth: int) -> DocumentTree:
        """Return the documents of the Source, to a number of levels."""
        return self._explorer.explore("", str(self._tree.out), Network, depth)

    def validate(self, *, again: bool) -> str | ValidationStatus:
        """Validate the documents; return the findings as a page, or the status."""
        documents = self._lookout.documents()
        report = self._validation.request(documents, again=again)
        return report or self._validation.view(documents)


_STYLE: Final = """
section { margin-top: 2rem; } h2 { overflow-wrap: anywhere; }
article { border-left: .3rem solid var(--muted); padding: .1rem 0 .1rem 1rem; margin: 1rem 0; }
article.error { border-color: var(--bad); } article.warning { border-color: var(--warn); }
mark { background: #ffd54f; color: #000; }
"""


def findings_page(events: Sequence[ValidationEvent], tally: ValidationTally) -> str:
    """Return the findings as an HTML page, by document."""
    sections, titles = _sections(events)
    return report_page(
        "Findings",
        tag("h1", tally.sentence()),
        [
            tag(
                "section",
                tag("h2", place),
                tag("p", titles[place]) if place in titles else None,
                articles or tag("p", "No finding.", class_="muted"),
            )
            for place, articles in sections.items()
        ],
        style=_STYLE,
    )


def _sections(
    events: Sequence[ValidationEvent],
) -> tuple[dict[str, list[Markup]], dict[str, str]]:
    """Return the articles and the titles of each document."""
    sections: dict[str, list[Markup]] = {}
    titles: dict[str, str] = {}
    for event in events:
        match event:
            case Judged(summary, place):
                titles[place] = f"{summary.phrase}, {counted(summary.entries, 'entry', 'entries')}"
                sections.setdefault(place, [])
            case RuleFinding():
                sections.setdefault(event.uri, []).append(_article(event))
            case Unreached():
                article = _note("error", f"{event.error.code}: {event.error.message}")
                sections.setdefault(event.uri, []).append(article)
            case CutShort():
                sections.setdefault(event.uri, []).append(
                    _note("warning", cut_short_message(event))
                )
            case AppliedRules() | Sampled() | StandaloneDocument() | Unopened():
                pass  # the title has the number
    return sections, titles


def _note(kind: str, text: str) -> Markup:
    return tag("article", tag("p", text), class_=kind)


def _article(finding: RuleFinding) -> Markup:
    rule = finding.rule
    place = f"line {finding.line}, column {finding.column}: " if finding.line else ""
    severity = finding.severity.value
    return tag(
        "article",
        tag("p", tag("strong", f"{rule.code} {severity}"), f" {place}{finding.message}"),
        tag("pre", _excerpt(finding), tabindex="0") if finding.excerpt else None,
        tag("p", f"{rule.sentence} ({clause_of(rule.clause)})"),
        tag("p", f"Fix: {rule.fix}"),
        class_=severity,
    )


def _excerpt(finding: RuleFinding) -> Piece:
    """Return the line at fault with the fault marked."""
    text, start = finding.excerpt, finding.excerpt_column - 1
    if start < 0:
        return text
    end = start + max(finding.length, 1)
    return text[:start], tag("mark", text[start:end]), text[end:]
