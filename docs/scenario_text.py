"""The keys of a scenario and the events of a run as Markdown, from the code that reads them."""

import inspect
import re
from collections.abc import Iterator, Mapping

import msgspec
from docs.scenario_events import EVENTS
from msgspec import NODEFAULT
from msgspec import inspect as types

from resourcesync_simulator import experiments
from resourcesync_simulator.bounds import duration_text
from resourcesync_simulator.measures import Measurement
from resourcesync_simulator.scenario import (
    Burst,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync_simulator.scenario_files import DAYS, FORMS, SCALE, form_of

HEADS: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "": ("Above all tables", Scenario),
    "source": ("`[source]`: the resources and their changes", OriginSettings),
    "source.sizes": ("`source.sizes`: the lengths of resources", Sizes),
    "source.bursts": ("`source.bursts`: each a table in a list", Burst),
    "publish": ("`[publish]`: the publication of the Source", PublishSettings),
    "destination": (
        "`[[destination]]`: one Destination; any number of these tables",
        DestinationSettings,
    ),
    "faults": ("`[faults]`: the faults", Faults),
}
MEANINGS = {
    "scale": "Factor of the numbers of resources and changes; 1 is the real size.",
    "source.bursts.at": "Time of the day, in the zone.",
    "source.bursts.days": "Days of the week.",
}
"""Meanings of keys whose written form differs from the value."""
HIDDEN = {"source", "publish", "destination", "faults", "destination.phase"}
"""Tables, which have their own rows, and the key that a seed decides."""


def keys() -> str:
    """Return a table of keys for each table of a scenario."""
    return "\n".join(f"## {head}\n\n{''.join(rows(name))}" for name, (head, _) in HEADS.items())


def rows(table: str) -> Iterator[str]:
    """Yield the lines that tell of the keys of one table."""
    values = HEADS[table][1]
    kind = types.type_info(values)
    assert isinstance(kind, types.StructType)
    meanings = attributes(values)
    yield "|Key|Value|Default|Meaning|\n|---|---|---|---|\n"
    for field in kind.fields:
        key = field.encode_name
        place = f"{table}.{key}" if table else key
        if place not in HIDDEN:
            meaning = MEANINGS.get(place) or meanings[field.name]
            yield f"|`{key}`|{value(field.type)}|{usual(field)}|{meaning}|\n"
    if not table:
        yield f"|`scale`|{value(types.type_info(SCALE))}|`1.0`|{MEANINGS['scale']}|\n"


def value(kind: types.Type) -> str:
    """Return what may be written for a key."""
    form = form_of(kind)
    inner = kind.type if isinstance(kind, types.Metadata) else kind
    # The head of the page has an example of each form.
    text = re.split(r",| such as", FORMS[form].text)[0] if form else plain_form(inner)
    text = text.removeprefix("a ")
    least, most = getattr(inner, "ge", None), getattr(inner, "le", None)
    if least is None or most is None or form == "clock":
        return text
    shown = duration_text if form in {"time", "age"} else number
    return f"{text}, {shown(least)} to {shown(most)}"


def number(bound: float) -> str:
    """Return a bound as people write it."""
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:,.10g}"


def plain_form(kind: types.Type) -> str:
    """Return what TOML has for a type."""
    match kind:
        case types.IntType():
            return "whole number"
        case types.FloatType():
            return "number"
        case types.BoolType():
            return "`true` or `false`"
        case types.LiteralType(values=values):
            return " or ".join(f'`"{name}"`' for name in values)
        case types.StructType():
            return "table"
        case types.VarTupleType(item_type=item):
            inner = item.type if isinstance(item, types.Metadata) else item
            return f"list of {plain_form(inner)}s"
        case _:
            return "string"


def usual(field: types.Field) -> str:
    """Return what holds where a key is not written, as it would be written."""
    found = field.default
    if found is NODEFAULT:
        return "" if field.default_factory is not NODEFAULT else "must be given"
    if form_of(field.type) in {"time", "age"} and isinstance(found, float):
        return f'`"{duration_text(found)}"`' if found else "`0`"
    if isinstance(found, frozenset):
        return "every day" if len(found) == len(DAYS) else f"`{sorted(found)}`"
    if isinstance(found, tuple):
        return f"`{list(found)}`".replace("'", '"') if found else "none"
    if isinstance(found, bool):
        return f"`{str(found).lower()}`"
    if isinstance(found, str):
        return f'`"{found}"`'
    if isinstance(found, int | float):
        return f"`{found:_}`"
    return f'`"{found:%Y-%m-%dT%H:%M:%SZ}"`'


def attributes(values: type) -> Mapping[str, str]:
    """Return what the docstring of a class says of its attributes, each by its name."""
    text = (inspect.getdoc(values) or "").partition("Attributes:\n")[2]
    found: dict[str, str] = {}
    for part in re.split(r"\n(?=    \S)", text):
        names, _, meaning = part.strip().partition(": ")
        words = " ".join(meaning.replace("``", "`").split())
        found |= dict.fromkeys(names.split(", "), words)
    return found


def events() -> str:
    """Return the kinds of events with their fields."""
    parts = []
    for name, event in EVENTS.items():
        lines = [f"- `{key}`: {text}" for key, text in event.always.items()]
        lines += [f"- `{key}`, not always: {text}" for key, text in event.sometimes.items()]
        lines = [re.sub(r"^- `(each .*?)`(:|, not)", plain, line) for line in lines]
        told = "\n" + "".join(f"{line}\n" for line in lines) if lines else ""
        parts.append(f"### {name}\n\n{event.meaning}\n{told}")
    return "\n".join(parts)


def plain(match: re.Match[str]) -> str:
    """Return a name that stands for several, without the marks of a name."""
    return f"- {match[1]}{match[2]}".replace("``", "`")


def figures() -> str:
    """Return the columns of the table of figures."""
    meanings = attributes(Measurement)
    head = "|Column|Meaning|\n|---|---|\n"
    return head + "".join(f"|`{figure}`|{meanings[figure]}|\n" for figure in experiments.FIGURES)
