"""The types of the keyword arguments of the library, made from the structs that the code uses."""

from collections.abc import Iterator
from typing import Final

import msgspec

from resourcesync.app.keywords import keyword_fields
from resourcesync.destination.options import PullOptions
from resourcesync.model.settings import DURATION, FOLDER, LIMIT, MOMENT, PLACE, TEXT
from resourcesync.settings.schema import Field
from resourcesync.source.publication_settings import PublicationSettings

MODULE: Final = "src/resourcesync/app/keyword_types.pyi"

_HEAD: Final = """\
# The keyword arguments of the library, for type checkers; made by `docs/generate.py`.

import os
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, TypedDict, TypeVar

from resourcesync.settings.mirror import Network

_T = TypeVar("_T")
Many: TypeAlias = list[_T] | tuple[_T, ...]  # of texts: a text alone is a Sequence, too
"""
_TYPES: Final = {
    TEXT: "str",
    FOLDER: "str",
    PLACE: "str",
    DURATION: "float | str",
    LIMIT: "int | str",
    MOMENT: "datetime | timedelta | str",
}
_REQUESTS: Final = {
    "set_name": "int | str",
    "proxy": "str",
    "proxy_auth": "tuple[str, str]",
    "ca_file": "str | os.PathLike[str]",
    "network": "Network",
}


def module() -> str:
    """Return the text of the module."""
    mirror = _class("MirrorOptions", PullOptions, _REQUESTS)
    return f"{_HEAD}\n{mirror}\n{_class('PublisherOptions', PublicationSettings, {})}"


def _class(name: str, schema: type[msgspec.Struct], more: dict[str, str]) -> str:
    declared = [*map(_declaration, keyword_fields(schema))]
    declared += [f"    {key}: {kind} | None" for key, kind in more.items()]
    return "\n".join([f"class {name}(TypedDict, total=False):", *declared, ""])


def _declaration(field: Field) -> str:
    line = f"    {field.name}: {' | '.join(_types(field))}"
    if len(line) <= 100:  # noqa: PLR2004 - as the formatter breaks lines
        return line
    inner = line.partition("[")[2].rpartition("]")[0]
    head = line.partition("[")[0]
    return f"{head}[\n        {inner}\n    ]"


def _types(field: Field) -> Iterator[str]:
    choices = ", ".join(f'"{choice}"' for choice in field.choices)
    one = f"Literal[{choices}]" if choices else _TYPES.get(field.form, "int")
    if field.form.name == "size":
        one = "int | str"
    if field.is_many:
        yield f"Many[{one}]"
        if field.setting.is_clearable and not choices:
            yield 'Literal[""]'
    elif field.is_flag:
        yield "bool"
    else:
        yield one
    yield "None"
