"""The module with the keyword arguments of the library, made from the schemas of settings."""

import re
import textwrap
from collections.abc import Iterator
from typing import Final

import msgspec

from resourcesync.settings.mirror import PullSettings
from resourcesync.settings.publication import PublicationSettings
from resourcesync.settings.schema import (
    DURATION,
    FOLDER,
    LIMIT,
    MOMENT,
    PLACE,
    SIZE,
    TEXT,
    Field,
    fields_of,
)

MODULE: Final = "src/resourcesync/settings/keywords.py"

_HEAD: Final = '''\
"""The keyword arguments of the library, made from the schemas by `docs/generate.py`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, TypedDict
'''
_TYPES: Final = {
    TEXT: "str",
    FOLDER: "str",
    PLACE: "str",
    DURATION: "float | str",
    SIZE: "int | str",
    LIMIT: "int | str",
    MOMENT: "datetime | timedelta | str",
}
_UNITS: Final = {
    DURATION: "In seconds, or text such as ``90s`` or ``7d``.",
    SIZE: "In bytes, or text such as ``5M``.",
}
_WIDTH: Final = 92
_LITERAL: Final = re.compile(r"(?<= )(\*\*?)(?= )|`(\w+)`")
_EXIT: Final = re.compile(r" \(exit \d+\)|, exit \d+(?=\.)")


def module() -> str:
    """Return the text of the module."""
    mirror = _class(
        "MirrorKeywords",
        "The settings of a pull that are keyword arguments of the library.",
        PullSettings,
    )
    publisher = _class(
        "PublisherOptions",
        "The keyword arguments of `Publisher`. Those that are not given are as the last time.",
        PublicationSettings,
    )
    return f"{_HEAD}\n\n{mirror}\n\n{publisher}"


def _class(name: str, summary: str, schema: type[msgspec.Struct]) -> str:
    fields = [field for field in fields_of(schema).values() if field.setting.in_library]
    described = "\n".join(_description(field) for field in fields)
    typed = "\n".join(_declaration(field) for field in fields)
    return (
        f'class {name}(TypedDict, total=False):\n    """{summary}\n\n    Attributes:\n'
        f'{described}\n    """\n\n{typed}\n'
    )


def _description(field: Field) -> str:
    plain = _EXIT.sub("", field.setting.help).replace("Repeat for several", "Several are possible")
    meaning = _LITERAL.sub(lambda found: f"``{found[1] or found[2]}``", plain)
    text = f"{field.name}: {meaning}"
    if field.form in _UNITS:
        text += f" {_UNITS[field.form]}"
    return "\n".join(
        textwrap.wrap(
            text, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False
        )
    )


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
    if field.is_many:
        yield f"Sequence[{one}]"
    elif field.is_flag:
        yield "bool"
    else:
        yield one
    if type(None) in getattr(field.type, "__args__", ()):
        yield "None"
