"""What a scenario says is refused with its reason, or can begin; nothing crashes, nothing hangs."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec import inspect as types
from msgspec.structs import fields, replace

from resourcesync.errors import ConfigurationError
from resourcesync_simulator import scenario_files
from resourcesync_simulator.origin import burst_times
from resourcesync_simulator.scenario import (
    HOUR,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync_simulator.simulation import simulate

ODD = st.sampled_from(
    [
        *(0, -1, 1, 2, 10**30, -0.5, 1e-7, 0.5, 1e308, float("inf"), float("nan"), True),
        *("", "0", "1s", "1h", "-1h", "2d", "9999999d", "nan", "inf", "1/s", "nan/h", "20/0s"),
        *("20/h", "10M", "0B", "2026", "0001-01-01", "9999-12-31T23:59:59Z", "25:99", "12:30"),
        *("mon", "funday", "mon-funday", "sat-mon", "UTC", "Mars/Olympus", "../x", "a/b", "\x00"),
        *("changes", "lists", "auto", "always", "\ud800", [], ["1h"], ["1h..2h"], ["2h..1h"]),
        *(["-1h..1h"], ["1h:-30m"], ["1h:9999999d"], ["90m:1h", "100m:1h"], ["text/html"], [{}]),
        *({}, {"median": 5}, {"least": 9, "most": 3}, {"spread": 1e3}, {"x": 1}, [3], [[[]]]),
        [{"at": "12:30", "changes": 2}],
        [{"at": "12:30", "changes": 0, "days": ""}],
        [{"at": "00:00", "changes": 1, "zone": "America/New_York", "days": "sun-thu"}],
    ]
)
USUAL: dict[str, Any] = {
    "duration": "3h",
    "source": {"resources": 3, "sizes": {"median": 50, "most": 100}, "changes": "2/h"},
    "publish": {"every": "1h"},
    "destination": [{"every": "1h"}],
    "faults": {},
}
TABLES: dict[str, type[Struct]] = {
    "source": OriginSettings,
    "publish": PublishSettings,
    "destination": DestinationSettings,
    "faults": Faults,
}
KEYS = [
    *((name,) for name in ("seed", "start", "duration", "scale")),
    *(
        (table, field.encode_name)
        for table, kind in TABLES.items()
        for field in fields(kind)
        if field.name != "phase"
    ),
    *(("source", "sizes", field.name) for field in fields(Sizes)),
]


@st.composite
def written(draw: st.DrawFn) -> dict[str, Any]:
    """A scenario that says one or two odd things."""
    table = USUAL
    for names in draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True)):
        value = draw(ODD)
        table = changed(table, names, value)
    return table


def changed(table: dict[str, Any], names: Sequence[str], value: object) -> dict[str, Any]:
    """Return a scenario with another value; the same if its table has become another thing."""
    found = deepcopy(table)
    place: Any = found
    for name in names[:-1]:
        place = place.setdefault(name, {})
        place = place[0] if isinstance(place, list) and place else place
        if not isinstance(place, dict):
            return table
    place[names[-1]] = value
    return found


def begin(scenario: Scenario) -> None:
    """Begin a world, small enough for a test, and end it soon."""
    for burst in scenario.origin.bursts:
        list(burst_times(burst, scenario.start, scenario.duration))
    small = replace(
        scenario.origin,
        resources=min(3, scenario.origin.resources),
        per_second=min(scenario.origin.per_second, 1e-3),
        sizes=replace(scenario.origin.sizes, most=min(100, scenario.origin.sizes.most), least=0)
        if scenario.origin.sizes.median <= 100
        else scenario.origin.sizes,
    )
    soon = replace(scenario, duration=min(scenario.duration, HOUR), origin=small)
    first = soon.destinations[0]
    simulate(soon, replace(first, every=max(first.every, HOUR)))


@settings(max_examples=80, deadline=None)
@given(written())
def test_what_is_read_is_refused_or_can_begin(table: dict[str, Any]) -> None:
    try:
        scenario = scenario_files.scenario_of(table)
    except ConfigurationError:
        return
    begin(scenario)


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
        ({"source": {"sizes": {"least": 9_000}}}, "median must be from least to most"),
        ({"source": {"bursts": [{"at": "25:99", "changes": 1}]}}, "a time of the day"),
        (
            {"source": {"bursts": [{"at": "12:00", "changes": 1, "zone": "Mars/Olympus"}]}},
            "no time zone 'Mars/Olympus'",
        ),
        ({"source": {"bursts": [{"at": "1:00", "days": "funday"}]}}, "'funday' is not a day"),
        ({"start": "9999-12-31"}, "start must be from 1980 to 2999"),
        ({"faults": {"outages": ["2h..1h"]}}, "outages must begin before it ends"),
        (
            {"faults": {"clock_steps": ["1h:9999999d"]}},
            "clock_steps.* is wrong: ",
        ),
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
