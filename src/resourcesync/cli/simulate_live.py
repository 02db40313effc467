"""``resourcesync simulate --live``: be the Source in real time, until a signal comes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from resourcesync.cli.output import CommandOutcome, Screen
from resourcesync.cli.stopping import acknowledge_stop
from resourcesync.cli.words import QUIET, TextLine
from resourcesync.errors import ConfigurationError

if TYPE_CHECKING:
    from resourcesync.simulator.live import LiveSettings
    from resourcesync.simulator.scenario import Scenario

_TICK_SECONDS: Final = 0.2
"""Seconds from one look at what is due to the next; who asks looks, too."""
_LIVE_OPTIONS: Final = ("bind", "base_uri", "speed", "dialect", "no_lastmod")
_SIMULATION_OPTIONS: Final = ("sweep", "repeat", "jobs", "out")


def check_live_options(context: click.Context) -> None:
    """Refuse options that would do nothing.

    Raises:
        click.UsageError: One of them was given, on this command line.
    """
    is_live = context.params["live"]
    for name in _SIMULATION_OPTIONS if is_live else _LIVE_OPTIONS:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(
                f"{option} is for simulations{'; --live is none' if is_live else ' with --live'}"
            )
    if is_live and context.params["scenario"] == "init":
        raise click.UsageError("init writes a scenario; --live is for one that there is")


def serve_live(
    values: Mapping[str, Any], written: Callable[[], Mapping[str, Any]], screen: Screen
) -> CommandOutcome:
    """Be the Source until a signal comes; that is how it is meant to end.

    Args:
        values: Of the options.
        written: Reads the scenario, where it is one.
        screen: Is told where the Source is.

    Raises:
        ConfigurationError: The scenario or configuration has a mistake, or cannot be served there.
    """
    from resourcesync.wiring import live_simulation, machine  # noqa: PLC0415 - help stays quick

    what = _live_source(values, written, screen)
    (host, port), clock = values["bind"], machine.system_clock()
    place = live_simulation.LiveAddress(
        host=host, port=port, base_uri=values["base_uri"], speed=values["speed"]
    )
    seed = 1 if values["seed"] is None else values["seed"]
    try:
        with live_simulation.serve_live(what, place, seed=seed, clock=clock) as serving:
            pull = f"resourcesync pull {serving.uri} ./copy"
            screen.report("ready", {"uri": serving.uri, "pull": pull, "tree": values["scenario"]})
            while True:
                clock.sleep(_TICK_SECONDS)
                serving.advance()
    except KeyboardInterrupt as stop:
        acknowledge_stop(stop)
    return CommandOutcome(closing=(TextLine("no longer served", "Stopped", QUIET),))


def warn_of_late_events(told: "Iterable[Scenario]", screen: Screen) -> None:
    """Warn of what some scenarios say and will not happen, each once."""
    from resourcesync.simulator import bounds  # noqa: PLC0415 - help stays quick

    for text in dict.fromkeys(it for scenario in told for it in bounds.faults_after_end(scenario)):
        screen.report("warning", {"code": "never", "message": f"this will not happen: {text}"})


def _live_source(
    values: Mapping[str, Any], written: Callable[[], Mapping[str, Any]], screen: Screen
) -> "LiveSettings | Scenario":
    from resourcesync.model.vocabulary import Dialect  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import resync_simulator, scenarios  # noqa: PLC0415 - as above

    path = Path(values["scenario"] or "")
    if resync_simulator.is_configuration(path):
        found = resync_simulator.read_configuration(path)
        if found.ignored:
            text = f"{path} says what has no meaning here: {', '.join(found.ignored)}"
            screen.report("warning", {"code": "ignored", "message": text})
        return replace(
            found.settings,
            dialect=Dialect(values["dialect"]),
            tells_lastmod=not values["no_lastmod"],
        )
    if values["dialect"] != "1.1" or values["no_lastmod"]:
        raise ConfigurationError(
            "--dialect and --no-lastmod are for configurations of the resync-simulator",
            hint="a scenario is published as it is simulated; see faults.undated",
        )
    scenario = scenarios.scenario_of(dict(written()))
    warn_of_late_events([scenario], screen)
    return scenario if values["seed"] is None else replace(scenario, seed=values["seed"])
