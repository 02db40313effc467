"""The options of ``publish`` that say when lists are closed, kept and written anew."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import options
from resourcesync.cli.options import option

if TYPE_CHECKING:
    from resourcesync.source.plan import PublicationStep


class _FolderOrStore(click.ParamType[Path | str]):
    """A folder, or the address of a store."""

    name = "place"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        """Return a path, or the address as it is."""
        if "://" in str(value):
            return str(value)
        found: Path = click.Path(file_okay=False, path_type=Path).convert(value, param, ctx)
        return found


TREE: Final = (
    option("--url", metavar="BASE", help="The address of DIR on the Web; needed once."),
    option(
        "--out",
        type=_FolderOrStore(),
        metavar="FOLDER|STORE",
        help="Write the documents there instead of into DIR; s3://BUCKET/PREFIX is a bucket.",
    ),
    option(
        "--state",
        type=click.Path(file_okay=False, path_type=Path),
        help="Of a bucket or another system: keep the catalogue in this folder, not with the"
        " documents; needed where these go to a store.",
    ),
    option(
        "--include",
        multiple=True,
        metavar="GLOB",
        help="Publish only files whose path below the tree matches: * is any text, / too; ? is one "
        "character. The globs of pull are others.",
    ),
    option("--exclude", multiple=True, metavar="GLOB", help="Publish no files whose path matches."),
    option(
        "--hash",
        "hash",
        multiple=True,
        type=click.Choice(["sha-256", "sha-512", "sha-384", "sha-224", "sha-1", "md5"]),
        help="Digests of every file; sha-256 unless given. Repeat for several.",
    ),
    option("--max-entries", type=click.IntRange(1, 50_000), help="Most entries of one document."),
    option("--max-bytes", type=options.SIZE, help="Most bytes of one document, such as 10M."),
    option(
        "--described-by",
        metavar="URI",
        help="A document about the resources, instead of one that is written here;"
        " '' takes that back.",
    ),
)
POLICY: Final = (
    option(
        "--change-lists",
        type=click.Choice(["append", "per-run", "archive"]),
        help="append: one open Change List. per-run: each run writes a closed one. archive: the"
        " same, led to by a Change List Archive instead of an index.",
    ),
    option("--rotate", type=options.DURATION, help="Close an open Change List at this age."),
    option(
        "--keep",
        type=options.DURATION,
        help="Drop closed Change Lists of this age that no one needs to start from.",
    ),
    option("--rebase-every", type=options.DURATION, help="Write a new Resource List so often."),
    option(
        "--archive",
        type=options.DURATION,
        help="Keep superseded lists and dumps this long, and list them in archives; 0: not.",
    ),
    option(
        "--dialect",
        type=click.Choice(["1.1", "1.0", "0.9.1", "0.9", "0.6", "0.5"]),
        help="The version of the format to write; 1.1 unless given.",
    ),
    option(
        "--sitemap/--no-sitemap",
        default=None,
        help="Write a plain sitemap too, which search engines read without complaint.",
    ),
    option(
        "--robots/--no-robots",
        default=None,
        help="Write robots.txt with the sitemap's address; never over one of yours.",
    ),
    option(
        "--hub",
        multiple=True,
        metavar="URL",
        help="Where changes can be subscribed to (WebSub): the lists say so. Repeat for several,"
        " '' takes them back.",
    ),
    option(
        "--notify/--no-notify",
        default=None,
        help="Tell the hubs after each publication; without, 'resourcesync notify' does.",
    ),
    option(
        "--link",
        multiple=True,
        metavar="RULE",
        help="Links of the resources, such as 'describedby:{path}.xml only=*.pdf'; repeat for"
        " several, '' takes them back.",
    ),
)
VERSIONS: Final = (
    option(
        "--versions/--no-versions",
        default=None,
        help="Keep the versions of each file, and tell where each is: links memento, timegate and"
        " timemap. `serve` answers there.",
    ),
    option(
        "--versions-in",
        type=click.Path(file_okay=False, path_type=Path),
        help="Keep them in this folder instead of .resourcesync/versions.",
    ),
    option(
        "--versions-keep",
        type=options.DURATION,
        help="Former versions stay at least so long, and longer while a list tells of them.",
    ),
    option(
        "--versions-least",
        type=click.IntRange(0, 1_000_000),
        help="So many former versions of each file stay at least.",
    ),
    option(
        "--versions-max-bytes",
        type=options.SIZE,
        help="Most bytes of all versions; the oldest go first, told of or not. 0: any.",
    ),
    option(
        "--patches/--no-patches",
        default=None,
        help="Compute patches for JSON and XML that lead from each version to the next; needs"
        " --versions.",
    ),
)
WATCH: Final = (
    option(
        "--watch",
        is_flag=True,
        help="Keep running, and publish what changes; Ctrl-C ends it. Needs the extra 'watch'.",
    ),
    option(
        "--rescan",
        type=options.DURATION,
        help="Look at all there is at least so often: with --watch at all files, 4h unless given;"
        " at all that another system has, 7d unless given, and 4h where it tells no changes.",
    ),
    option(
        "--every",
        type=options.DURATION,
        default="1m",
        show_default=True,
        help="With --watch, of another system: publish so often what changed.",
    ),
)
SYSTEM: Final = (
    option(
        "--with",
        multiple=True,
        type=options.PAIR,
        metavar="KEY=VALUE",
        help="Of another system: tell its adapter so, see 'resourcesync plugins' and the how-tos."
        " env:NAME and file:PATH stand for what is there. Repeat for several.",
    ),
    option(
        "--engine",
        metavar="ADDRESS",
        help="Of a table: have the lists written by processes, processes:8, dask://HOST:PORT,"
        " spark://HOST:PORT or spark:local[4]; processes unless given.",
    ),
    options.AUTH,
    *options.CONNECTION,
)
STEPS: Final = (
    option("--initialise", is_flag=True, help="Start over: a Resource List, no changes."),
    option("--update", is_flag=True, help="List the changes, whatever else is due."),
    option("--rebase", is_flag=True, help="List the changes, and write a new Resource List."),
)
_SETTING_NAMES: Final = {"hash": "algorithms"}
_IF_NOT_EMPTY: Final = ("url", "include", "exclude", "hash", "max_entries", "max_bytes")
_IF_NOT_NONE: Final = (
    "described_by",
    "change_lists",
    "rotate",
    "keep",
    "rebase_every",
    "archive",
    "dialect",
    "sitemap",
    "robots",
    "versions",
    "versions_keep",
    "versions_least",
    "versions_max_bytes",
    "patches",
    "notify",
)
"""What counts when it is given, even if it is nothing: a duration of 0, an empty address."""


def given_settings(values: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings that were given, by the names that ``wiring`` knows."""
    found = {_SETTING_NAMES.get(name, name): values[name] for name in _IF_NOT_EMPTY if values[name]}
    if values["link"]:
        found["links"] = tuple(filter(None, values["link"]))
    if values["hub"]:
        found["hubs"] = tuple(filter(None, values["hub"]))
    return found | {name: values[name] for name in _IF_NOT_NONE if values[name] is not None}


def check_steps(values: Mapping[str, Any]) -> None:
    """Refuse two steps at a time.

    Raises:
        click.UsageError: Several are forced.
    """
    forced = _forced(values)
    if len(forced) > 1:
        raise click.UsageError(f"--{forced[0]} and --{forced[1]} exclude each other")


def step_of(values: Mapping[str, Any]) -> "PublicationStep":
    """Return the step that is forced; by default what is due."""
    from resourcesync.source.plan import PublicationStep  # noqa: PLC0415 - help stays quick

    forced = _forced(values)
    return PublicationStep(forced[0]) if forced else PublicationStep.DUE


def _forced(values: Mapping[str, Any]) -> list[str]:
    return [name for name in ("initialise", "update", "rebase") if values[name]]


PUBLISH_KEYS: Final = options.options_of(TREE, POLICY, VERSIONS, SYSTEM)
"""The options that are remembered with a tree, as keys of the configuration file."""
