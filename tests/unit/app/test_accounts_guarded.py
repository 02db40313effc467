"""What another system loses is not published unasked; what was said once is remembered."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.app.publishing import accounts
from resourcesync.errors import ConfigurationError, SourceUnavailableError
from resourcesync.model.entries import Resource
from resourcesync.ports.accounts import ChangeBatch
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.scan import LeftFile
from tests.support.accounts.account_follower import Follower, counts
from tests.support.accounts.scripted_account import scripted


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    with scripted(monkeypatch, "one") as (system,):
        yield Follower(system, tmp_path / "out")


def publish(follower: Follower, chosen: dict[str, object], **followed: Any) -> PublicationResult:
    return accounts.publish_account(
        follower.followed(**followed), chosen, clock=follower.clock, asked=PublishRequest()
    )


def fill(follower: Follower, number: int, *, publish: bool = True) -> list[str]:
    names = [f"{at:04}" for at in range(number)]
    for name in names:
        follower.system.put(name, name.encode())
    if publish:
        follower.publish()
    return names


# --- most of what was published is gone ---


def test_a_log_by_which_most_is_gone_is_not_published_unless_that_is_meant(
    follower: Follower,
) -> None:
    names = fill(follower, 40)
    for name in names[:21]:
        follower.system.remove(name)

    for _ in range(3):
        with pytest.raises(ConfigurationError, match=r"21 of 40 .* would be gone") as refused:
            follower.publish()
        assert refused.value.code == "many-gone"
    assert len(follower.listed()) == 40

    assert follower.publish(allow_empty=True).publication.deleted == 21
    assert follower.recorded() == follower.system.resources


def test_what_goes_in_many_lots_and_runs_counts_from_what_was_published(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fill(follower, 40)
    position, lots = len(follower.system.log), list[ChangeBatch]()
    for at, name in enumerate(names[:30]):  # as a log that is read page by page
        follower.system.remove(name)
        change = follower.system.log[-1]
        lots.append(ChangeBatch(str(position + at + 1), (change,)))
    follower.system.lots = lots

    for _ in range(2):
        with pytest.raises(ConfigurationError) as refused:
            follower.publish()
        assert refused.value.code == "many-gone"
        assert len(follower.recorded()) == 20
        assert len(follower.listed()) == 40, "what was published stays"


def test_half_of_it_or_a_few_may_go_by_a_log(follower: Follower) -> None:
    names = fill(follower, 40)
    for gone, left in ((names[:20], 20), (names[20:30], 10), (names[30:], 0)):
        for name in gone:
            follower.system.remove(name)
        follower.publish()
        assert len(follower.recorded()) == left


def test_what_comes_in_place_of_what_goes_counts(follower: Follower) -> None:
    names = fill(follower, 40)
    for name in names:
        follower.system.put(f"new-{name}", b"x")
        follower.system.remove(name)
    assert counts(follower.publish()) == (40, 0, 40, 0)


# --- why it is not told yet ---


def test_changes_that_the_other_system_holds_back_are_no_silence(follower: Follower) -> None:
    fill(follower, 3)
    follower.system.lots = [ChangeBatch("3", (), warnings=[("held-back", "2 changes held back")])]
    assert follower.publish().scan.left == (
        LeftFile(code="held-back", reason="2 changes held back"),
    )

    follower.system.lots = [ChangeBatch("3", ())]
    assert follower.publish().scan.left == ()


# --- why all is read again ---


def test_that_a_log_is_gone_is_told_once(follower: Follower) -> None:
    fill(follower, 3)
    follower.system.forgotten = 10**6
    follower.system.put("new", b"x")
    assert [left_file.code for left_file in follower.publish().scan.left] == ["log-lost"]

    follower.system.has_log = False
    follower.clock.advance(hours=24 * 8)
    message = "told:one no longer has a change log"
    assert follower.publish().scan.left == (LeftFile(code="log-lost", reason=message),)
    follower.clock.advance(hours=24 * 8)
    assert follower.publish().scan.left == ()


# --- what was said once ---


def test_a_first_run_that_fails_remembers_what_it_was_told(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.system.fails = SourceUnavailableError("not now", uri="told:one")
    values = {"key": "value", "password": "hunter2"}
    with pytest.raises(SourceUnavailableError):
        publish(follower, {"url": "https://h/"}, values=values)

    follower.system.fails = None
    assert counts(publish(follower, {})) == (1, 0, 0, 0)
    assert follower.system.options is not None
    assert follower.system.options.values == {"key": "value"}
    assert follower.system.options.base_uri == "https://h/"
    assert "hunter2" not in (follower.out / ".resourcesync/catalogue.db").read_bytes().decode(
        "latin-1"
    )


# --- what is remembered of another system -------------------------------------------------------


def given(follower: Follower) -> Mapping[str, str]:
    """What the adapter was told the last time."""
    assert follower.system.options is not None
    return follower.system.options.values


def test_what_was_given_counts_until_something_else_is_given_and_then_all_is_read(
    follower: Follower,
) -> None:
    fill(follower, 3, publish=False)
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
    fill(follower, 3)
    before = follower.recorded()
    uri = "https://h/0001"
    bad: Resource = replace(follower.system.resources[uri], media_type="text/\x01")
    follower.system.resources[uri] = bad
    follower.system.resources["https://h/\x01new"] = Resource(uri="https://h/\x01new")

    done = follower.publish(read_again=0)

    assert counts(done) == (0, 0, 0, 2)
    assert follower.recorded() == before
