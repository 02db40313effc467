"""The output of ``publish``: closing lines, and the fields of ``run.end``."""

import glob
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from resourcesync.cli import formatting
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome, Screen
from resourcesync.model.vocabulary import Capability
from resourcesync.source import naming

if TYPE_CHECKING:
    from resourcesync.ports.originals import Omission
    from resourcesync.source.notifications import Notified
    from resourcesync.source.publication_options import LeftAddress, PublicationResult

_INDENT: Final = "          "
_SHOWN_LEFT: Final = 5
_STEPS: Final = 3
"""Lines of the next steps."""


def report(done: "PublicationResult", screen: Screen) -> None:
    """Report the omitted files and the written documents."""
    for warning in _warnings(done):
        screen.report("warning", warning)
    if done.notified is not None:
        report_notified(done.notified, screen)
    for written in done.publication.written:
        screen.report(
            "written",
            {
                "name": written.name,
                "uri": written.uri,
                "capability": _kind(written.capability),
                "entries": written.entries,
                "bytes": written.bytes,
            },
        )


def _warnings(done: "PublicationResult") -> Iterator[dict[str, object]]:
    for omission in done.omissions:
        yield {
            "code": "omitted",
            "message": _omission_message(omission),
            "hint": _omission_hint(omission.name, omission.reason, done.settings.exclude),
        }
    if done.retained.unkept:
        files = formatting.counted(done.retained.unkept, "file")
        message = f"the versions of {files} are not stored: `versions_max_bytes` is reached"
        yield {"code": "no-room", "message": message}
    if done.left is not None:
        yield _address_warning(done.left, done)
    for pattern in done.unmatched:
        hint = "a glob is compared with the whole path below the folder, as in '*/name.txt'"
        yield {"code": "unmatched-glob", "message": f"no file matches {pattern!r}", "hint": hint}
    if done.dropped:
        globs = " ".join(f"--{name} {shlex.quote(glob)}" for name, glob in done.dropped)
        hint = "a new value replaces all of before: give the option once for each glob"
        yield {"code": "globs-dropped", "message": f"no longer in force: {globs}", "hint": hint}
    if done.former_out:
        former, now = map(_place_of, (done.former_out, done.settings.out))
        message, hint = f"the documents in {former} are no longer written", f"serve those in {now}"
        yield {"code": "out-changed", "message": message, "hint": hint}
    for left in done.scan.left:
        yield {"code": left.code, "message": left.reason, "hint": left.hint}


def _omission_message(omission: "Omission") -> str:
    message = f"{omission.name} is not published: {omission.reason}"
    if omission.instead:
        message += f"; {omission.instead} means the same resource, and is published"
    return message


def _place_of(out: str) -> str:
    return "the published folder" if out == "." else out


def _omission_hint(name: str, reason: str, exclude: Sequence[str]) -> str:
    """Return what to do about a symbolic link; empty for any other omission."""
    if "symbolic link" not in reason:
        return ""
    globs = [*exclude, f"/{glob.escape(name)}"]  # new values replace those of before
    excluded = " ".join(f"--exclude {shlex.quote(each)}" for each in globs)
    return f"copy or mount what it leads to in its place, or leave it out: {excluded}"


def _address_warning(left: "LeftAddress", done: "PublicationResult") -> dict[str, object]:
    """Return the warning that the address has changed."""
    dumps = () if done.dumped is not None else left.dumps
    lost = tuple(("dump", f"{name} is no longer listed: publish with --dumps") for name in dumps)
    return {
        "code": "address-changed",
        "message": f"the address changed from {left.url} to {done.settings.url}",
        "evidence": lost,
        "hint": f"mirrors follow with: resourcesync pull MIRROR --moved {done.settings.url}",
    }


def conclude(
    done: "PublicationResult", *, has_files: bool = True, mirror: str = ""
) -> CommandOutcome:
    """Return the outcome of a publication, with its closing lines."""
    is_whole = not (done.scan.changing or done.scan.unreadable or done.mended)
    code = ExitCode.OK if is_whole else ExitCode.PARTIAL
    step = "as usual" if has_files else f"the files in {_document_folder(done)}"
    step = "" if mirror else f"upload {step}, then "
    lines = _dry_run_lines(done) if done.dry_run else _closing_lines(done, step)
    if mirror and done.publication.first:
        serving = f"serve its copies and documents:  resourcesync serve {shlex.quote(mirror)}"
        lines.insert(-_STEPS, TextLine(serving, "Next"))
    lines += _left_lines(done)
    return CommandOutcome(exit=code, closing=tuple(lines), fields=publication_fields(done))


def _left_lines(done: "PublicationResult") -> Iterator[TextLine]:
    """Yield the lines of what could not be published, also for ``-q``: cron mails them."""
    scan = done.scan
    if done.mended:
        rows = formatting.counted(done.mended, "row")
        yield TextLine(f"{rows} of the catalogue cannot be published: see the warnings", "!", QUIET)
    count = scan.changing + scan.unreadable
    if not count:
        return
    files = formatting.counted(count, "file")
    text = f"{files} not published: unreadable, or changed while being read"
    yield TextLine(text, "!", QUIET)
    for left in scan.left[:_SHOWN_LEFT]:
        yield TextLine(f"{_INDENT}{left.reason}", level=QUIET)
    if scan.unreadable:
        yield TextLine(f"{_INDENT}make them readable, or leave them out: --exclude", level=QUIET)


def _omitted_lines(done: "PublicationResult") -> list[TextLine]:
    """Return the lines of the files that are not published, by reasons."""
    reasons = sorted(done.omitted_for.items(), key=lambda item: -item[1])
    return [
        TextLine(
            f"{_INDENT * bool(at)}{formatting.count(number)}: {reason}", "" if at else "Left out"
        )
        for at, (reason, number) in enumerate(reasons)
    ]


def _scanned(done: "PublicationResult") -> str:
    scan = done.scan
    files = formatting.counted(scan.files, "file")
    return f"{files}, {formatting.size(scan.bytes)}, hashed {formatting.count(scan.hashed)}"


def _dry_run_lines(done: "PublicationResult") -> list[TextLine]:
    scan = done.scan
    counts = {"create": scan.created, "update": scan.updated, "delete": scan.deleted}
    text = ", ".join(f"{name} {formatting.count(number)}" for name, number in counts.items())
    return [
        TextLine(_scanned(done), "Scanned"),
        *_omitted_lines(done),
        TextLine(f"would {text}; nothing was written", "Dry run", QUIET),
    ]


def _closing_lines(done: "PublicationResult", step: str) -> list[TextLine]:
    publication = done.publication
    if not done.documents_written:
        touched = done.scan.touched
        more = f" ({formatting.counted(touched, 'file')} touched, same bytes)" if touched else ""
        unchanged = TextLine(f"Nothing changed{more}", level=QUIET)
        return [unchanged, *_omitted_lines(done), *_notified(done)]
    shows_scan = publication.first and (done.scan.hashed or not done.scan.files)
    lines = [TextLine(_scanned(done), "Scanned")] if shows_scan else []
    lines += _omitted_lines(done)
    lines += _written(done)
    lines += _version_lines(done)
    lines += _notified(done)
    if publication.first:
        lines += _next_steps(done, step)
    return lines


def _written(done: "PublicationResult") -> list[TextLine]:
    """Return the lines of the written documents, with counts after the lists."""
    out = _document_folder(done)
    publication, documents = done.publication, done.documents_written
    names = [f"{out}/{written.name}" for written in documents]
    width = max(map(len, names)) + 6
    lists = [document for document in publication.written if document.capability == "changelist"]
    several = [
        document for document in lists if "/changelist." not in document.name
    ]  # not their index
    newest = next(reversed(several or lists), None)
    pages = [document for document in publication.written if document.capability == "resourcelist"]
    has_index = any("/resourcelist." not in page.name for page in pages)
    lines: list[TextLine] = []
    for name, written in zip(names, documents, strict=True):
        note = ""
        if written.capability == "resourcelist":
            is_index = has_index and "/resourcelist." in written.name
            note = formatting.counted(written.entries, "list" if is_index else "resource")
        elif written is newest:
            note = _changes(done)
        label = _INDENT if lines else ""
        text = f"{label}{name.ljust(width)}{note}".rstrip()
        lines.append(TextLine(text, "" if lines else "Wrote", QUIET))
    return lines


def _kind(capability: Capability | None) -> str:
    return "sitemap" if capability is None else capability.value


def _document_folder(done: "PublicationResult") -> str:
    """Return the folder or the store of the documents."""
    out = done.settings.out
    return out if "://" in out else os.path.normpath(done.root / out)


def _notified(done: "PublicationResult") -> list[TextLine]:
    line = None if done.notified is None else notified_line(done.notified)
    return [] if line is None else [line]


def _version_lines(done: "PublicationResult") -> list[TextLine]:
    retained = done.retained
    if not retained.versions or not done.settings.versions:
        return []
    patches = formatting.counted(retained.patches, "patch", "patches")
    more = f", {patches}" if retained.patches else ""
    return [TextLine(f"{formatting.counted(retained.versions, 'version')}{more}", "Stored")]


def _changes(done: "PublicationResult") -> str:
    counts = {
        "created": done.publication.created,
        "updated": done.publication.updated,
        "deleted": done.publication.deleted,
    }
    return ", ".join(
        f"{formatting.count(number)} {name}" for name, number in counts.items() if number
    )


def _next_steps(done: "PublicationResult", step: str) -> list[TextLine]:
    """Return the next steps after the first publication; documents in a store need no upload."""
    url = done.settings.url
    base = url if url.endswith("/") else f"{url}/"
    first = "" if "://" in done.settings.out else step
    sitemap = naming.SITEMAP if done.settings.sitemap else naming.RESOURCE_LIST
    allowed = "".join(f" --allow-origin {origin}" for origin in done.foreign_origins)
    return [
        TextLine(f"{first}check:  resourcesync pull {url} ./copy{allowed} --dry-run", "Next"),
        TextLine(f"{_INDENT}for search engines, add to robots.txt:"),
        TextLine(f"{_INDENT}Sitemap: {base}{sitemap}"),
    ]


def publication_fields(done: "PublicationResult") -> dict[str, object]:
    """Return a publication as the fields of ``run.end``."""
    scan, publication = done.scan, done.publication
    changes = scan if done.dry_run else publication
    # The first publication lists no change, but each resource is new to its readers.
    new = scan.files - scan.changing - scan.unreadable if publication.first else changes.created
    return {
        "url": done.settings.url,
        "first": publication.first,
        "resources": scan.files,
        "bytes": scan.bytes,
        "hashed": scan.hashed,
        "created": new,
        "updated": changes.updated,
        "deleted": changes.deleted,
        "touched": scan.touched,
        "changing": scan.changing,
        "unreadable": scan.unreadable,
        "omitted": scan.omitted,
        "mended": done.mended,
        "versions": done.retained.versions,
        "patches": done.retained.patches,
        "written": [written.name for written in publication.written],
        "seconds": round(done.seconds, 3),
    }


def report_notified(result: "Notified", screen: Screen) -> None:
    """Report the hubs that could not be notified, with the reasons."""
    problems = {problem.notice.hub: problem.problem for problem in result.problems}
    for hub, problem in problems.items():
        screen.report(
            "warning",
            {
                "code": "notify",
                "message": f"the hub {hub} was not notified: {problem}",
                "evidence": (("kept", "the next notification contains these changes too"),),
            },
        )
    if result.error is not None:
        message = f"no hub was notified: {result.error.message}"
        hint = result.error.hint
        fields = {"evidence": result.error.evidence, "hint": hint}
        screen.report("warning", {"code": "notify", "message": message, **fields})


def notified_line(result: "Notified") -> TextLine | None:
    """Return the line about the notified hubs; ``None`` for none."""
    failed = {problem.notice.hub for problem in result.problems}
    reached = len({outcome.notice.hub for outcome in result.sent} - failed)
    if not reached:
        return None
    said = []
    if result.changes:
        said.append(formatting.counted(result.changes, "change"))
    if result.documents:
        said.append(formatting.counted(result.documents, "document"))
    return TextLine(
        f"{formatting.counted(reached, 'hub')} of {' and '.join(said)}", "Notified", QUIET
    )
