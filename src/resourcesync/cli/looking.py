"""How the commands that look at a Source ask it; they write nothing anywhere."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from resourcesync import config
from resourcesync.cli import options
from resourcesync.cli.job import Job
from resourcesync.cli.options import option

if TYPE_CHECKING:
    from resourcesync.wiring.mirrors import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How a Source is asked."""

    timeout: float | None
    retries: int | None
    robots: Literal["obey", "ignore"]
    header: tuple[tuple[str, str], ...]
    allow_origin: tuple[str, ...]

    def network(self) -> "Network":
        """Return the same for the wiring."""
        from resourcesync.wiring.mirrors import Network  # noqa: PLC0415 - help stays quick

        return Network(
            timeout=self.timeout,
            retries=self.retries,
            robots=self.robots,
            headers=self.header,
            allow_origins=self.allow_origin,
            ca_file=config.ca_file(),
        )


def asking_options(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command the options of how a Source is asked, handed over as ``asking``."""

    @option("--timeout", type=options.DURATION, help="Longest wait for an answer, such as 30s.")
    @option("--retries", type=click.IntRange(0, 100), help="Further tries; 404 gets none.")
    @option(
        "--robots",
        type=click.Choice(["obey", "ignore"]),
        default="obey",
        show_default=True,
        help="Whether robots.txt is obeyed.",
    )
    @option(
        "--header",
        type=options.HEADER,
        multiple=True,
        metavar="'K: V'",
        help="Send a header to the Source's own origin, and to no other.",
    )
    @option(
        "--allow-origin",
        multiple=True,
        metavar="URL",
        help="Connect to this origin too, though its address is private.",
    )
    @functools.wraps(function)
    def asked(**values: Any) -> Job:
        chosen = {name: values.pop(name) for name in Asking.__dataclass_fields__}
        return function(asking=Asking(**chosen), **values)

    return asked
