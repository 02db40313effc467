"""The output of ``watch``: a line and fields for each job."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from resourcesync.cli.output import DETAIL, NORMAL, QUIET, TextLine
from resourcesync.errors import at_address
from resourcesync.model import formatting as forms

if TYPE_CHECKING:
    from resourcesync.cli.service.watch_mirrors import JobReport
    from resourcesync.watch.loop import FinishedJob
    from resourcesync.websub.subscription_status import SubscriptionReport


CHANGES: Final = ("created", "updated", "deleted")


def job_fields(
    done: "FinishedJob", report: "JobReport", now: datetime, following: float | None
) -> dict[str, object]:
    """Return a finished job as the fields of its event."""
    fields: dict[str, object] = {
        **report.fields,
        "time": now,
        "mirror": done.job.mirror,
        "exit": int(report.exit),
        "seconds": round(done.seconds, 3),
        "tries": done.failures,
        "again": None if following is None else datetime.fromtimestamp(following, UTC),
    }
    if done.recovered:
        fields["recovered"] = done.recovered
    problem = report.problem or next(iter(report.problems), None)
    if problem is not None:
        failed = report.failed.get("")
        cause = problem.message if failed is None else failed.message
        if report.problems:
            cause = f"{forms.counted(len(report.problems), 'set')} failed: {cause}"
        fields |= {"code": problem.code, "message": cause, "hint": problem.hint}
        if problem.uri:
            fields["uri"] = problem.uri
    return fields


def render_event(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    """Yield the line of an event."""
    match event:
        case "watch":
            names = fields["mirrors"]
            text = f"{forms.counted(len(names), 'mirror')}: {forms.some(names)}"
            yield TextLine(text, "Watching")
        case "admin":
            yield TextLine(fields["uri"], "Admin")
        case "watch.pull" | "watch.audit" | "watch.hand-on":
            yield _job_line(event.removeprefix("watch."), fields)
        case "watch.subscription":
            yield _subscription_line(fields)
        case _:
            return


def _subscription_line(fields: Mapping[str, Any]) -> TextLine:
    state, is_bad = fields["state"], "reason" in fields
    said = {
        "verified": f"notifications until {forms.moment(fields['until'] or fields['time'])}",
        "pending": f"requested notifications from {fields['hub']}",
        "refused": f"no notifications from {fields['hub']}",
    }[state]
    parts = [fields["mirror"], said]
    if is_bad:
        parts.append(fields["reason"])
    if fields["refused"]:
        many = forms.counted(fields["refused"], "notification")
        parts.append(f"{many} refused: {', '.join(sorted(fields['refusals']))}")
    is_news = state == "verified" and fields.get("was") != state
    level = QUIET if is_bad or fields["refused"] else NORMAL if is_news else DETAIL
    return TextLine("  ".join(parts), level=level, time=_stamp(fields["time"]))


def _job_line(kind: str, fields: Mapping[str, Any]) -> TextLine:
    parts = [fields["mirror"], *_result_parts(kind, fields)]
    if fields.get("paused"):
        parts.append("paused")
    elif fields["again"] is not None:
        which = f"retry {fields['tries']} at" if fields["tries"] else "next"
        parts.append(f"{which} {_time_of_day(fields['again'], fields['time'])}")
    if fields["exit"]:
        parts.append(f"exit {fields['exit']}")
    if fields.get("hint"):
        parts.append(f"next: {fields['hint']}")
    return TextLine("  ".join(parts), level=_level(kind, fields), time=_stamp(fields["time"]))


def _level(kind: str, fields: Mapping[str, Any]) -> int:
    if fields["exit"]:
        return QUIET
    news = any(fields.get(name) for name in (*CHANGES, "recovered"))
    return NORMAL if kind != "pull" or news or _refused(fields) else DETAIL


def _result_parts(kind: str, fields: Mapping[str, Any]) -> Iterator[str]:
    if "code" in fields:
        yield f"{kind}: {fields['code']}: {at_address(fields['message'], fields.get('uri', ''))}"
    elif kind == "hand-on":
        yield f"sent {forms.counted(fields.get('changes', 0), 'change')} to the program"
    elif kind == "audit":
        yield f"audit: {'not in sync' if fields['exit'] else 'in sync'}"
    else:
        yield str(fields.get("state", "done"))
    if fields.get("recovered"):
        yield f"after {forms.counted(fields['recovered'], 'failure')}"
    if kind != "hand-on":
        yield from _counts(fields)


def _counts(fields: Mapping[str, Any]) -> Iterator[str]:
    changes = sum(fields.get(name, 0) for name in CHANGES)
    if changes:
        yield forms.counted(changes, "change")
    if fields.get("received_bytes"):
        yield forms.size(fields["received_bytes"])
    if fields.get("failed"):
        yield f"{forms.count(fields['failed'])} failed"
    if _refused(fields):
        yield f"{forms.count(_refused(fields))} refused"
    if fields.get("held"):
        yield f"{forms.counted(fields['held'], 'deletion')} held"


def _refused(fields: Mapping[str, Any]) -> int:
    listed = fields.get("listed")
    found = listed["refused"] if isinstance(listed, Mapping) else fields.get("refused", 0)
    return int(found)


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _time_of_day(again: datetime, now: datetime) -> str:
    is_today = again.date() == now.date()
    return again.strftime("%H:%M:%SZ" if is_today else "%Y-%m-%dT%H:%MZ")


def subscription_fields(report: "SubscriptionReport") -> dict[str, object]:
    """Return a subscription as the fields of its event."""
    fields: dict[str, object] = {
        "mirror": report.mirror,
        "topic": report.topic,
        "hub": report.hub,
        "state": report.status.value,
        "until": report.until,
        "taken": report.accepted,
        "last": report.last,
        "refused": report.refused,
    }
    if report.refusals:
        fields["refusals"] = {fault.value: number for fault, number in report.refusals}
    if report.reason:
        fields["reason"] = report.reason
    return fields
