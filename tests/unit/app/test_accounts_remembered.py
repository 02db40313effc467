"""What is remembered of another system: what was given, and what it cannot say any more."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.model.entries import Resource
from tests.support.accounts.account_follower import Follower, counts
from tests.support.accounts.scripted_account import scripted


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    with scripted(monkeypatch, "one") as (system,):
        for name in ("a", "b", "c"):
            system.put(name, name.encode())
        yield Follower(system, tmp_path / "out")


def given(follower: Follower) -> Mapping[str, str]:
    """What the adapter was told the last time."""
    assert follower.system.options is not None
    return follower.system.options.values


def test_what_was_given_counts_until_something_else_is_given_and_then_all_is_read(
    follower: Follower,
) -> None:
    first, other = {"table": "one", "key": "id"}, {"table": "two"}
    follower.publish(values=first)
    follower.publish()
    assert follower.asked() == ["position", "resources", "changes after 3, 0 s"]
    assert given(follower) == first

    follower.publish(values=other)
    follower.publish()

    assert follower.asked() == ["position", "resources", "changes after 3, 0 s"]
    assert given(follower) == other


def test_who_is_not_understood_any_more_has_not_gone(follower: Follower) -> None:
    follower.publish()
    before = follower.recorded()
    uri = "https://h/b"
    bad: Resource = replace(follower.system.resources[uri], media_type="text/\x01")
    follower.system.resources[uri] = bad
    follower.system.resources["https://h/\x01new"] = Resource(uri="https://h/\x01new")

    done = follower.publish(read_again=0)

    assert counts(done) == (0, 0, 0, 2)
    assert follower.recorded() == before
