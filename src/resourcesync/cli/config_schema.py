"""The JSON Schema of the configuration file, made from the options that its keys stand for."""

from collections.abc import Mapping
from typing import Any, Final

import click

from resourcesync import config
from resourcesync.cli import configured_mirrors, configured_sources, options
from resourcesync.cli.mirror_options import service_keys

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_SECRET_SCHEMA: Final[Schema] = {
    "description": "The place of the secret; the secret is never written in the file.",
    "oneOf": [
        *(
            {
                "type": "object",
                "properties": {kind: {"type": "string", "description": text}},
                "required": [kind],
                "additionalProperties": False,
            }
            for kind, text in (
                ("env", "An environment variable."),
                ("file", "A file with the secret on its one line."),
                ("credential", "A credential of the service manager."),
            )
        ),
        {
            "type": "object",
            "properties": {
                "command": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "description": "A command that writes the secret; no shell is used.",
                }
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    ],
}
_ORIGIN_SCHEMA: Final[Schema] = {
    "type": "string",
    "description": "The origin that gets the secret, if it is not the Source's own origin.",
}
_TEXT_SCHEMA: Final[Schema] = {"type": "string"}


def config_schema() -> Schema:
    """Return the schema of ``resourcesync.toml``, read as JSON would be."""
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "resourcesync.toml",
        "description": "The configuration file of resourcesync.",
        "type": "object",
        "properties": _table_schemas(),
        "additionalProperties": False,
    }


def _table_schemas() -> Schema:
    return {
        "defaults": {
            "description": "Settings of all mirrors that have no setting of their own.",
            **_table_schema(configured_mirrors.default_keys()),
        },
        "mirror": {
            "description": "The mirrors by their names.",
            "type": "object",
            "patternProperties": {
                f"^({configured_mirrors.NAME.pattern})$": {
                    **_table_schema(configured_mirrors.mirror_keys()),
                    "required": ["source", "dest"],
                }
            },
            "additionalProperties": False,
        },
        "log": {
            "description": "The log of the commands that read this file.",
            **_table_schema(configured_mirrors.log_keys()),
        },
        "watch": {
            "description": "Settings of `resourcesync watch`.",
            **_table_schema(service_keys()),
        },
        "source": {
            "description": "The published trees and catalogues by their names.",
            "type": "object",
            "additionalProperties": {
                **_table_schema(configured_sources.SOURCE_KEYS),
                "required": ["path"],
            },
        },
        "auth": {
            "description": "The places of secrets, by the names that `auth` of mirrors gives.",
            "type": "object",
            "additionalProperties": {"oneOf": list(_secret_schemas())},
        },
    }


def _table_schema(keys: Mapping[str, click.Option]) -> Schema:
    properties = {name: value_schema(option) for name, option in keys.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def value_schema(option: click.Option) -> Schema:
    """Return the schema of the value of one key, which is an option's value."""
    found: Schema = {}
    help_text = _KEY_HELP.get(option.name or "", option.help)
    if help_text:
        found["description"] = help_text
    if isinstance(option.default, str | bool | int) and not option.multiple:
        found["default"] = option.default
    if option.is_flag:
        return {**found, "type": "boolean"}
    if option.multiple:
        return {**found, "type": "array", "items": _type_schema(option)}
    return {**found, **_type_schema(option)}


_KEY_HELP: Final = {
    "source": "The Source's address.",
    "path": "The tree, or catalogue:FILE; a relative path starts at the folder of this file.",
    "dest": "The mirror's folder; a relative path starts at the folder of this file.",
    "max_lag": "The longest lag that `resourcesync status --check` accepts.",
    "max_quiet": "The longest time without a publication of the Source that it accepts.",
}


def _type_schema(option: click.Option) -> Schema:
    kind = option.type
    if isinstance(kind, click.Choice):
        return {"type": "string", "enum": list(kind.choices)}
    if isinstance(kind, click.IntRange):
        return {"type": "integer", "minimum": kind.min, "maximum": kind.max}
    if isinstance(kind, options.Parsed):
        is_text = option.multiple or kind is options.PROXY
        types = "string" if is_text else ["string", "number"]
        return {"type": types, "pattern": f"^({config.FORMS[kind.name]})$"}
    return _TEXT_SCHEMA


def _secret_schemas() -> "list[Schema]":
    keys: Mapping[str, Mapping[str, Schema]] = {
        "bearer": {"token": _SECRET_SCHEMA},
        "basic": {"username": _TEXT_SCHEMA, "password": _SECRET_SCHEMA},
        "header": {"name": _TEXT_SCHEMA, "value": _SECRET_SCHEMA},
    }
    found: list[Schema] = [
        {
            "type": "object",
            "properties": {"type": {"const": kind}, "origin": _ORIGIN_SCHEMA, **own},
            "required": ["type", *own],
            "additionalProperties": False,
        }
        for kind, own in keys.items()
    ]
    netrc: Schema = {
        "type": "object",
        "properties": {"type": {"const": "netrc"}, "origin": _ORIGIN_SCHEMA, "file": _TEXT_SCHEMA},
        "required": ["type"],
        "additionalProperties": False,
    }
    return [*found, netrc]
