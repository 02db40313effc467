"""Another system, followed on and on: times, intervals, its end, and what it is opened with."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.app.publishing import accounts
from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import ChangeBatch
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from tests.support.accounts.account_follower import Follower, counts
from tests.support.accounts.scripted_account import scripted


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    with scripted(monkeypatch, "one") as (system,):
        yield Follower(system, tmp_path / "out")


# --- times ---


def test_a_change_keeps_its_time_where_that_is_later_than_all_before_it(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    start = follower.clock.now()
    follower.clock.advance(hours=2)
    minutes = [10, 5, 40, 600, 50]  # too early, and in the future
    resource = Resource(uri="https://h/a")
    changes = [
        Change(kind=ChangeKind.UPDATED, time=start + timedelta(minutes=minute), resource=resource)
        for minute in minutes
    ]
    follower.system.lots = [ChangeBatch("after 2", changes), ChangeBatch("after 3", changes[:1])]

    follower.publish()

    now, tick = follower.clock.now(), timedelta(microseconds=1)
    first = start + timedelta(minutes=10)
    third = start + timedelta(minutes=40)
    assert [change.time for change in follower.log()] == [
        first,
        first + tick,
        third,
        now,
        now + tick,
        now + 2 * tick,  # what was recorded before went up to the present
    ]


# --- going on and on ---


def test_changes_are_published_at_the_interval_that_was_asked_for(follower: Follower) -> None:
    follower.system.put("a", b"a")
    began = follower.clock.monotonic()
    running = follower.keep(every=300)
    next(running)
    follower.asked()

    for number in range(3):
        follower.system.put(f"n{number}", b"n")
        assert counts(next(running)) == (1, 0, 0, 0)
        assert follower.clock.monotonic() - began == pytest.approx(300 * (number + 1))

    assert follower.asked() == [f"changes after {number}, 300 s" for number in (1, 2, 3)]
    running.close()  # type: ignore[attr-defined]
    assert follower.system.asked == ["closed"]


# --- what it is opened with ---


def test_secrets_are_read_where_they_are_and_neither_stored_nor_shown(
    follower: Follower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ITS_PASSWORD", "hush-hush")
    (tmp_path / "t").write_text("very-secret\n")
    values = {"password": "env:ITS_PASSWORD", "token": f"file:{tmp_path}/t", "n": "plain:1"}
    follower.system.put("a", b"a")

    follower.publish(values=values)

    options = follower.system.options
    assert options is not None
    assert options.values == {"password": "hush-hush", "token": "very-secret", "n": "plain:1"}
    assert "hush-hush" not in repr(options)
    assert "very-secret" not in repr(options)
    held = b"".join(path.read_bytes() for path in follower.out.rglob("*") if path.is_file())
    assert b"hush-hush" not in held
    assert b"very-secret" not in held


@pytest.mark.parametrize("value", ["env:NO_SUCH_VARIABLE", "file:/no/such/file", "file:/"])
def test_a_secret_that_is_not_there_is_a_mistake(follower: Follower, value: str) -> None:
    with pytest.raises(ConfigurationError, match="key="):
        follower.publish(values={"key": value})

    assert not follower.system.asked


def test_an_adapter_that_fails_in_its_own_way_is_told_with_its_name(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ValueError("no good")

    monkeypatch.setattr("tests.support.accounts.scripted_account.open_account", broken)

    with pytest.raises(ConfigurationError, match="told") as refused:
        follower.publish()

    assert ("got", "ValueError: no good") in refused.value.evidence


def test_the_address_of_the_source_is_remembered_and_asked_for_before_anything_else(
    follower: Follower,
) -> None:
    def publish() -> PublicationResult:
        return accounts.publish_account(
            follower.followed(), {}, clock=follower.clock, asked=PublishRequest()
        )

    follower.system.put("a", b"a")
    with pytest.raises(ConfigurationError, match="not known yet") as refused:
        publish()
    address = follower.followed().address
    command = f"resourcesync publish {address} --url https://HOST/ --out {follower.out}"
    assert command in refused.value.hint
    assert not follower.out.exists()
    assert not follower.system.asked

    follower.publish()
    publish()
    options = follower.system.options
    assert options is not None
    assert (options.base_uri, options.address) == ("https://h/", "told:one")
