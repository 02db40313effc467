"""The options of ``publish``, and the settings that they give."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import options
from resourcesync.cli.options import option
from resourcesync.settings.publication import PublicationSettings
from resourcesync.settings.schema import fields_of, without_empty
from resourcesync.settings.tables import source_keys

if TYPE_CHECKING:
    from resourcesync.source.plan import PublicationStep


SETTINGS: Final = options.with_settings(
    field for key, field in source_keys().items() if key != "path"
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
STEPS: Final = (
    option(
        "--initialise", is_flag=True, help="Discard the history, and publish a fresh Resource List."
    ),
    option("--update", is_flag=True, help="Only list the changes."),
    option(
        "--rebase", is_flag=True, help="List the changes, and write a new Resource List (baseline)."
    ),
)
_PLACES: Final = frozenset({"out", "versions_in"})
"""Settings that are stored as they are from the tree."""


def given_settings(values: Mapping[str, Any]) -> dict[str, object]:
    """Return the given settings by their names; without those that are places."""
    return {
        field.name: without_empty(field, values[key])
        for key, field in fields_of(PublicationSettings).items()
        if key not in _PLACES and values[key] not in (None, ())
    }


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
