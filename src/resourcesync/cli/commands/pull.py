"""``resourcesync pull``: bring mirrors in sync with their Sources."""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click
from msgspec import UNSET

from resourcesync import app
from resourcesync.app import configured_mirrors
from resourcesync.app.configured_mirrors import MirrorConfiguration
from resourcesync.app.configured_pulls import PulledMirror, Puller, PullTarget, TargetResolver
from resourcesync.cli import options
from resourcesync.cli.options import SectionedCommand, given_options, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen, TextLine, problem_of
from resourcesync.destination.options import PullOptions, StoredOptions
from resourcesync.errors import quoted
from resourcesync.ports import Reporter
from resourcesync.settings.schema import fields_of, make

if TYPE_CHECKING:
    from resourcesync.cli.batch import BatchResult
    from resourcesync.cli.render.pull import PullRenderer


_HOST: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")


PULL_FIELDS: Final = fields_of(*configured_mirrors.PULL)


@click.command("pull", cls=SectionedCommand)
@click.argument(
    "places",
    nargs=-1,
    metavar="[SOURCE [DEST] | MIRROR...]",
    shell_complete=options.complete_mirror,
)
@option("--all", "all", is_flag=True, help="Pull every mirror of the configuration file.")
@options.REHEARSAL
@options.with_settings(PULL_FIELDS.values())
@options.CONFIG
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Copy what changed since last time.

    SOURCE is any address of a site or a Source: its root, a Source Description, a list, a sitemap.
    DEST is the mirror's folder, by default ./HOST. Later, `resourcesync pull DEST` is enough.
    MIRROR is a name in the configuration file, or a folder. If one of several mirrors fails, the
    others are still pulled; the exit code is the worst of all.
    Exit 0 means: every selected resource that the Source lists is in the mirror and equal. So
    --lists-only, which fetches nothing, exits with 3 as long as there is something to fetch.
    Files have the names of the Source; if two names exclude each other, such as /a and /a/b, one
    gets a mark: a!9.
    """
    from resourcesync.cli.render.pull import PullRenderer  # noqa: PLC0415 - help stays quick

    places: tuple[str, ...] = values.pop("places")
    every: bool = values.pop("all")
    configuration = options.load(values.pop("config"))
    _check(places, configuration, values, every=every)
    if values["moved"] and (len(places) != 1 or _is_source(places)):
        raise click.UsageError("--moved needs exactly one MIRROR, and no SOURCE")
    given = {name: values[name] for name in given_options() & PULL_FIELDS.keys()}
    chosen = TargetResolver(configuration, given, dry_run=values["dry_run"])
    words = PullRenderer(
        itemize=values["itemize"], dry_run=values["dry_run"], verbose=output.verbose > 0
    )
    if every or (len(places) > 1 and not _is_source(places)):
        return _job_of_many(configuration.names if every else places, chosen, words)
    if _is_source(places):
        folder = places[1] if places[1:] else _folder_name(places[0])
        target = chosen.target_at(places[0], folder)
    else:
        target = chosen.target(places[0])

    puller = _puller(configuration)
    fields = {"mirror": str(target.folder), "source": target.address}
    return Job(
        acts=True,
        work=lambda screen: _PullView(words, screen).show(puller, target, screen.report),
        render=words,
        subject=target.folder.name or str(target.folder),
        fields={**fields, "dry_run": values["dry_run"]},
        resume_command=f"resourcesync pull {target.name}",
    )


def _job_of_many(names: Sequence[str], chosen: TargetResolver, words: "PullRenderer") -> Job:
    from resourcesync.cli import batch  # noqa: PLC0415 - most pull one

    def work(screen: Screen) -> CommandOutcome:
        puller, view = _puller(chosen.configuration), _PullView(words, screen)

        def pull_one(name: str, report: Reporter) -> CommandOutcome:
            screen.report("mirror", {"mirror": name})
            return view.show(puller, chosen.target(name), report)

        return batch.run_all(names, "mirror", pull_one, screen)

    return Job(
        acts=True,
        work=work,
        render=words,
        subject="pull",
        fields={"mirrors": list(names), "dry_run": words.dry_run},
        resume_command=f"resourcesync pull {' '.join(names)}",
    )


def _puller(configuration: MirrorConfiguration) -> Puller:
    if not configuration.names:
        return Puller(configuration)
    return Puller(configuration, app.stored_names.StoredNames(configuration.state_file("pulled")))


def _check(
    places: Sequence[str],
    configuration: MirrorConfiguration,
    values: Mapping[str, Any],
    *,
    every: bool,
) -> None:
    if values["set"] and values["all_sets"]:
        raise click.UsageError("--set and --all-sets: choose one")
    if every and places:
        raise click.UsageError("--all pulls every mirror: do not name one")
    if every and not configuration.names:
        raise configuration.no_mirrors()
    if not every and not places:
        raise click.UsageError("name a SOURCE or a MIRROR, or give --all")
    _check_order(places)
    if not _is_source(places):
        for place in places:
            _check_mirror(place, configuration, is_only=len(places) == 1)
    elif len(places) > 2:  # noqa: PLR2004 - SOURCE and DEST
        raise click.UsageError("give only one SOURCE and one DEST")
    else:
        _check_folder("".join(places[1:]))


def _check_order(places: Sequence[str]) -> None:
    match places:
        case [folder, address] if _is_web_address(address) and "://" not in folder:
            raise click.UsageError(
                f"the address of the Source comes first: resourcesync pull {address} {folder}"
            )
        case _:
            return


def _check_mirror(place: str, configuration: MirrorConfiguration, *, is_only: bool) -> None:
    if place in configuration.names:
        return
    _check_folder(place)
    configuration.check_name(place)
    if is_only:
        return
    if not app.mirror_home.is_present(Path(place)):
        is_path = place.startswith((".", "/", "~")) or os.path.lexists(place)
        address = (
            "https://HOST/"
            if is_path
            else f"{app.document_access.likely_address(place).rstrip('/')}/"
        )
        hint = f"a Source is an address, such as {address}"
        raise click.UsageError(f"{place!r} is neither a mirror nor the address of a Source: {hint}")


def _is_web_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _is_source(places: Sequence[str]) -> bool:
    first = "".join(places[:1])
    if "://" not in first or _is_web_address(first) or len(places) > 1:
        return "://" in first
    return not app.mirror_home.is_known(first)


def _check_folder(place: str) -> None:
    if _is_web_address(place):
        raise click.UsageError(f"{place!r} is neither a folder nor the name of a mirror")
    if configured_mirrors.is_file(place):
        raise click.UsageError(f"{place!r} is a file, not a mirror's folder")


def _folder_name(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if _HOST.fullmatch(host) is None:
        raise click.UsageError(f"name the mirror's folder: resourcesync pull {address} DEST")
    return host if port is None else f"{host}_{port}"


class _PullView:
    def __init__(self, renderer: "PullRenderer", screen: Screen) -> None:
        self._words, self._screen = renderer, screen
        self._plan: Mapping[str, object] = {}

    def show(self, puller: Puller, target: PullTarget, report: Reporter) -> CommandOutcome:
        self._words.since_moves = isinstance(target.options.since, timedelta)
        self._words.has_trash = bool(target.options.trash)

        def noted(event: str, fields: Mapping[str, object]) -> None:
            if event == "source":
                self._words.first, self._plan = bool(fields["first"]), {}
                goes = fields["delete"] == "absent"
                fate = "are deleted" if goes else "stay; --delete absent deletes them"
                self._words.fate = fate if fields["sitemap"] and self._words.first else ""
            elif event == "plan":
                self._plan = fields
            report(event, fields)

        ended: list[BatchResult] = []
        only: CommandOutcome | None = None
        for pulled in puller.pull(target, noted):
            if pulled.of_set:
                ended.append(self._end_of_set(pulled, target))
            else:
                only = self._conclude(pulled, target)
        if only is None:
            from resourcesync.cli.batch import combine_outcomes  # noqa: PLC0415 - most pull one

            only = combine_outcomes(ended, "set")
        return _with_file_lines(only, target)

    def _conclude(self, pulled: PulledMirror, target: PullTarget) -> CommandOutcome:
        from resourcesync.cli.render.pull import conclude  # noqa: PLC0415 - help stays quick

        assert pulled.report is not None
        folder = str(pulled.folder)
        ended = conclude(
            pulled.report,
            target.name if target.mirror and not pulled.of_set else folder,
            first=self._words.first,
            plan=self._plan,
            by=_repeated(pulled, target),
            place=target.store or folder,
        )
        is_known = not (ended.exit or target.dry_run or pulled.report.faults.unproving)
        if self._words.fate and is_known:
            text = f"          Pages that the sitemap no longer lists {self._words.fate}."
            ended = ended._replace(closing=(*ended.closing, TextLine(text)))
        return ended

    def _end_of_set(self, pulled: PulledMirror, target: PullTarget) -> "BatchResult":
        from resourcesync.cli import batch  # noqa: PLC0415 - most pull one

        name = str(pulled.folder)
        if pulled.error is None:
            outcome = self._conclude(pulled, target)
        else:
            outcome = batch.report_failure(problem_of(pulled.error, name), name, self._screen)
        result = batch.BatchResult(name, {"mirror": name, "set": pulled.of_set}, outcome)
        batch.report_end(result, pulled.seconds, self._screen)
        return result


def _repeated(pulled: PulledMirror, target: PullTarget) -> str:
    options, chosen = target.options, pulled.of_set or "".join(target.place.set_names)
    again = ["pull", *["--prune"] * options.prune]
    if options.moved and target.dry_run:
        again.append(f"--moved {quoted(options.moved, '')}")
        again += [f"--set {quoted(chosen, '')}"] if chosen else []
    return " ".join(again)


def _with_file_lines(ended: CommandOutcome, target: PullTarget) -> CommandOutcome:
    mirror, chosen = target.mirror, target.options
    if mirror is None or target.dry_run:
        return ended
    plain, names = PullOptions(), [*StoredOptions.__struct_fields__]
    names += (name for name in plain.__struct_fields__ if getattr(plain, name) is UNSET)
    line = mirror.moved_line(chosen.moved) if chosen.moved else ""
    told = [f"  next   change the file: {line}"] if line else []
    kept = make(PullOptions, configured_mirrors.values_of(mirror.settings))
    if any(getattr(chosen, name) != getattr(kept, name) for name in names):
        told.append(f"{' ' * 10}The next pull is as the file says: write these options into it.")
    return ended._replace(closing=(*ended.closing, *map(TextLine, told)))
