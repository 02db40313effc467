"""``resourcesync trash``: list, restore or remove the deleted files of a mirror."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync import app
from resourcesync.app.configured_mirrors import check_state, locate_mirror
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import DETAIL, QUIET, CommandOutcome, Job, Screen, TextLine
from resourcesync.model import formatting
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import SECOND, from_microseconds, to_microseconds

if TYPE_CHECKING:
    from resourcesync.app.mirror_home import Home
    from resourcesync.app.mirror_trash import TrashFilter
    from resourcesync.destination.trash import TrashResult

_NO_MATCH: Final = "nothing in the trash matches"


@click.command("trash", cls=SectionedCommand)
@click.argument("action", type=click.Choice(["list", "restore", "empty"]))
@click.argument("mirror", shell_complete=options.complete_mirror)
@click.argument("glob", default="")
@option("--all", "all", is_flag=True, help="For restore and empty: all files in the trash.")
@option(
    "--older-than",
    type=options.DURATION,
    metavar="DURATION",
    help="Only files that were deleted before this time, such as 7d.",
)
@option("-n", "--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@options.CONFIG
@options.output_options
def command(**values: Any) -> Job:
    """List, restore or remove the deleted files of a mirror.

    \b
    list     list the trash: time of deletion, size, path, reason, URI
    restore  move files back to their places; for each path the one deleted last
    empty    remove files permanently

    MIRROR is a mirror's folder, its name in the configuration file, or the address of its store.
    GLOB matches the path in the mirror or at the Source, as in pull --include: '*.pdf', '/docs/**'.

    Nothing is overwritten: if a file is in the way, the other one stays in the trash (exit 3). A
    restored file is a normal copy; later pulls do not delete it again, but repair --delete does,
    or pull --prune if the filters exclude it.
    Exit 1 if no file in the trash matches GLOB.
    """  # noqa: D301 - click's mark for lines that are not to be filled
    action, glob, older_than = values["action"], values["glob"], values["older_than"]
    _check_selection(action, values)
    home = _home_of(values["mirror"], values["config"])

    def work(screen: Screen) -> CommandOutcome:
        before = None
        if older_than is not None:
            before = to_microseconds(screen.clock.now()) - int(older_than * SECOND)
        fits = app.mirror_trash.trash_filter(home.folder, glob, before)
        if action == "list":
            is_all = not glob and before is None
            return _list(home, fits, screen, narrowed=bool(glob), is_all=is_all)
        dry_run: bool = values["dry_run"]
        with app.mirror_trash.open_trash(
            home, dry_run=dry_run, report=screen.report, clock=screen.clock
        ) as trash:
            if action == "restore":
                done = trash.restore(app.mirror_trash.read_rows(home.folder, fits))
            else:
                done = trash.empty(fits)
        is_idle = action == "restore" and not (done.files or done.failed)
        if is_idle and app.mirror_trash.is_restored(home.folder, fits):
            return CommandOutcome(
                closing=(TextLine("already restored; nothing is left to restore", "Trash", QUIET),),
                fields={"files": 0, "bytes": 0, "failed": 0, "dry_run": dry_run},
            )
        return _outcome(done, action, dry_run=dry_run, narrowed=bool(glob))

    return Job(
        work=work,
        render=_render,
        subject=home.folder.name or str(home.folder),
        fields={
            "mirror": home.store or str(home.folder),
            "action": action,
            "dry_run": values["dry_run"],
        },
    )


def _check_selection(action: str, values: Mapping[str, Any]) -> None:
    narrows = bool(values["glob"]) or values["older_than"] is not None
    if action == "list" and (values["all"] or values["dry_run"]):
        raise click.UsageError("--all and --dry-run are for restore and empty")
    if values["all"] and narrows:
        raise click.UsageError("--all excludes GLOB and --older-than")
    if action != "list" and not (values["all"] or narrows):
        raise click.UsageError(f"name the files to {action}: a GLOB, --older-than, or --all")


def _home_of(mirror: str, config: Any) -> "app.mirror_home.Home":
    configuration = options.load(config)
    if mirror in configuration.names:
        configuration.check_present(mirror)
        known = configuration.mirror(mirror)
        return app.mirror_home.Home(known.dest, known.store)
    folder, store = locate_mirror(mirror, None)
    check_state(mirror, folder)
    return app.mirror_home.Home(folder, store or app.mirror_home.store_of(folder))


def _list(
    home: "Home", fits: "TrashFilter", screen: Screen, *, narrowed: bool, is_all: bool
) -> CommandOutcome:
    files = size = gone = 0
    for row, found, address in app.mirror_trash.rows_of(home.folder, fits):
        files += 1
        size += found or 0
        gone += found is None
        fields = {"path": row.path, **address, "bytes": found, "reason": row.reason}
        time = from_microseconds(row.removed)
        screen.report("trashed", {**fields, "time": time, "place": row.place})
    text, code = f"{formatting.counted(files, 'file')}, {formatting.size(size)}", ExitCode.OK
    if narrowed and not files:
        text, code = _NO_MATCH, ExitCode.FINDINGS
    closing = [TextLine(text, "Trash", QUIET)]
    place = home.folder / OWN_FOLDER / "trash"
    unknown = sum(1 for _ in place.glob("*")) - files + gone if is_all else 0
    if unknown > 0:
        where = f"{formatting.counted(unknown, 'more file')} in {place}"
        text = f"          {where}, unknown to the state: is it from a backup?"
        closing += [TextLine(text, level=QUIET)]
    return CommandOutcome(
        exit=code, closing=tuple(closing), fields={"files": files, "bytes": size, "failed": 0}
    )


def _render(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    name = f"/{fields.get('path')}" if fields.get("path") else str(fields.get("place") or "")
    if event == "trashed":
        size = "missing" if fields["bytes"] is None else formatting.size(fields["bytes"])
        uri = f"   {fields['uri']}" if fields["uri"] else ""
        yield TextLine(
            f"{formatting.moment(fields['time'])}  {size:>9}  {name}   {fields['reason']}{uri}"
        )
    elif event == "item" and fields["status"] == "ok":
        yield TextLine(name, "+" if fields["action"] == "restore" else "-", DETAIL)
    elif event == "item":
        yield TextLine(f"{name}   {fields['reason']}", "!")


def _outcome(done: "TrashResult", action: str, *, dry_run: bool, narrowed: bool) -> CommandOutcome:
    fields = {"files": done.files, "bytes": done.size, "failed": done.failed, "dry_run": dry_run}
    files = f"{formatting.counted(done.files, 'file')}, {formatting.size(done.size)}"
    code = ExitCode.OK
    if done.failed:
        files += f"; {formatting.counted(done.failed, 'file')} not restored"
        code = ExitCode.PARTIAL
    elif narrowed and not done.files:
        files, code = _NO_MATCH, ExitCode.FINDINGS
    ends = f"  exit {int(code)}" if code is not ExitCode.OK else ""
    if dry_run and files != _NO_MATCH:
        label, text = "Dry run", f"would {action} {files}; nothing was changed"
    else:
        label = "Dry run" if dry_run else "Restored" if action == "restore" else "Emptied"
        text = files
    return CommandOutcome(
        exit=code,
        closing=(TextLine(f"{text}{ends}", label, QUIET),),
        fields=fields,
        shows_exit=code is not ExitCode.OK,
    )
