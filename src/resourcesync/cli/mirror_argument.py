"""The argument MIRROR: a mirror's folder, or its name in the configuration file."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from resourcesync.cli import configured, options
from resourcesync.cli.job import Job

if TYPE_CHECKING:
    from resourcesync.wiring.mirrors import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorArgument:
    """The mirror that a command is about.

    Attributes:
        folder: Where it is.
        network: Gives how its Source is asked; raises ``ConfigurationError`` when its secret
            cannot be had.
    """

    folder: Path
    network: "Callable[[], Network]"


def mirror_argument(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command with ``--config`` the argument MIRROR, handed over as ``mirror``.

    The options of ``options.WAY``, where the command has them, go into how the Source is asked.
    """

    @click.argument("mirror")
    @functools.wraps(function)
    def about_one(mirror: str, config: Path | None, **values: Any) -> Job:
        configuration = configured.load(config)
        one = MirrorArgument(
            folder=configuration.folder(mirror),
            network=functools.partial(
                configuration.network, mirror, options.pop_connection(values)
            ),
        )
        return function(mirror=one, **values)

    return about_one
