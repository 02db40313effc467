"""What a scenario says that cannot be is refused with its reason; no number is without bounds."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect as types

from resourcesync.errors import ConfigurationError
from resourcesync_simulator import scenario_files
from resourcesync_simulator.scenario import Scenario


@pytest.mark.parametrize("key", ["rotate", "rebase", "keep", "dump_every"])
def test_no_age_is_below_zero_or_so_short_that_it_would_mean_never(key: str) -> None:
    for value in (-1.0, 1e-7, 1e12):
        with pytest.raises(ConfigurationError, match=f"publish.{key} is wrong"):
            scenario_files.scenario_of({"publish": {key: value}})


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"publish": {"every": 1e-7}}, "publish.every is wrong: expected `float` >= 1"),
        ({"publish": {"every": 1}, "duration": "3660d"}, "at most 100,000,000 changes"),
        (
            {"source": {"bursts": [{"at": "1:00", "changes": 1}] * 300}, "duration": "3660d"},
            "at most 1,000,000 bursts",
        ),
        (
            {"source": {"resources": 0}, "scale": 0.5},
            "source.resources is wrong: expected `int` >= 1",
        ),
        ({"source": {"changes": "20/0s"}}, "'20/0s' is not a rate"),
        ({"source": {"changes": float("inf")}}, "source.changes is wrong: expected `float`"),
        ({"faults": {"outages": "2h..3h"}}, "it must be a list of strings"),
        ({"source": {"sizes": {"least": 9_000}}}, "median must be from least to most"),
        ({"source": {"bursts": [{"at": "25:99", "changes": 1}]}}, "a time of the day"),
        *(
            ({"source": {"bursts": [{"at": "12:00", "changes": 1, "zone": zone}]}}, "no time zone")
            for zone in ("Mars/Olympus", "../x", "\x00")
        ),
        ({"source": {"bursts": [{"at": "1:00", "days": "funday"}]}}, "'funday' is not a day"),
        ({"start": "9999-12-31"}, "start must be from 1980 to 2999"),
        ({"faults": {"outages": ["2h..1h"]}}, "outages must begin before it ends"),
        ({"faults": {"clock_steps": ["1h:9999999d"]}}, "clock_steps.* is wrong: "),
        ({"faults": {"clock_steps": ["1h:3000d", "2h:3000d"]}}, "a clock cannot be wrong by more"),
        ({"faults": {"rollbacks": ["1h:-30m"]}}, "rollbacks.* is wrong: expected `float` >= 0"),
        ({"destination": [{"offline": ["2h..2h"]}]}, "offline must begin before it ends"),
        ({"destination": [{"name": "m"}, {"name": "m"}]}, "two destinations have the name 'm'"),
        ({"destination": [{"name": "a\nb"}]}, "name must be 1 to 100 visible"),
        (
            {"destination": [{"bandwidth": "1k", "jobs": 1}], "source": {"resources": 10_000_000}},
            "one pull could take more than",
        ),
    ],
)
def test_what_cannot_be_says_which_value_it_is_and_what_it_may_be(
    table: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        scenario_files.scenario_of(table)


def numbers(kind: types.Type, place: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the place of each number in a type, and whether it has bounds on both sides."""
    inner = kind.type if isinstance(kind, types.Metadata) else kind
    if isinstance(inner, types.StructType):
        for field in inner.fields:
            yield from numbers(field.type, f"{place}.{field.encode_name}")
    elif isinstance(inner, types.VarTupleType | types.FrozenSetType):
        yield from numbers(inner.item_type, place)
    elif isinstance(inner, types.TupleType):
        for item in inner.item_types:
            yield from numbers(item, place)
    elif isinstance(inner, types.IntType | types.FloatType):
        has_most = inner.le is not None or inner.lt is not None
        yield place, inner.ge is not None and has_most


def test_every_number_of_a_scenario_has_bounds() -> None:
    found = list(numbers(types.type_info(Scenario)))

    assert len(found) > 40
    assert [place for place, has_bounds in found if not has_bounds] == []


def test_tables_in_tables_without_end_are_refused() -> None:
    deep = ".".join("a" * 2_000)
    for text in (f"{deep} = 1", "a = " + "[" * 50_000, f"a = {'9' * 5_000}"):
        with pytest.raises(ConfigurationError):
            scenario_files.parse_scenario(text, "it")
    table = scenario_files.with_value({}, "seed", "[" * 5_000)
    with pytest.raises(ConfigurationError, match="seed is wrong"):
        scenario_files.scenario_of(table)
