"""The JSON Schema of the configuration file, made from the options that its keys stand for."""

from collections.abc import Mapping
from typing import Any, Final

from resourcesync.settings.publication import source_keys
from resourcesync.settings.schema import PROXY, Field
from resourcesync.settings.tables import (
    MIRROR_NAME,
    Keys,
    default_keys,
    log_keys,
    mirror_keys,
    service_keys,
)

_SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
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
        "$schema": _SCHEMA_DIALECT,
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
            **_table_schema(default_keys()),
        },
        "mirror": {
            "description": "The mirrors by their names.",
            "type": "object",
            "patternProperties": {
                f"^({MIRROR_NAME.pattern})$": {
                    **_table_schema(mirror_keys()),
                    "required": ["source", "dest"],
                }
            },
            "additionalProperties": False,
        },
        "log": {
            "description": "The log of the commands that read this file.",
            **_table_schema(log_keys()),
        },
        "watch": {
            "description": "Settings of the service, `watch`.",
            **_table_schema(service_keys()),
        },
        "source": {
            "description": "The published trees and catalogues by their names.",
            "type": "object",
            "additionalProperties": {
                **_table_schema(source_keys()),
                "required": ["path"],
            },
        },
        "auth": {
            "description": "The places of secrets, by the names that `auth` of mirrors gives.",
            "type": "object",
            "additionalProperties": {"oneOf": list(_secret_schemas())},
        },
    }


def _table_schema(keys: Keys) -> Schema:
    properties = {name: value_schema(field) for name, field in keys.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def value_schema(field: Field) -> Schema:
    """Return the schema of the value of one key."""
    found: Schema = {"description": field.setting.help}
    if field.is_flag:
        default = {} if field.setting.is_stored else {"default": False}
        return {**found, **default, "type": "boolean"}
    if field.setting.shown:
        whole = field.form.is_whole
        found["default"] = int(field.setting.shown) if whole else field.setting.shown
    if field.is_many:
        return {**found, "type": "array", "items": _type_schema(field)}
    return {**found, **_type_schema(field)}


def _type_schema(field: Field) -> Schema:
    form = field.form
    if field.choices:
        return {"type": "string", "enum": list(field.choices)}
    if form.is_whole:
        return {"type": "integer", "minimum": form.lowest, "maximum": form.highest}
    if form.pattern:
        is_text = field.is_many or form is PROXY
        return {
            "type": "string" if is_text else ["string", "number"],
            "pattern": f"^({form.pattern})$",
        }
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
