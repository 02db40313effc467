"""A scenario as TOML, with the seeds that were used, and the command that simulates it again."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from resourcesync.server.dashboard.markup import Markup, tag

if TYPE_CHECKING:
    from resourcesync.wiring.simulation_runs import Summary

_BARE: Final = re.compile("[A-Za-z0-9_-]+")


def reproduction(summaries: "Sequence[Summary]", written: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield the scenario, and what to say to simulate it again.

    Args:
        summaries: The rows.
        written: The scenario as it was written; another seed may have been taken.
    """
    firsts = {it.runs[0].seed for it in summaries}
    command = ["resourcesync", "simulate", "scenario.toml"]
    if len(firsts) == 1:  # else each row says its own, in the scenario or in the sweep
        (seed,) = firsts
        written = {"seed": seed, **{key: it for key, it in written.items() if key != "seed"}}
        is_swept = "seed" in summaries[0].values
        command += [] if is_swept else ["--seed", str(seed)]
    repeat = max((len(it.runs) for it in summaries), default=1)
    command += ["--repeat", str(repeat)] if repeat > 1 else []
    for key in summaries[0].values if summaries else ():
        values = dict.fromkeys(it.values[key] for it in summaries)
        command += ["--sweep", f"{key}={','.join(values)}"]
    yield tag("p", "As scenario.toml: ", tag("code", shlex.join(command)))
    yield tag("pre", [(it, Markup("\n")) for it in toml_lines(written)])


def toml_lines(written: Mapping[str, Any]) -> Iterator[str]:
    """Yield a scenario as TOML, a line for each value.

    Args:
        written: As TOML is read.
    """
    tables = {key: it for key, it in written.items() if _is_table_array(it)}
    yield from _table_lines({key: it for key, it in written.items() if key not in tables}, "")
    for key, rows in tables.items():
        for row in rows:
            yield f"[[{_toml_key(key)}]]"
            yield from _table_lines(row, "")


def _is_table_array(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(it, dict) for it in value)


def _table_lines(table: Mapping[str, Any], place: str) -> Iterator[str]:
    for key, value in table.items():
        name = f"{place}{_toml_key(key)}"
        if isinstance(value, dict) and value:
            yield from _table_lines(value, f"{name}.")
        else:
            yield f"{name} = {_toml_value(value)}"


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _toml_text(key)


def _toml_value(value: object) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_toml_key(key)} = {_toml_value(it)}" for key, it in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, str):
        return _toml_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
