"""The keyword arguments of the library: from the structs that the code uses.

Type checkers read ``keyword_types.pyi``, which `docs/generate.py` makes from the same structs.
"""

import re
import textwrap
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import structs

from resourcesync.app.fetchers import checked_network, fetch_settings
from resourcesync.destination.options import PullOptions
from resourcesync.model.settings import DURATION, SIZE
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import Field, convert_argument, fields_of, from_keywords
from resourcesync.source.publication_settings import PublicationSettings

_UNITS: Final = {
    DURATION: " In seconds, or text such as ``90s`` or ``7d``.",
    SIZE: " In bytes, or text such as ``5M``.",
}
_LITERAL: Final = re.compile(r"(?<= )(\*\*?)(?= )|`(\w+)`")
_EXIT: Final = re.compile(r" \(exit \d+\)|, exit \d+(?=\.)")
OF_REQUESTS: Final = {
    "set_name": "One of several sets: its URI, name or number; stored with the mirror.",
    "proxy": 'Proxy for all servers, such as ``"http://proxy.example:3128"``; ``""`` for none;'
    " by default those of the environment (``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``,"
    " ``NO_PROXY``).",
    "proxy_auth": "User and password for the proxy; they are sent to nothing else.",
    "ca_file": "PEM file of the trusted authorities, in place of the system's.",
    "network": "Further settings for requests to the Source.",
}
"""Keyword arguments of a mirror that are no settings of a pull."""


def keyword_fields(schema: type[msgspec.Struct]) -> list[Field]:
    """Return the settings that are keyword arguments."""
    return [field for field in fields_of(schema).values() if field.setting.in_library]


def describe(field: Field) -> str:
    """Return what a keyword argument does."""
    plain = _EXIT.sub("", field.setting.help).replace("Repeat for several", "Several are possible")
    meaning = _LITERAL.sub(lambda found: f"``{found[1] or found[2]}``", plain)
    return f"{meaning}{_UNITS.get(field.form, '')}"


def _keywords(
    name: str, summary: str, schema: type[msgspec.Struct], more: Mapping[str, str]
) -> type:
    described = {field.name: describe(field) for field in keyword_fields(schema)}
    described.update(more)
    rows = (
        textwrap.fill(f"{key}: {text}", 92, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for key, text in described.items()
    )
    doc = "\n".join([f"{summary}\n\n    Attributes:", *rows, "    "])
    content = {"__doc__": doc, "__module__": __name__, "__total__": False}
    return type(name, (dict,), {**content, "__annotations__": dict.fromkeys(described, Any)})


MirrorOptions = _keywords(
    "MirrorOptions",
    "The keyword arguments of `Mirror`: the settings of a pull, as in the configuration file."
    " ``None`` is as if not given.",
    PullOptions,
    OF_REQUESTS,
)
PublisherOptions = _keywords(
    "PublisherOptions",
    "The keyword arguments of `Publisher`. Those not given, or ``None``, are as the last time.",
    PublicationSettings,
    {},
)


def mirror_settings(options: Mapping[str, Any]) -> tuple[PullOptions, Network]:
    """Return the options of a pull, and the settings of requests."""
    given = _given(options, MirrorOptions, "Mirror")
    own = {name: value for name, value in given.items() if name not in OF_REQUESTS}
    name = convert_argument("set_name", given.get("set_name", ""), int | str)
    pull = PullOptions(**from_keywords(PullOptions, own), set_name=str(name))
    return pull, _network(given, pull)


def _network(given: Mapping[str, Any], options: PullOptions) -> Network:
    network = checked_network(given.get("network"))
    allowed = (*network.allow_origins, *(options.allow_origins or ()))
    own = {name: given[name] for name in ("proxy", "proxy_auth") if name in given}
    own |= from_keywords(Network, {name: given[name] for name in ("ca_file",) if name in given})
    chosen = structs.replace(network, allow_origins=tuple(dict.fromkeys(allowed)), **own)
    fetch_settings(chosen, "")  # so that a mistake is reported where it was made
    return chosen


def publisher_settings(options: object, call: str) -> dict[str, object]:
    """Return the settings of a publication that were given, by their names."""
    return from_keywords(PublicationSettings, _given(options, PublisherOptions, call))


def _given(options: object, known: type, call: str) -> dict[str, Any]:
    named = cast("Mapping[str, Any]", options)
    unknown = sorted(named.keys() - known.__annotations__.keys())
    if unknown:
        raise TypeError(f"{call}() got an unexpected keyword argument {unknown[0]!r}")
    return {name: value for name, value in named.items() if value is not None}
