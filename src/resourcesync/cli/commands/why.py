"""``resourcesync why``: explain one resource of a mirror, an error code or a rule."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import asdict

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.options import MirrorArgument, SectionedCommand, option, resolve_mirror
from resourcesync.cli.output import (
    LABEL_WIDTH,
    QUIET,
    SERVER_VERIFIED,
    CommandOutcome,
    Job,
    Screen,
    TextLine,
)
from resourcesync.errors import quoted
from resourcesync.model import formatting
from resourcesync.model.digests import format_digests
from resourcesync.model.timestamps import from_microseconds
from resourcesync.settings.mirror import Network

if TYPE_CHECKING:
    from resourcesync.destination.audits.explain import Explanation


@click.command("why", cls=SectionedCommand)
@click.argument("subject", metavar="MIRROR", shell_complete=options.complete_mirror)
@click.argument("resource", metavar="URI|PATH|FILE | CODE | ADDRESS", required=False)
@option("--offline", is_flag=True, help="Use only the mirror's state; send no request.")
@options.CONNECTION
@options.CONFIG
@options.output_options
def command(subject: str, resource: str | None, **values: Any) -> Job:
    """Explain one resource of a mirror, the code of an error or a rule, or a search for lists.

    MIRROR is a mirror's folder, or its name in the configuration file.
    The resource is a URI, a path in the mirror or at the Source, or any path of a file in the
    mirror.
    The answer shows a verdict, the copy (its bytes are read), the Source's entry, failed tries, and
    the finding of the last audit. A copy that was changed in the mirror is marked as suspect, as
    after an audit. Exit 0 if nothing is wrong with the resource, 1 otherwise.

    CODE, without a mirror, is the code of an error or a warning (hash-mismatch), of a rule (RS402),
    or a rule's row in the table of requirements (CH05); the beginning of one (RS4, CH) lists all
    rules that begin so. ADDRESS is that of a site: all that is tried to find its lists is shown.

    \b
    resourcesync why ./docs /guide/index.html
    resourcesync why hash-mismatch
    resourcesync why RS402
    """  # noqa: D301 - click's mark for lines that are not to be filled
    if resource is None and "://" in subject:
        network = options.load(values["config"]).network(subject, options.pop_connection(values))
        return Job(work=lambda _: _search(subject, network), fields={"address": subject})
    if resource is None:
        from resourcesync.cli.why_codes import explanation_job  # noqa: PLC0415 - for codes only

        return explanation_job(subject)
    mirror = resolve_mirror(subject, values["config"], options.pop_connection(values))
    folder, offline = mirror.folder, values["offline"]
    return Job(
        work=lambda screen: _why(mirror, resource, screen, offline=offline),
        subject=folder.name or str(folder),
        fields={"mirror": str(folder), "resource": resource, "offline": offline},
    )


def _search(address: str, network: Network) -> CommandOutcome:
    found, tried = app.document_access.search(address, network)
    lines = [TextLine(text, "Tried", QUIET) for _, text in tried]
    lines.append(TextLine("  ".join(found), "Found", QUIET))
    fields = {"tried": [text for _, text in tried], "found": found[0], "found_by": found[1]}
    return CommandOutcome(closing=tuple(lines), fields=fields)


def _why(
    argument: MirrorArgument, resource: str, screen: Screen, *, offline: bool
) -> CommandOutcome:
    mirror = argument.folder

    def report(event: "app.mirror.Event") -> None:
        """Show only warnings: events about other entries belong to other commands."""
        if event.kind == "warning":
            screen.report(event.kind, event.fields)

    network = Network(proxy="") if offline else argument.network()
    asked = app.mirror.mirror_at(mirror, network)
    found = asked.explain(resource, offline=offline, on_event=report)
    code = ExitCode.OK if found.verdict.is_well else ExitCode.FINDINGS
    lines = tuple(TextLine(text, label, QUIET) for label, text in explanation_lines(found, mirror))
    return CommandOutcome(exit=code, closing=lines, fields=_explanation_fields(found))


def explanation_lines(found: "Explanation", mirror: Path) -> Iterator[tuple[str, str]]:
    """Yield the explanation of a resource and the next step, as labels and texts."""
    verdict, pending = found.verdict, found.pending
    yield "Resource", _subject(found, mirror)
    retained = "" if verdict.is_well or pending is None else f"; {found.retained_copy}"
    yield "Verdict", f"{verdict.value}{retained}"
    yield "Here", _local_copy(found)
    yield from _source(found)
    yield from _linked(found)
    if pending is not None and pending.tries:
        tries = formatting.counted(pending.tries, "time") if pending.tries != 1 else "once"
        since = formatting.moment(from_microseconds(pending.first))
        again = ""
        if found.next_try is not None:
            again = f"; next try after {formatting.moment(from_microseconds(found.next_try))}"
        yield "Tried", f"{tries} since {since}: {pending.reason}{again}"
    elif pending is not None and pending.reason and not found.finding:
        yield "Tried" if pending.task == "fetch" else "Deletion", pending.reason
    if found.finding is not None:
        yield "Audit", f"{found.finding.reason}{_finding_state(found)}"
    if found.quarantined:
        yield "Set aside", f".resourcesync/quarantine/{found.quarantined[-1]}"
    step = next_step(found, mirror)
    if step:
        yield step


def _subject(found: "Explanation", mirror: Path) -> str:
    is_here = found.copy is not None or found.is_present
    path = found.copy.path if found.copy is not None else found.path
    names = [found.address] if "://" in found.address else []
    if names and found.address != found.uri:
        names[0] += f" (known as {found.uri})"
    if is_here and path:
        names.append(str(mirror / path))
    return "  ".join(names) or found.address


def _finding_state(found: "Explanation") -> str:
    if found.copy is None or not found.copy.is_suspect or not found.is_present:
        return ""
    now = "still so" if found.is_altered else "it is as it was fetched"
    return f"; checked now: {now}"


def _local_copy(found: "Explanation") -> str:
    copy = found.copy
    if copy is None:
        if found.trash is not None:
            at = formatting.moment(from_microseconds(found.trash.removed))
            return f"nothing; in the trash since {at}: {found.trash.place}"
        if found.last_change is not None:
            at = formatting.moment(from_microseconds(found.last_change.time))
            return f"nothing; {found.last_change.kind} {at}"
        return "a file that resourcesync did not fetch" if found.is_present else "nothing"
    if copy.length < 0:
        return "a file whose content is suspect"
    at = formatting.moment(from_microseconds(copy.installed))
    state = ", the file is missing" if not found.is_present else ""
    state = ", the file was changed since" if found.is_present and found.is_altered else state
    length, digests = copy.length, copy.digests
    if found.file_content is not None:
        length, digests = found.file_content[0], format_digests(found.file_content[1])
    digest = digests.partition(" ")[0].replace(":", " ", 1)
    is_by_server = copy.fixity == "server-verified"
    fixity = SERVER_VERIFIED if is_by_server else copy.fixity
    return f"{formatting.count(length)} B  {digest}  fetched {at}, {fixity}{state}"


def _source(found: "Explanation") -> Iterator[tuple[str, str]]:
    listed = found.listed
    if found.refused is not None:
        yield "Source", f"{found.refused.code}: {found.refused.reason}"
    elif found.source_error:
        yield "Source", f"could not be checked: {found.source_error}"
    elif listed is None:
        yield "Source", "does not list it" if found.is_source_read else "was not checked"
    else:
        at = "" if listed.lastmod is None else formatting.moment(from_microseconds(listed.lastmod))
        yield "Source", "  ".join(filter(None, (listed.change or "listed", at, found.list_uri)))
        size = "" if listed.length is None else f"{formatting.count(listed.length)} B"
        digest = listed.hash.partition(" ")[0].replace(":", " ", 1)
        if size or digest:
            yield "", " " * LABEL_WIDTH + "  ".join(filter(None, (size, digest)))


def _linked(found: "Explanation") -> Iterator[tuple[str, str]]:
    if found.via:
        more = f" and {formatting.count(len(found.via) - 1)} more" if len(found.via) > 1 else ""
        yield "Linked by", f"{found.via[0]}{more}"
    if found.patched is not None:
        at = formatting.moment(from_microseconds(found.patched.time))
        how = "made this copy, hash verified"
        if found.patched.reason:
            how = f"cannot be used, fetched whole: {found.patched.reason}"
        yield "Patched", f"{at}  {how}"


def next_step(found: "Explanation", mirror: Path) -> tuple[str, str] | None:
    """Return the next step as a label and a command; ``None`` if there is nothing to do."""
    from resourcesync.destination.audits.explain import ResourceVerdict as Is  # noqa: PLC0415

    folder, listed = quoted(mirror, "MIRROR"), found.listed
    if found.is_retained and found.is_source_read and not found.is_absence_proven:
        return None  # nothing would help
    if found.verdict is Is.AS_LISTED and not (listed is not None and listed.hash):
        if found.served_at is not None:
            at = formatting.moment(from_microseconds(found.served_at))
            return "Proof", f"all bytes, as the Source served them to an audit {at}"
        return "Proof", f"its date only; all bytes: resourcesync audit {folder} --method remote"
    if found.verdict is Is.KEPT:
        return "To remove", f"resourcesync repair {folder} --delete"
    if found.verdict is Is.DISAGREES:  # a check of the list reads no content
        return "Next", f"ask the Source to correct its list; then: resourcesync pull {folder}"
    if found.verdict is Is.UNASKED:
        when = "when the Source answers: " if found.source_error else ""
        return "Next", f"{when}resourcesync why {folder} {quoted(found.address, 'URI')}"
    return _step_after(found, folder, mirror / found.path)


def _step_after(found: "Explanation", folder: str, file: Path) -> tuple[str, str] | None:
    from resourcesync.cli.render.pull import step_of_failure  # noqa: PLC0415 - no code needs it
    from resourcesync.destination.audits.explain import ResourceVerdict as Is  # noqa: PLC0415

    match found.verdict:
        case Is.LOST | Is.ALTERED:  # what is retained cannot be fetched
            remove = f"pull {folder} --prune" if found.is_excluded else f"repair {folder} --delete"
            is_beside = found.is_retained or found.is_excluded
            return "Next", f"resourcesync {remove if is_beside else f'repair {folder}'}"
        case Is.REFUSED | Is.UNDECIDED:
            lists = quoted(found.list_uri or found.source, "URL")
            return "Check", f"resourcesync validate {lists}"
        case Is.EDITED:
            return "Next", f"move or remove {file}; then: resourcesync pull {folder}"
        case Is.HELD:  # shows all held deletions
            return "Next", f"resourcesync pull {folder} --dry-run"
        case Is.UNPROVEN:
            return "Next", f"resourcesync audit {folder} --method remote"
        case (Is.FAILED | Is.WAITING | Is.OUTDATED | Is.STALE | Is.SOUND_AGAIN) | (
            Is.UNLISTED | Is.UNDELETED
        ):
            code = found.pending.code if found.pending and found.verdict is Is.FAILED else ""
            return "Next", step_of_failure(code, folder) or f"resourcesync pull {folder}"
        case (Is.AS_FETCHED | Is.AS_LISTED | Is.ABSENT | Is.UNWANTED | Is.GONE | Is.FILTERED) | (
            Is.UNKNOWN | Is.FOREIGN | Is.OWN | Is.KEPT | Is.UNASKED | Is.DISAGREES
        ):
            return None


def _explanation_fields(found: "Explanation") -> dict[str, object]:
    rows = {
        "here": found.copy,
        "listed": found.listed,
        "pending": found.pending,
        "refused": found.refused,
        "trash": found.trash,
        "last_change": found.last_change,
        "patched": found.patched,
    }
    return {
        "uri": found.address,
        "known_as": found.uri,
        "path": found.path,
        "verdict": found.verdict.name.lower(),
        "reason": found.verdict.value,
        "is_there": found.is_present,
        "is_altered": found.is_altered,
        "asked": found.is_source_read,
        "trouble": found.source_error,
        "finding": None if found.finding is None else asdict(found.finding),
        "set_aside": list(found.quarantined),
        "via": list(found.via),
        **{name: None if row is None else _dated(row._asdict()) for name, row in rows.items()},
    }


_MOMENTS: Final = frozenset(
    {"due", "evidence", "first", "first_at", "installed", "lastmod", "removed", "time"}
)


def _dated(row: Mapping[str, Any]) -> dict[str, object]:
    times = {name: value for name, value in row.items() if name in _MOMENTS and value is not None}
    unknown = {"evidence": None} if times.get("evidence") == 0 else {}
    return {**row, **{name: from_microseconds(int(at)) for name, at in times.items()}, **unknown}
