"""What ``watch`` says of each errand: a line for people, fields for programs."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from resourcesync.cli import words as forms
from resourcesync.cli.words import DETAIL, NORMAL, QUIET, TextLine

if TYPE_CHECKING:
    from resourcesync.cli.watch_work import JobReport
    from resourcesync.watch.loop import FinishedJob, NextPull

_COUNTS: Final = (
    "resources",
    "created",
    "updated",
    "deleted",
    "failed",
    "refused",
    "held",
    "requests",
    "bytes",
    "changes",
    "accuracy",
)
_CHANGES: Final = ("created", "updated", "deleted")


def job_fields(
    done: "FinishedJob", report: "JobReport", now: datetime, following: float | None
) -> dict[str, object]:
    """Return an errand that ended as the fields of its event.

    Args:
        done: The errand.
        report: How it ended.
        now: The present moment.
        following: Seconds since 1970, UTC, when it is done again; ``None`` when that is open.
    """
    fields: dict[str, object] = {
        "time": now,
        "mirror": done.job.mirror,
        "exit": int(report.exit),
        "tries": done.failures,
        "again": None if following is None else datetime.fromtimestamp(following, UTC),
    }
    for name in ("state", *_COUNTS):
        if isinstance(report.fields.get(name), int | float | str):
            fields[name] = report.fields[name]
    if report.problem is not None:
        problem = report.problem
        fields |= {"code": problem.code, "message": problem.message, "hint": problem.hint}
        if report.uri:
            fields["uri"] = report.uri
    return fields


def render_event(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    """Yield the line of an event."""
    match event:
        case "watch":
            names = fields["mirrors"]
            yield TextLine(f"{forms.counted(len(names), 'mirror')}: {', '.join(names)}", "Watching")
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
        "pending": f"asks {fields['hub']} for notifications",
        "refused": f"no notifications of {fields['hub']}",
        "ending": f"asks {fields['hub']} to end the notifications",
    }[state]
    parts = [_stamp(fields["time"]), fields["mirror"], said]
    if is_bad:
        parts.append(fields["reason"])
    if fields["refused"]:
        many = forms.counted(fields["refused"], "notification")
        parts.append(f"{many} refused: {', '.join(sorted({*fields['refusals']} - {'ended'}))}")
    is_news = state == "verified" and fields.get("was") != state
    level = QUIET if is_bad or fields["refused"] else NORMAL if is_news else DETAIL
    return TextLine("  ".join(parts), level=level)


def _job_line(kind: str, fields: Mapping[str, Any]) -> TextLine:
    parts = [_stamp(fields["time"]), fields["mirror"], *result_parts(kind, fields)]
    if fields["again"] is not None:
        which = f"retry {fields['tries']} at" if fields["tries"] else "next"
        parts.append(f"{which} {_time_of_day(fields['again'], fields['time'])}")
    if fields["exit"]:
        parts.append(f"exit {fields['exit']}")
    return TextLine("  ".join(parts), level=_level(kind, fields))


def _level(kind: str, fields: Mapping[str, Any]) -> int:
    """Return how much is to be shown for a line: what is as it was says nothing new."""
    if fields["exit"]:
        return QUIET
    is_news = kind != "pull" or any(fields.get(name) for name in (*_CHANGES, "refused"))
    return NORMAL if is_news else DETAIL


def result_parts(kind: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an errand came to, in a few words."""
    if "code" in fields:
        uri, message = fields.get("uri", ""), fields["message"]
        yield f"{kind}: {fields['code']}: {message}" + (f" ({uri})" if uri not in message else "")
        return
    if kind == "hand-on":
        yield f"told the next program of {forms.counted(fields.get('changes', 0), 'change')}"
        return
    yield f"audit: {_audit_state(fields)}" if kind == "audit" else str(fields.get("state", "done"))
    changes = sum(fields.get(name, 0) for name in _CHANGES)
    if changes:
        yield forms.counted(changes, "change")
    if fields.get("bytes"):
        yield forms.size(fields["bytes"])
    for name in ("failed", "refused", "held"):
        if fields.get(name):
            yield f"{forms.count(fields[name])} {name}"


def next_pull_text(planned: "NextPull", now: datetime) -> str:
    """Return when a mirror is pulled next, and why then, in a few words."""
    reason = f"retry {planned.failures}" if planned.reason == "retry" else planned.reason.value
    if planned.time is None:
        return reason
    moment = datetime.fromtimestamp(planned.time, UTC)
    when = _time_of_day(moment, now) if moment > now else "now"
    return when if planned.reason == "scheduled" else f"{when} ({reason})"


def next_pull_fields(mirror: str, planned: "NextPull") -> dict[str, object]:
    """Return the next pull of a mirror as fields."""
    return {
        "mirror": mirror,
        "at": None if planned.time is None else datetime.fromtimestamp(planned.time, UTC),
        "reason": planned.reason.value.replace(" ", "_"),
        "tries": planned.failures,
    }


def _audit_state(fields: Mapping[str, Any]) -> str:
    return "in sync" if not fields["exit"] else "not in sync"


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _time_of_day(again: datetime, now: datetime) -> str:
    is_today = again.date() == now.date()
    return again.strftime("%H:%M:%SZ" if is_today else "%Y-%m-%dT%H:%MZ")
