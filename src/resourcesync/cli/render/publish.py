"""The output of ``publish``: its warnings, its documents, and the closing lines."""

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.output import QUIET, CommandOutcome, Screen, TextLine, problem_of
from resourcesync.destination.reports import report_fields
from resourcesync.model import formatting

if TYPE_CHECKING:
    from resourcesync.source.dumps.dump_publisher import DumpOutcome
    from resourcesync.source.notifications import Notified
    from resourcesync.source.publication_options import PublicationResult
    from resourcesync.source.publication_settings import PublicationSettings

_INDENT: Final = " " * 10
_SHOWN_LEFT: Final = 5


def report(done: "PublicationResult", screen: Screen) -> None:
    """Report the omitted files and the written documents."""
    for warning in _warnings(done):
        screen.report("warning", warning)
    if done.notified is not None:
        report_notified(done.notified, screen)
    for written in done.publication.written:
        screen.report("written", report_fields(written))


def _warnings(done: "PublicationResult") -> Iterator[Mapping[str, object]]:
    for omission in done.omissions:
        same = f"; {omission.instead} means the same resource, and is published"
        message = f"{omission.name} is not published: {omission.reason}"
        yield {
            "code": "omitted",
            "message": message + (same if omission.instead else ""),
            "hint": omission.hint,
        }
    if done.retained.unkept:
        files = formatting.counted(done.retained.unkept, "file")
        message = f"the versions of {files} are not stored: `versions_max_bytes` is reached"
        yield {"code": "no-room", "message": message}
    if done.left is not None:
        dumps = () if done.dumped and not done.dumped.error else done.left.dumps
        url = done.settings.url
        yield {
            "code": "address-changed",
            "message": f"the address changed from {done.left.url} to {url}",
            "evidence": [
                ("dump", f"{name} is no longer listed: publish with --dumps") for name in dumps
            ],
            "hint": f"mirrors follow with: {_follow(done.settings)}",
        }
    for pattern in done.unmatched:
        if pattern in done.settings.links:
            message = f"{pattern!r} gives no link: no file matches, or no target is a file here"
            hint = "to link to addresses of your own that are no files, add the word: always"
            yield {"code": "unmatched-link", "message": message, "hint": hint}
            continue
        hint = "compared is the whole path below the folder: write 'name/' for all in a folder"
        yield {"code": "unmatched-glob", "message": f"no file matches {pattern!r}", "hint": hint}
    yield from _changed_settings(done)
    scan = done.scan
    if scan.touched > max(9, scan.files // 2) and not done.documents_written:
        message = f"{formatting.counted(scan.touched, 'file')} touched, same bytes"
        hint = "if they were restored from a backup, mirrors know more: publish with --rebase"
        yield {"code": "restored", "message": message, "hint": hint}
    for left in scan.left:
        yield {"code": left.code, "message": left.reason, "hint": left.hint}


def _follow(settings: "PublicationSettings") -> str:
    pull, site = "resourcesync pull MIRROR --moved", settings.site_uri
    if not site:
        return f"{pull} {settings.url}"
    one = f"{pull} {site} --set {shlex.quote(settings.names.capability_list)}"
    return f"{one}; those of --all-sets: resourcesync pull FOLDER --moved {site}"


def _changed_settings(done: "PublicationResult") -> Iterator[Mapping[str, object]]:
    if done.dropped:
        globs = " ".join(f"--{name} {shlex.quote(glob)}" for name, glob in done.dropped)
        hint = "a new value replaces all of before: give the option once for each glob"
        yield {"code": "globs-dropped", "message": f"no longer in force: {globs}", "hint": hint}
    if done.robots_line:
        message = "robots.txt was not written, since there is one of your own"
        hint = f"add this line to it: {done.robots_line}"
        yield {"code": "robots-left", "message": message, "hint": hint}
    if done.former_out:
        places = (done.former_out, done.settings.out)
        former, now = ("the published folder" if out == "." else out for out in places)
        message, hint = f"the documents in {former} are no longer written", f"serve those in {now}"
        yield {"code": "out-changed", "message": message, "hint": hint}


def conclude(
    done: "PublicationResult", *, has_files: bool = True, mirror: str = ""
) -> CommandOutcome:
    """Return the outcome of a publication, with its closing lines."""
    scan, first = done.scan, done.publication.first
    is_whole = not (scan.changing or scan.unreadable or done.mended)
    is_news = bool(done.documents_written) and first
    shows_scan = done.dry_run or (is_news and (scan.hashed or not scan.files))
    lines = [TextLine(_scanned(done), "Scanned")] if shows_scan else []
    if done.read:
        read = (formatting.counted(number, noun) for noun, number in done.read.items())
        lines.append(TextLine(", ".join(read), "Read"))
    if done.dry_run:
        lines += [*_omitted_lines(done), _would_line(done)]
    elif done.documents_written or done.publication.removed:
        lines += [*_omitted_lines(done), *_written(done), *_version_lines(done), *_notified(done)]
        lines += _next_steps(done, has_files=has_files, mirror=mirror) if first else []
    else:
        touched = formatting.counted(scan.touched, "file")
        more = f" ({touched} touched, same bytes)" if scan.touched else ""
        lines += [TextLine(f"Nothing changed{more}", level=QUIET)]
        lines += [*_omitted_lines(done), *_notified(done)]
    code = ExitCode.OK if is_whole else ExitCode.PARTIAL
    fields = report_fields(done.report())
    return CommandOutcome(exit=code, closing=(*lines, *_left_lines(done)), fields=fields)


def _left_lines(done: "PublicationResult") -> Iterator[TextLine]:
    scan = done.scan
    if done.mended:
        rows = formatting.counted(done.mended, "row")
        yield TextLine(f"{rows} of the catalogue cannot be published: see the warnings", "!", QUIET)
    if count := scan.changing + scan.unreadable:
        files = formatting.counted(count, "file")
        text = f"{files} not published: unreadable, or changed while being read"
        yield TextLine(text, "!", QUIET)
    for left in scan.left[:_SHOWN_LEFT]:
        yield TextLine(f"{_INDENT}{left.reason}", level=QUIET)
    if scan.unreadable:
        yield TextLine(f"{_INDENT}make them readable, or leave them out: --exclude", level=QUIET)


def _omitted_lines(done: "PublicationResult") -> Iterator[TextLine]:
    label = "Left out"
    for reason, number in sorted(done.omitted_for.items(), key=lambda item: -item[1]):
        text = f"{formatting.count(number)}: {reason}"
        yield TextLine(text if label else f"{_INDENT}{text}", label)
        label = ""


def _scanned(done: "PublicationResult") -> str:
    scan = done.scan
    files = formatting.counted(scan.files, "file")
    return f"{files}, {formatting.size(scan.bytes)}, hashed {formatting.count(scan.hashed)}"


def _would_line(done: "PublicationResult") -> TextLine:
    plan = done.report()
    counts = {"create": plan.created, "update": plan.updated, "delete": plan.deleted}
    text = ", ".join(f"{name} {formatting.count(number)}" for name, number in counts.items())
    if done.mended:
        text = "mend rows first: what changes is not known"
    elif done.publication.is_anew and not plan.first:
        resources = formatting.counted(plan.resources, "resource")
        text = f"begin the lists again, with {resources} and no changes"
    return TextLine(f"would {text}; nothing was written", "Dry run", QUIET)


def _place(out: str, name: str) -> str:
    if name.startswith("/"):
        return name
    return os.path.normpath(f"{out}/{name}") if name.startswith("../") else f"{out}/{name}"


def _written(done: "PublicationResult") -> Iterator[TextLine]:
    out, publication = _document_folder(done), done.publication
    names = [_place(out, written.name) for written in done.documents_written]
    width = max(map(len, names), default=0) + 6
    lists = [written for written in publication.written if written.capability == "changelist"]
    several = [written for written in lists if "/changelist." not in written.name]  # not the index
    newest = next(reversed(several or lists), None)
    pages = [written for written in publication.written if written.capability == "resourcelist"]
    has_index = any("/resourcelist." not in page.name for page in pages)
    made = {kind: getattr(publication, kind) for kind in ("created", "updated", "deleted")}
    label = "Wrote"
    for name, written in zip(names, done.documents_written, strict=True):
        note = formatting.counts(made) if written is newest else ""
        if written.capability == "resourcelist":
            is_index = has_index and "/resourcelist." in written.name
            note = formatting.counted(written.entries, "list" if is_index else "resource")
        text = f"{name.ljust(width)}{note}".rstrip()
        yield TextLine(text if label else f"{_INDENT}{text}", label, QUIET)
        label = ""
    yield from (TextLine(_place(out, gone), "Removed", QUIET) for gone in done.report().removed)


def _document_folder(done: "PublicationResult") -> str:
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


def _next_steps(done: "PublicationResult", *, has_files: bool, mirror: str) -> Iterator[TextLine]:
    url, settings = done.settings.url, done.settings
    step = "as usual" if has_files else f"the files in {_document_folder(done)}"
    first = "" if mirror or "://" in settings.out else f"upload {step}, then "
    allowed = "".join(f" --allow-origin {origin}" for origin in done.foreign_origins)
    if mirror:
        tree, proxy, option = mirror, "", ""
        if settings.site:
            tree = os.path.relpath(done.root / settings.site)
        elif path := urlsplit(url).path.rstrip("/"):
            proxy, option = f", behind a proxy for {path}/", f" --url {url}"
        serving = f"serve its copies and documents{proxy}:  resourcesync serve {shlex.quote(tree)}"
        yield TextLine(f"{serving}{option}", "Next")
    yield TextLine(f"{first}check:  resourcesync pull {url} ./copy{allowed} --dry-run", "Next")
    if settings.sitemap_uri and not settings.robots:
        yield TextLine(f"{_INDENT}for search engines, add to robots.txt:")
        yield TextLine(f"{_INDENT}Sitemap: {settings.sitemap_uri}")


def report_notified(result: "Notified", screen: Screen) -> None:
    """Report the hubs that could not be notified, with the reasons."""
    kept = (("kept", "the next notification contains these changes too"),)
    for hub, problem in {found.notice.hub: found.problem for found in result.problems}.items():
        message = f"the hub {hub} was not notified: {problem}"
        screen.report("warning", {"code": "notify", "message": message, "evidence": kept})
    if result.error is not None:
        message = f"no hub was notified: {result.error.message}"
        fields = {"evidence": result.error.evidence, "hint": result.error.hint}
        screen.report("warning", {"code": "notify", "message": message, **fields})


def notified_line(result: "Notified") -> TextLine | None:
    """Return the line about the notified hubs; ``None`` for none."""
    failed = {problem.notice.hub for problem in result.problems}
    reached = len({outcome.notice.hub for outcome in result.sent} - failed)
    counts = {"change": result.changes, "document": result.documents}
    said = (formatting.counted(number, what) for what, number in counts.items() if number)
    text = f"{formatting.counted(reached, 'hub')} of {' and '.join(said)}"
    return TextLine(text, "Notified", QUIET) if reached else None


def with_packages(outcome: CommandOutcome, dumped: "DumpOutcome", screen: Screen) -> CommandOutcome:
    """Report the packages of a publication; return its outcome with their line and fields."""
    if dumped.error is not None:
        kept = ("kept", "the dumps, as they were; the lists are written")
        problem = problem_of(dumped.error)._replace(evidence=(kept,))
        screen.problem(problem)
        return outcome._replace(exit=problem.exit, fields={**outcome.fields, "code": problem.code})
    for packed in dumped.packages:
        found = {"name": packed.name, "entries": packed.entries, "bytes": packed.length}
        screen.report("package", found)
    if dumped.lost:
        changes = formatting.counted(dumped.lost, "change")
        warning = {
            "code": "versions-gone",
            "message": f"{changes} cannot be packed: the bytes of these versions no longer exist",
            "evidence": (("kept", "all later changes: the Change Dump begins with them"),),
            "hint": "from now on, changed versions are stored until they are packed",
        }
        screen.report("warning", warning)
    if dumped.harmed:
        packages = formatting.counted(dumped.harmed, "package")
        warning = {
            "code": "package-harmed",
            "message": f"{packages} of the dumps: lost or altered, and no longer listed",
            "evidence": (("kept", "what can be packed again; the Change Dump may begin later"),),
        }
        screen.report("warning", warning)
    entries = sum(package.entries for package in dumped.packages)
    size = sum(package.length for package in dumped.packages)
    names = [package.name for package in dumped.packages]
    counts = {"packages_kept": dumped.reused, "packed_entries": entries, "packed_bytes": size}
    unchanged = f"; {formatting.counted(dumped.reused, 'package')} unchanged"
    text = f"nothing new{unchanged}"
    if dumped.packages:
        number = formatting.counted(entries, "entry", "entries")
        packages = formatting.counted(len(dumped.packages), "package")
        rest = unchanged if dumped.reused else ""
        text = f"{number} in {packages}, {formatting.size(size)}{rest}"
    closing = (*outcome.closing, TextLine(text, "Packed", QUIET))
    return outcome._replace(closing=closing, fields={**outcome.fields, "packages": names, **counts})
