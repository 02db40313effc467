"""Our dataclasses are those of the standard library, but that their methods are written later."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync import values

_OURS: Any = values.dataclass
_THEIRS: Any = dataclasses.dataclass


def _family(dataclass: Any, **how: bool) -> tuple[Any, Any]:
    """Return a class with all that our classes have, and one that adds to it."""

    @dataclass(slots=True, **how)
    class Base:
        """A value."""

        first: int
        second: str = "two"
        third: list[int] = dataclasses.field(default_factory=lambda: [3])
        fourth: str = dataclasses.field(default="four", repr=False, compare=False)
        hidden: int = dataclasses.field(init=False, default=7)

        def __post_init__(self) -> None:
            object.__setattr__(self, "hidden", self.first + 1)

        @property
        def both(self) -> str:
            return f"{self.first}{self.second}"

    @dataclass(slots=True, **how)
    class Derived(Base):
        """A value with one thing more."""

        fifth: tuple[int, ...] = ()

    return Base, Derived


def _outcome(deed: Callable[[], Any]) -> Any:
    try:
        return deed()
    except (TypeError, AttributeError) as error:
        return type(error)


_VALUES = st.fixed_dictionaries(
    {"first": st.integers(0, 2)},
    optional={
        "second": st.sampled_from("ab"),
        "third": st.lists(st.integers(0, 1), max_size=1),
        "fourth": st.sampled_from("ab"),
        "fifth": st.tuples(st.integers(0, 1)),
    },
)


_families = cache(_family)


@given(
    st.fixed_dictionaries({"frozen": st.booleans(), "kw_only": st.booleans(), "eq": st.booleans()}),
    st.tuples(st.booleans(), _VALUES),
    st.tuples(st.booleans(), _VALUES),
)
def test_they_behave_as_those_of_the_standard_library(
    how: dict[str, bool], one: tuple[bool, dict[str, Any]], other: tuple[bool, dict[str, Any]]
) -> None:
    ours, theirs = (_behaviour(_families(of, **how), (one, other)) for of in (_OURS, _THEIRS))
    assert ours == theirs


def _behaviour(
    classes: tuple[Any, Any], given: tuple[tuple[bool, dict[str, Any]], ...]
) -> list[object]:
    made = [_outcome(partial(classes[derived], **fields)) for derived, fields in given]
    told = [made[0] == made[1]]
    for it in made:
        if it is TypeError:  # the base class has no fifth field
            told.append(it)
            continue
        told += [repr(it), dataclasses.asdict(it), type(it).__match_args__, it.both]
        told += [dataclasses.replace(it, second="c") == it, repr(dataclasses.replace(it, first=9))]
        told.append(_outcome(partial(setattr, it, "first", 5)))
        told.append(_outcome(partial(delattr, it, "fourth")))
        told.append(_outcome(lambda it=it: bool(hash(it)) or True))  # type: ignore[misc]
        told.append(str(inspect.signature(type(it))))
    return told


@given(_VALUES)
def test_equal_frozen_values_have_one_hash(given: dict[str, Any]) -> None:
    given = {**given, "third": ()}
    _, derived = _families(_OURS, frozen=True, kw_only=True)
    assert len({derived(**given), derived(**given), derived(**{**given, "first": 99})}) == 2


@values.dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A value at the top of a module, as ``pickle`` wants it."""

    name: str
    numbers: tuple[int, ...] = ()


def test_a_frozen_value_can_be_copied_and_pickled() -> None:
    value = Kept(name="a", numbers=(1, 2))
    assert copy.deepcopy(value) == copy.copy(value) == pickle.loads(pickle.dumps(value)) == value


def test_a_frozen_value_says_which_field_cannot_be_assigned() -> None:
    value = Kept(name="a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="'name' of Kept"):
        value.name = "b"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        object.__setattr__(value, "other", 1)  # there are slots, and nothing besides


def test_no_method_is_written_before_it_is_asked_for() -> None:
    base, derived = _family(_OURS, frozen=True, kw_only=True)
    names = ("__init__", "__repr__", "__eq__", "__hash__")
    assert not any(
        isinstance(vars(it)[name], FunctionType) for it in (base, derived) for name in names
    )
    value = derived(first=1)
    assert [isinstance(vars(derived)[name], FunctionType) for name in names] == [1, 0, 0, 0]
    assert value == derived(first=1)
    assert [isinstance(vars(derived)[name], FunctionType) for name in names] == [1, 0, 1, 0]
    assert not any(isinstance(vars(base)[name], FunctionType) for name in names)
