"""What is remembered of another system: what was given, and what it cannot say any more."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.app.publishing import accounts
from resourcesync.model.resources import Resource
from resourcesync.ports import Clock
from resourcesync.source.publication_options import PublishRequest
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


def test_a_secret_is_remembered_by_where_it_is_and_never_itself(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "hunter2")
    follower.publish(values={"password": "env:PLACE", "api_key": "hunter3", "table": "t"})
    follower.publish()

    assert given(follower) == {"password": "hunter2", "table": "t"}
    stored = b"".join(path.read_bytes() for path in follower.out.rglob("*") if path.is_file())
    assert b"env:PLACE" in stored
    assert b"hunter" not in stored


def test_another_address_of_the_source_leads_to_all_being_read(follower: Follower) -> None:
    def publish(url: str, clock: Clock) -> None:
        accounts.publish_account(
            follower.followed(), {"url": url}, clock=clock, asked=PublishRequest()
        )

    publish("https://h/", follower.clock)
    publish("https://h/", follower.clock)
    publish("https://h/x/", follower.clock)
    publish("https://h/x/", follower.clock)

    assert follower.asked() == [
        "position",
        "resources",
        "changes after 3, 0 s",
        "position",
        "resources",
        "changes after 3, 0 s",
    ]


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
