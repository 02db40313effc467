"""The options of ``publish``, and the settings that they give."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import options
from resourcesync.cli.options import Section, option

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
    option("--url", metavar="BASE", help="The web address of DIR; needed once."),
    option(
        "--out",
        section=Section.STORAGE,
        type=_FolderOrStore(),
        metavar="FOLDER|STORE",
        help="Write the documents there instead of into DIR; s3://BUCKET/PREFIX is a bucket.",
    ),
    option(
        "--state",
        section=Section.STORAGE,
        type=click.Path(file_okay=False, path_type=Path),
        help="For a bucket or another system: the folder for the catalogue, if not with the"
        " documents; needed if these go to a store.",
    ),
    option(
        "--include",
        section=Section.SELECTION,
        multiple=True,
        metavar="GLOB",
        help="Publish only files whose path below DIR matches: * is any text, including /; ? is "
        "one character. The globs of pull are different.",
    ),
    option(
        "--exclude",
        section=Section.SELECTION,
        multiple=True,
        metavar="GLOB",
        help="Publish no files whose path matches.",
    ),
    option(
        "--hash",
        "hash",
        section=Section.DOCUMENTS,
        multiple=True,
        type=click.Choice(["sha-256", "sha-512", "sha-384", "sha-224", "sha-1", "md5"]),
        help="Digests of every file; default: sha-256. Repeat for several.",
    ),
    option(
        "--max-entries",
        section=Section.DOCUMENTS,
        type=click.IntRange(1, 50_000),
        help="Most entries in one document.",
    ),
    option(
        "--max-bytes",
        section=Section.DOCUMENTS,
        type=options.SIZE,
        help="Most bytes in one document, such as 10M.",
    ),
    option(
        "--described-by",
        section=Section.DOCUMENTS,
        metavar="URI",
        help="The address of a description of the resources, instead of a document that publish"
        " writes; '' removes it.",
    ),
)
POLICY: Final = (
    option(
        "--change-lists",
        section=Section.DOCUMENTS,
        type=click.Choice(["append", "per-run", "archive"]),
        help="append: one open Change List. per-run: each run writes a closed list. archive: as"
        " per-run, with a Change List Archive instead of an index.",
    ),
    option(
        "--rotate",
        section=Section.DOCUMENTS,
        type=options.DURATION,
        help="Close an open Change List at this age.",
    ),
    option(
        "--keep",
        section=Section.DOCUMENTS,
        type=options.DURATION,
        help="Remove closed Change Lists of this age, if no Resource List is older.",
    ),
    option(
        "--rebase-every",
        section=Section.DOCUMENTS,
        type=options.DURATION,
        help="Write a new Resource List (baseline) at this interval.",
    ),
    option(
        "--archive",
        section=Section.DOCUMENTS,
        type=options.DURATION,
        help="Store superseded lists and dumps for this time, and list them in archives; 0: never.",
    ),
    option(
        "--dialect",
        section=Section.DOCUMENTS,
        type=click.Choice(["1.1", "1.0", "0.9.1", "0.9", "0.6", "0.5"]),
        help="The version of the format to write; default: 1.1.",
    ),
    option(
        "--sitemap/--no-sitemap",
        section=Section.DOCUMENTS,
        default=None,
        help="Also write a plain sitemap for search engines.",
    ),
    option(
        "--robots/--no-robots",
        section=Section.DOCUMENTS,
        default=None,
        help="Write robots.txt with the sitemap's address; never overwrite your own file.",
    ),
    option(
        "--hub",
        section=Section.DOCUMENTS,
        multiple=True,
        metavar="URL",
        help="A WebSub hub for subscriptions to changes; the lists name it. Repeat for several;"
        " '' removes them.",
    ),
    option(
        "--notify/--no-notify",
        section=Section.DOCUMENTS,
        default=None,
        help="Notify the hubs after each publication; otherwise use 'resourcesync notify'.",
    ),
    option(
        "--link",
        section=Section.DOCUMENTS,
        multiple=True,
        metavar="RULE",
        help="Links of the resources, such as 'describedby:{path}.xml only=*.pdf'. Repeat for"
        " several; '' removes them.",
    ),
)
VERSIONS: Final = (
    option(
        "--versions/--no-versions",
        section=Section.VERSIONS,
        default=None,
        help="Store the versions of each file, and list them with links memento, timegate and"
        " timemap. `serve` serves them.",
    ),
    option(
        "--versions-in",
        section=Section.VERSIONS,
        type=click.Path(file_okay=False, path_type=Path),
        help="The folder for versions, instead of .resourcesync/versions.",
    ),
    option(
        "--versions-keep",
        section=Section.VERSIONS,
        type=options.DURATION,
        help="Store former versions at least for this time, and as long as a list names them.",
    ),
    option(
        "--versions-least",
        section=Section.VERSIONS,
        type=click.IntRange(0, 1_000_000),
        help="Store at least this number of former versions of each file.",
    ),
    option(
        "--versions-max-bytes",
        section=Section.VERSIONS,
        type=options.SIZE,
        help="Most bytes of all versions; the oldest are removed first, listed or not. 0: any.",
    ),
    option(
        "--patches/--no-patches",
        section=Section.VERSIONS,
        default=None,
        help="Compute patches between the versions of JSON and XML files; needs --versions.",
    ),
)
WATCH: Final = (
    option(
        "--watch",
        is_flag=True,
        help="Keep running, and publish changes; stop with Ctrl-C. Needs the extra 'watch'.",
    ),
    option(
        "--rescan",
        type=options.DURATION,
        help="Time between two complete scans. Default: 4h for a folder with --watch; 7d for"
        " another system, or 4h if it does not report changes.",
    ),
    option(
        "--every",
        type=options.DURATION,
        default="1m",
        show_default=True,
        help="With --watch of another system: publish its changes at this interval.",
    ),
)
SYSTEM: Final = (
    option(
        "--with",
        section=Section.STORAGE,
        multiple=True,
        type=options.PAIR,
        metavar="KEY=VALUE",
        help="For another system: a setting of its adapter, see 'resourcesync plugins' and the"
        " how-tos. env:NAME and file:PATH read the value from there. Repeat for several.",
    ),
    option(
        "--engine",
        section=Section.STORAGE,
        metavar="ADDRESS",
        help="For a table: write the lists with processes, processes:8, dask://HOST:PORT,"
        " spark://HOST:PORT or spark:local[4]; default: processes.",
    ),
    options.AUTH,
    *options.CONNECTION,
)
STEPS: Final = (
    option(
        "--initialise", is_flag=True, help="Discard the history, and publish a fresh Resource List."
    ),
    option("--update", is_flag=True, help="Only list the changes."),
    option(
        "--rebase", is_flag=True, help="List the changes, and write a new Resource List (baseline)."
    ),
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
"""Options that count when given, even with an empty value: a duration of 0, an empty address."""


def given_settings(values: Mapping[str, Any]) -> dict[str, object]:
    """Return the given settings, by their names in ``Settings``."""
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
    """Return the forced step; by default the step that is due."""
    from resourcesync.source.plan import PublicationStep  # noqa: PLC0415 - help stays quick

    forced = _forced(values)
    return PublicationStep(forced[0]) if forced else PublicationStep.DUE


def _forced(values: Mapping[str, Any]) -> list[str]:
    return [name for name in ("initialise", "update", "rebase") if values[name]]


PUBLISH_KEYS: Final = options.options_of(TREE, POLICY, VERSIONS, SYSTEM)
"""The options that are remembered with a tree, as keys of the configuration file."""
