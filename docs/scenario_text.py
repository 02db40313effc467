"""The keys of a scenario and the events of a run as Markdown, from the code that reads them."""

import inspect
import re
from collections.abc import Iterator, Mapping

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from resourcesync_simulator import experiments, scenario_files
from resourcesync_simulator.bounds import BOUNDS
from resourcesync_simulator.events import EVENTS
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
from resourcesync_simulator.scenario_files import DAYS, Reader, read_seconds

TABLES = {
    "": (scenario_files.TOP, Scenario),
    "source": (scenario_files.TABLES["source"], OriginSettings),
    "source.sizes": (scenario_files.SIZES, Sizes),
    "source.bursts": (scenario_files.BURST, Burst),
    "publish": (scenario_files.TABLES["publish"], PublishSettings),
    "destination": (scenario_files.TABLES["destination"], DestinationSettings),
    "faults": (scenario_files.TABLES["faults"], Faults),
}
"""The readers of each table, and the values that they return."""
HEADS = {
    "": "Above all tables",
    "source": "`[source]`: the resources and their changes",
    "source.sizes": "`source.sizes`: the lengths of resources",
    "source.bursts": "`source.bursts`: each a table in a list",
    "publish": "`[publish]`: the publication of the Source",
    "destination": "`[[destination]]`: one Destination; any number of these tables",
    "faults": "`[faults]`: the faults",
}
FIELDS = {"source.changes": "per_second"}
MEANINGS = {
    "scale": "Factor of the numbers of resources and changes; 1 is the real size.",
    "source.bursts.at": "Time of the day, in the zone.",
    "source.bursts.days": "Days of the week.",
}
"""Meanings of keys whose written form differs from the value."""
SPANS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def keys() -> str:
    """Return a table of keys for each table of a scenario."""
    return "\n".join(f"## {HEADS[name]}\n\n{''.join(rows(name))}" for name in TABLES)


def rows(table: str) -> Iterator[str]:
    """Yield the lines that tell of the keys of one table."""
    readers, values = TABLES[table]
    meanings = attributes(values)
    yield "| Key | Value | Default | Meaning |\n| --- | --- | --- | --- |\n"
    known = {field.name: field for field in fields(values)}
    for key, reader in readers.items():
        place = f"{table}.{key}" if table else key
        name = FIELDS.get(place, key)
        default = "`1.0`" if place == "scale" else usual(known[name], reader)
        meaning = MEANINGS.get(place) or meanings[name]
        yield f"| `{key}` | {value(place, reader)} | {default} | {meaning} |\n"


def value(place: str, reader: Reader) -> str:
    """Return what may be written for a key."""
    form = (inspect.getdoc(reader) or "").split("\n", 1)[0].replace("``", "`")
    form = form.removeprefix("Read ").rstrip(".")
    if form.startswith("a "):  # the head of the page has an example of each form
        form = re.split(r",| such as", form.removeprefix("a "))[0]
    bound = scenario_files.SCALE if place == "scale" else BOUNDS.get(place)
    if bound is None or place == "source.bursts.at":
        return form
    return f"{form}, {bound.text.removeprefix('from ')}"


def usual(field: FieldInfo, reader: Reader) -> str:
    """Return what holds where a key is not written, as it would be written."""
    if field.default is NODEFAULT:
        return "" if field.default_factory is not NODEFAULT else "must be given"
    found = field.default
    if reader is read_seconds and isinstance(found, float):
        return f"`{span(found)}`"
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


def span(seconds: float) -> str:
    """Return seconds as a time of a scenario."""
    for many, unit in SPANS:
        if seconds and seconds % many == 0:
            return f'"{seconds / many:g}{unit}"'
    return f'"{seconds:g}s"' if seconds else "0"


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
    head = "| Column | Meaning |\n| --- | --- |\n"
    return head + "".join(
        f"| `{figure}` | {meanings[figure]} |\n" for figure in experiments.FIGURES
    )
