"""What a public call does not know is refused at the call, before anything is read or written."""

import inspect
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import resourcesync
from resourcesync import AuditRolling, Mirror, Network, Publisher, server
from resourcesync.errors import ConfigurationError

NOTHING = object()
"""It is no word, number, time or flag."""
SIMPLE = (bool, int, float, str, datetime, NoneType)


def public_calls() -> Iterator[Callable[..., Any]]:
    for module in (resourcesync, server):
        for item in (getattr(module, name) for name in module.__all__):
            if inspect.isfunction(item):
                yield item
            elif inspect.isclass(item):
                yield from (
                    call
                    for name, call in vars(item).items()
                    if inspect.isfunction(call) and not name.startswith("_")
                )


def is_simple(hint: object) -> bool:
    """True for words, numbers, texts, times and flags, and for several of these or none."""
    if get_origin(hint) in {Union, UnionType}:
        return all(map(is_simple, get_args(hint)))
    return get_origin(hint) is Literal or any(hint is kind for kind in SIMPLE)


ARGUMENTS = [
    pytest.param(call, name, id=f"{call.__qualname__}-{name}")
    for call in public_calls()
    if call.__module__.startswith("resourcesync.app.")
    and call.__qualname__ not in {"Plan.record", "Plan.check"}  # callbacks of a pull
    for name, hint in get_type_hints(call).items()
    if name != "return" and is_simple(hint)
]


@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_every_public_call_refuses_what_it_does_not_know(
    call: Callable[..., Any], name: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}=<object object") as refused:
        call(**{name: NOTHING})  # without its other arguments: it is refused before they are missed

    assert refused.value.hint.startswith("use ")


@pytest.mark.parametrize("word", ["increm", "Baseline", "", None, 1, b"auto"])
def test_a_pull_is_only_in_a_mode_that_there_is(tmp_path: Path, word: Any) -> None:
    mirror = Mirror("http://127.0.0.1:9/", tmp_path / "copy")

    for call in (mirror.pull, mirror.dry_run):
        with pytest.raises(ConfigurationError, match="must be one of auto, baseline"):
            call(mode=word)
    assert not mirror.folder.exists()


@pytest.mark.parametrize("word", ["sha256", "HASH", "remote ", None])
def test_an_audit_is_only_by_a_method_that_there_is(tmp_path: Path, word: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be one of lists, stat, hash, remote"):
        Mirror(None, tmp_path).audit(method=word)


@pytest.mark.parametrize("share", [0, -1, -0.1, 1.1, 50, float("nan"), "0.5", None, True])
def test_the_share_of_a_rolling_audit_is_some_part_of_all(share: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be a number above 0 and at most 1"):
        AuditRolling(share=share)


@pytest.mark.parametrize("share", [0.001, 0.5, 1, 1.0])
def test_each_number_up_to_1_is_a_share(share: float) -> None:
    assert AuditRolling(share=share, seconds=3).share == share


def test_a_rolling_audit_has_no_time_less_than_nothing() -> None:
    with pytest.raises(ConfigurationError, match="seconds=-1 must be a number at least 0 or None"):
        AuditRolling(seconds=-1)


@pytest.mark.parametrize("robots", ["Obey", "no", "", None])
def test_only_known_words_say_what_to_do_with_robots_txt(robots: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be one of obey, ignore"):
        Network(robots=robots)


def test_a_word_is_refused_before_the_folder_is_looked_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="step='all' must be one of due, initialise"):
        Publisher(tmp_path / "none", url="https://h.example/").publish(step="all")  # type: ignore[arg-type]  # as a caller may
