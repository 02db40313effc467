"""Which value counts where several say something: nearer ones hide those farther off."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import click
from click.core import ParameterSource

from resourcesync.cli.configured_tables import Setting

_EXPLICIT_SOURCES: Final = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_CONFLICTS: Final = (frozenset({"set", "all_sets"}), frozenset({"every", "cron"}))


def given_options() -> frozenset[str]:
    """Return the options that the command line or the environment of the running command has."""
    context = click.get_current_context()
    return frozenset(
        it for it in context.params if context.get_parameter_source(it) in _EXPLICIT_SOURCES
    )


def merge_settings(
    values: Mapping[str, Any], settings: Mapping[str, Setting], given: frozenset[str]
) -> dict[str, Any]:
    """Return the values of a command's options; what is not given comes from the configuration.

    Args:
        values: The options, as click understood them.
        settings: What the configuration says.
        given: Those that the command line or the environment has.
    """
    hidden = given | _hidden_names(given)
    found = {
        name: setting.value
        for name, setting in settings.items()
        if name in values and name not in hidden
    }
    # A file's proxy does not get the secret that another of its tables has for another proxy.
    gone = {"proxy_auth": None} if "proxy" in found and "proxy_auth" not in given else {}
    return {**values, **gone, **found}


def merge_connection(settings: Mapping[str, Setting], way: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings, and of the options of ``options.WAY`` that were given."""
    hidden = _hidden_names(way.keys())
    values = {name: it.value for name, it in settings.items() if name not in hidden}
    return {**values, **way}


def _hidden_names(names: Collection[str]) -> frozenset[str]:
    """Return what does not count any more, once some settings are given nearer by.

    The secret of one proxy is nothing for another one.
    """
    hidden = frozenset().union(*(rivals for rivals in _CONFLICTS if rivals.intersection(names)))
    return hidden | {"proxy_auth"} if "proxy" in names else hidden


def without_conflicts(
    defaults: Mapping[str, Setting], own: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Return the defaults without those that say the opposite of what the mirror says."""
    hidden = _hidden_names(own.keys())
    return {name: setting for name, setting in defaults.items() if name not in hidden}
