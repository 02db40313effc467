"""Settings become the options of a pull and of a publication, for the library and for commands."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from resourcesync.app.options import fetch_settings, pull_options
from resourcesync.destination.options import PullOptions
from resourcesync.errors import ConfigurationError
from resourcesync.settings.keywords import MirrorKeywords
from resourcesync.settings.mirror import PullSettings
from resourcesync.settings.network import Network
from resourcesync.settings.schema import from_keywords

if TYPE_CHECKING:
    from inspect import Signature


class MirrorOptions(MirrorKeywords, total=False):
    """The keyword arguments of `Mirror`: the settings of a pull, as in the configuration file.

    Attributes:
        set_name: One of several sets: its URI, name or number; stored with the mirror.
        proxy: Proxy for all servers, such as ``"http://proxy.example:3128"``; ``""`` for none;
            ``None`` for those of the environment (``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``,
            ``NO_PROXY``).
        proxy_auth: User and password for the proxy; they are sent to nothing else.
        ca_file: PEM file of the trusted authorities, in place of the system's.
        network: Further settings for requests to the Source.
    """

    set_name: str
    proxy: str | None
    proxy_auth: tuple[str, str] | None
    ca_file: str | os.PathLike[str]
    network: Network


_NOT_OF_PULLS: Final = frozenset({"set_name", "proxy", "proxy_auth", "ca_file", "network"})


class MirrorSettings(NamedTuple):
    """The settings of a mirror.

    Attributes:
        pull: Those of a pull.
        network: Those of requests.
        set_name: One of several sets; empty for the only one.
    """

    pull: PullSettings = PullSettings()
    network: Network = Network()
    set_name: str = ""

    def options(self, now: datetime) -> PullOptions:
        """Return the options of a pull that begins now."""
        return pull_options(self.pull, now, set_name=self.set_name)


def complete_docstring(options: type, keywords: type) -> None:
    """Let the docstring of some keyword arguments describe those of its base too, for ``help``."""
    inherited = (keywords.__doc__ or "").partition("Attributes:\n")[2].rstrip()
    if options.__doc__ and inherited:  # there is none with python -OO
        options.__doc__ = f"{options.__doc__.rstrip()}\n{inherited}"


complete_docstring(MirrorOptions, MirrorKeywords)


class KeywordSignature:
    """The signature of a class whose keyword arguments are a ``TypedDict``, for ``help``.

    It is computed when it is read, since only people need it.
    """

    def __init__(self, options: type) -> None:
        self._options = options

    def __get__(self, _instance: object, owner: type) -> "Signature":
        from inspect import Parameter, signature  # noqa: PLC0415 - only help needs it

        called = signature(vars(owner)["__init__"])
        _self, *named, _options = called.parameters.values()
        hints = self._options.__annotations__
        options = (
            Parameter(name, Parameter.KEYWORD_ONLY, default=..., annotation=hints[name])
            for name in sorted(hints)
        )
        return called.replace(parameters=[*named, *options])


def mirror_settings(options: MirrorOptions) -> MirrorSettings:
    """Return the settings of a mirror."""
    check_names(options, MirrorOptions.__annotations__, "Mirror")
    given = {name: value for name, value in options.items() if name not in _NOT_OF_PULLS}
    since = given.get("since")
    if isinstance(since, datetime) and since.tzinfo is None:
        raise ConfigurationError("since has no time zone", hint="since=datetime(…, tzinfo=UTC)")
    pull = PullSettings(**from_keywords(PullSettings, given))
    return MirrorSettings(pull, _network(options, pull), options.get("set_name", ""))


def _network(options: MirrorOptions, pull: PullSettings) -> Network:
    network = options.get("network", Network())
    allowed = (*network.allow_origins, *(pull.allow_origins or ()))
    chosen = structs.replace(
        network,
        allow_origins=tuple(dict.fromkeys(allowed)),
        proxy=options.get("proxy", network.proxy),
        proxy_auth=options.get("proxy_auth", network.proxy_auth),
        ca_file=os.fspath(options.get("ca_file", network.ca_file)),
    )
    fetch_settings(chosen, "")  # so that a mistake is reported where it was made
    return chosen


def check_names(given: Mapping[str, object], known: Iterable[str], what: str) -> None:
    """Refuse an argument that does not exist, as Python does."""
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise TypeError(f"{what}() got an unexpected keyword argument {unknown[0]!r}")
