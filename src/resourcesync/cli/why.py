"""``resourcesync why``: explain one resource of a mirror."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import options, words
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.job import Job
from resourcesync.cli.mirror_argument import OneMirror, mirror_argument
from resourcesync.cli.options import option
from resourcesync.cli.output import Outcome, OutputOptions, Screen
from resourcesync.cli.words import QUIET, Line
from resourcesync.model.digests import format_digests
from resourcesync.model.timestamps import from_microseconds

if TYPE_CHECKING:
    from resourcesync.destination.explaining import Explanation
    from resourcesync.ports.mirror import Pending


@click.command("why")
@mirror_argument
@click.argument("resource", metavar="URI|PATH|FILE")
@option("--offline", is_flag=True, help="Ask the mirror's memory only.")
@options.with_options(options.WAY)
@options.CONFIG
@options.output_options
def command(output: OutputOptions, mirror: OneMirror, resource: str, **values: Any) -> Job:
    """Explain one resource.

    MIRROR is a mirror's folder, or its name in the configuration file.
    The resource is its URI, its path in the mirror or at the Source, or a file in the mirror,
    however its path is written.
    Says what is here (its bytes are read), what the Source lists, what was tried, what the last
    audit found, and what follows from it. A copy that is not what was put there is in doubt from
    then on, as after an audit. Exit 0 when nothing is wrong with it, 1 otherwise.
    """
    offline: bool = values["offline"]
    folder = mirror.folder

    def work(screen: Screen) -> Outcome:
        return _why(mirror, resource, screen, offline=offline)

    return Job(
        command="why",
        output=output,
        work=work,
        subject=folder.name or str(folder),
        fields={"mirror": str(folder), "resource": resource, "offline": offline},
    )


def _why(one: OneMirror, resource: str, screen: Screen, *, offline: bool) -> Outcome:
    from resourcesync.destination.explaining import explain  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import machine, mirrors  # noqa: PLC0415 - help stays quick

    mirror = one.folder
    if not mirrors.is_mirror(mirror):
        raise mirrors.not_a_mirror(mirror)

    def report(event: str, fields: Mapping[str, object]) -> None:
        """Leave the other entries that a list may hold to the commands that judge lists."""
        if event == "warning":
            screen.report(event, fields)

    network = mirrors.Network() if offline else one.network()
    clock = machine.system_clock()
    with mirrors.open_destination(
        mirror, network=network, report=report, clock=clock
    ) as destination:
        names = named(resource, mirror)
        findings = partial(mirrors.last_findings, mirror)
        found = explain(destination.looking(asking=not offline), names, findings, offline=offline)
    code = ExitCode.OK if found.verdict.is_well else ExitCode.FINDINGS
    lines = tuple(Line(text, label, QUIET) for label, text in lines_of(found, mirror))
    return Outcome(exit=code, closing=lines, fields=fields_of(found))


def named(resource: str, mirror: Path) -> list[str]:
    """Return what a resource's name may be in the mirror, the likeliest first.

    Args:
        resource: Its URI; its path in the mirror; or the path of a file there, as the shell has it.
        mirror: The mirror's folder.
    """
    if "://" in resource or "\0" in resource:
        return [resource]
    root = mirror.resolve()
    written = Path(resource)
    inside = mirror / resource.lstrip("/")
    outside = (
        [_below(written, root)] if written.is_absolute() or not os.path.lexists(inside) else []
    )
    return list(dict.fromkeys([*filter(None, outside), resource]))


def _below(path: Path, root: Path) -> str:
    """Return where a path lies below the root; empty when it lies elsewhere.

    The last part is not followed, should it be a link.
    """
    try:
        return (path.parent.resolve() / path.name).relative_to(root).as_posix()
    except (ValueError, OSError, RuntimeError):
        return ""


def lines_of(found: "Explanation", mirror: Path) -> Iterator[tuple[str, str]]:
    """Yield what is known of a resource, and what to do: labels and texts."""
    if found.copy is not None and not found.uri.endswith(f"/{found.copy.path}"):
        yield "File", f"{found.copy.path}  for {found.uri}"
    yield "Here", _here(found)
    yield from _source(found)
    yield from _linked(found)
    pending = found.pending
    if pending is not None and pending.tries:
        tries = words.counted(pending.tries, "time") if pending.tries != 1 else "once"
        since = words.moment(from_microseconds(pending.first))
        yield "Tried", f"{tries} since {since}: {pending.reason}{_again(pending)}"
    elif pending is not None and pending.reason and not found.finding:
        yield "Tried" if pending.task == "fetch" else "Deletion", pending.reason
    if found.finding is not None:
        yield "Audit", f"{found.finding.reason}{_since(found)}"
    if found.set_aside:
        yield "Set aside", f".resourcesync/quarantine/{found.set_aside[-1]}"
    verdict = found.verdict
    kept = "" if verdict.is_well or pending is None else f"; {found.kept}"
    yield "Verdict", f"{verdict.value}{kept}"
    step = next_step(found, mirror)
    if step:
        yield step


def _again(pending: "Pending") -> str:
    """Say when a resource is tried again that failed so often that it rests."""
    from resourcesync.destination.tasks import rests  # noqa: PLC0415 - help stays quick

    return (
        f"; again from {words.moment(from_microseconds(pending.due))} on" if rests(pending) else ""
    )


def _since(found: "Explanation") -> str:
    """Say whether what an audit found holds still: its bytes were read just now."""
    if found.copy is None or not found.is_there or found.read is None:
        return ""
    return (
        "; read now: it still does" if found.is_altered else "; read now: it is as it was fetched"
    )


def _here(found: "Explanation") -> str:
    copy = found.copy
    if copy is None:
        if found.trash is not None:
            at = words.moment(from_microseconds(found.trash.removed))
            return f"nothing; in the trash since {at}: {found.trash.place}"
        if found.last is not None:
            at = words.moment(from_microseconds(found.last.time))
            return f"nothing; {found.last.kind} {at}"
        return f"{found.path}  not fetched by resourcesync" if found.is_there else "nothing"
    if copy.length < 0:
        return f"{copy.path}  its content is not known to be good"
    at = words.moment(from_microseconds(copy.installed))
    state = ", the file is missing" if not found.is_there else ""
    state = ", the file was altered since" if found.is_there and found.is_altered else state
    length, digests = copy.length, copy.digests
    if found.read is not None:
        length, digests = found.read[0], format_digests(found.read[1])
    digest = digests.partition(" ")[0].replace(":", " ", 1)
    return f"{words.count(length)} B  {digest}  fetched {at}, {copy.fixity}{state}"


def _source(found: "Explanation") -> Iterator[tuple[str, str]]:
    listed = found.listed
    if found.refused is not None:
        yield "Source", f"{found.refused.code}: {found.refused.reason}"
    elif found.trouble:
        yield "Source", f"could not be asked: {found.trouble}"
    elif listed is None:
        yield "Source", "does not list it" if found.asked else "was not asked"
    else:
        at = "" if listed.lastmod is None else words.moment(from_microseconds(listed.lastmod))
        yield "Source", "  ".join(filter(None, (listed.change or "listed", at, found.list_uri)))
        size = "" if listed.length is None else f"{words.count(listed.length)} B"
        digest = listed.hash.partition(" ")[0].replace(":", " ", 1)
        if size or digest:
            yield "", " " * words.LABEL_WIDTH + "  ".join(filter(None, (size, digest)))


def _linked(found: "Explanation") -> Iterator[tuple[str, str]]:
    """Say what links have to do with it: who leads to it, and what a patch of it was good for."""
    if found.via:
        more = f" and {words.count(len(found.via) - 1)} more" if len(found.via) > 1 else ""
        yield "Linked by", f"{found.via[0]}{more}"
    if found.patched is not None:
        at = words.moment(from_microseconds(found.patched.time))
        reason = found.patched.reason
        how = f"of no use, fetched whole: {reason}" if reason else "made this copy, proven by hash"
        yield "Patched", f"{at}  {how}"


def next_step(found: "Explanation", mirror: Path) -> tuple[str, str] | None:
    """Return what to do now: a label and a command; ``None`` when there is nothing to do."""
    from resourcesync.destination.explaining import Verdict  # noqa: PLC0415 - help stays quick

    match found.verdict:
        case Verdict.LOST | Verdict.ALTERED:
            return "Next", f"resourcesync repair {mirror}"
        case Verdict.DISAGREES | Verdict.REFUSED:
            return "Ask them", f"resourcesync validate {found.list_uri or found.source}"
        case Verdict.FAILED | Verdict.WAITING | Verdict.OUTDATED | Verdict.SOUND_AGAIN:
            return "Next", f"resourcesync pull {mirror}"
        case Verdict.EDITED:
            kept = mirror / found.path
            return "Next", f"move {kept} away, or remove it; then resourcesync pull {mirror}"
        case Verdict.HELD:
            return "Next", f"resourcesync pull {mirror} --dry-run"  # shows all that is held
        case Verdict.KEPT:
            return "Next", f"resourcesync pull {mirror} --mode baseline --delete absent"
        case Verdict.UNASKED:
            return "Next", f"resourcesync why {mirror} {found.uri}"
        case _:
            return None


def fields_of(found: "Explanation") -> dict[str, object]:
    """Return an explanation as the fields of ``run.end``."""
    rows = {
        "here": found.copy,
        "listed": found.listed,
        "pending": found.pending,
        "refused": found.refused,
        "trash": found.trash,
        "last_change": found.last,
        "patched": found.patched,
    }
    return {
        "uri": found.uri,
        "path": found.path,
        "verdict": found.verdict.name.lower(),
        "reason": found.verdict.value,
        "is_there": found.is_there,
        "is_altered": found.is_altered,
        "asked": found.asked,
        "trouble": found.trouble,
        "finding": None if found.finding is None else asdict(found.finding),
        "set_aside": list(found.set_aside),
        "via": list(found.via),
        **{name: None if row is None else _dated(row._asdict()) for name, row in rows.items()},
    }


_MOMENTS: Final = frozenset({"due", "first", "first_at", "installed", "lastmod", "removed", "time"})


def _dated(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of the memory with its times as times, not as the numbers that are stored."""
    return {
        name: from_microseconds(value) if name in _MOMENTS and isinstance(value, int) else value
        for name, value in row.items()
    }
