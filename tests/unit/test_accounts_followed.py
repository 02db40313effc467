"""What another system tells, followed in a catalogue and published: nothing lost, nothing wrong."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.memory import ManualClock
from resourcesync.documents import reading
from resourcesync.errors import (
    ConfigurationError,
    DiscontinuityError,
    ResourceSyncError,
    SourceUnavailableError,
)
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Omission
from resourcesync.ports.accounts import Told
from resourcesync.wiring import accounts, catalogues
from resourcesync.wiring.accounts import Followed
from resourcesync.wiring.publishing import Asked, Published
from tests.support.scripted_account import ScriptedSystem, scripted

DAY = 86_400.0


class Follower:
    """Publishes what a system tells, with a clock of its own."""

    def __init__(self, system: ScriptedSystem, out: Path, name: str = "told:one") -> None:
        self.system = system
        self.out = out
        self.name = name
        self.clock = ManualClock(datetime(2026, 6, 1, tzinfo=UTC))

    def followed(self, **changes: Any) -> Followed:
        values = changes.pop("values", {})
        return Followed(address=self.name, values=values, out=self.out, **changes)

    def publish(self, *, allow_empty: bool = False, **changes: Any) -> Published:
        return accounts.publish_account(
            self.followed(**changes),
            {"url": "https://h/"},
            clock=self.clock,
            asked=Asked(allow_empty=allow_empty),
        )

    def keep(self, every: float = 60.0, **changes: Any) -> Iterator[Published]:
        return accounts.keep_published(
            self.followed(**changes),
            {"url": "https://h/"},
            clock=self.clock,
            asked=Asked(),
            every=every,
        )

    def asked(self) -> list[str]:
        found = [one for one in self.system.asked if one != "closed"]
        self.system.asked.clear()
        return found

    def recorded(self) -> dict[str, Resource]:
        path = self.out / ".resourcesync/catalogue.db"
        return {it.uri: it for it in catalogues.read_resources(path)}

    def log(self) -> list[Change]:
        path = self.out / ".resourcesync/catalogue.db"
        return [change for _, change in catalogues.read_changes(path, 0)]

    def listed(self, name: str = "resourcelist") -> list[Any]:
        path = self.out / f"resourcesync/{name}.xml"
        with path.open("rb") as stream:
            return list(reading.read(stream, uri="").entries())


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    with scripted(monkeypatch, "one") as (system,):
        yield Follower(system, tmp_path / "out")


def counts(done: Published) -> tuple[int, int, int, int]:
    scan = done.scan
    return scan.created, scan.updated, scan.deleted, scan.omitted


# --- all, and then the changes ---


def test_all_is_read_once_and_then_the_changes_after_it(follower: Follower) -> None:
    for name in ("a", "b", "c"):
        follower.system.put(name, name.encode())
    assert counts(follower.publish()) == (3, 0, 0, 0)
    assert follower.asked() == ["position", "resources"]

    follower.system.put("a", b"second")
    follower.system.remove("b")
    follower.system.put("d", b"d")
    assert counts(follower.publish()) == (1, 1, 1, 0)

    assert follower.asked() == ["changes after 3, 0 s"]
    assert follower.recorded() == follower.system.resources
    assert [(it.kind.value, it.uri) for it in follower.listed("changelist")] == [
        ("updated", "https://h/a"),
        ("deleted", "https://h/b"),
        ("created", "https://h/d"),
    ]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from(["put", "remove", "publish", "week"])),
        max_size=25,
    )
)
def test_whatever_happens_there_is_what_is_recorded_here(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, str]]
) -> None:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        scripted(monkeypatch, "one") as (system,),
    ):
        follower = Follower(system, tmp_path_factory.mktemp("any") / "out")
        for number, (name, deed) in enumerate(deeds):
            if deed == "put":
                system.put(name, b"%d" % number)
            elif deed == "remove" and f"https://h/{name}" in system.resources:
                system.remove(name)
            elif deed == "week":
                follower.clock.advance(hours=24 * 8)
            else:
                follower.publish(allow_empty=True)
        follower.publish(allow_empty=True)

        assert follower.recorded() == system.resources


def test_all_is_read_again_when_it_is_time_for_that(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    follower.asked()
    follower.clock.advance(seconds=7 * DAY - 10)
    follower.publish()
    assert follower.asked() == ["changes after 1, 0 s"]
    del follower.system.resources["https://h/a"]  # and no change was told
    follower.system.put("b", b"b")

    follower.clock.advance(seconds=20)
    follower.publish()

    assert follower.asked() == ["position", "resources"]
    assert follower.recorded() == follower.system.resources
    follower.clock.advance(seconds=61)
    follower.publish(read_again=60)
    assert follower.asked() == ["position", "resources"]


def test_a_system_without_a_log_is_read_whole_after_some_hours(follower: Follower) -> None:
    follower.system.has_log = False
    follower.system.put("a", b"a")
    running = follower.keep(every=3_600)
    for _ in range(4):
        next(running)

    asked = follower.asked()
    assert asked.count("resources") == 1
    assert not [one for one in asked if one.startswith("changes")]
    for _ in range(2):
        next(running)
    assert follower.asked().count("resources") == 1


def test_a_clock_that_was_set_back_has_all_read_again(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    follower.asked()
    follower.clock.set(follower.clock.now() - timedelta(hours=3))

    follower.publish()

    assert follower.asked() == ["position", "resources"]


def test_another_address_has_all_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted(monkeypatch, "one", "two") as (one, two):
        first = Follower(one, tmp_path / "out")
        one.put("a", b"a")
        first.publish()
        two.put("b", b"b")
        second = Follower(two, tmp_path / "out", "told:two")
        second.clock.advance(seconds=5)
        done = second.publish()

    assert counts(done) == (1, 0, 1, 0)
    assert second.asked() == ["position", "resources"]
    assert list(second.recorded()) == ["https://h/b"]


def test_changes_that_are_forgotten_have_all_read_again(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    follower.system.put("b", b"b")
    follower.system.remove("a")
    follower.system.forgotten = len(follower.system.log)
    follower.asked()

    assert counts(follower.publish()) == (1, 0, 1, 0)

    assert follower.asked() == ["changes after 1, 0 s", "position", "resources"]
    assert follower.recorded() == follower.system.resources


def test_a_mere_feed_that_forgot_is_an_error_and_nothing_is_recorded(follower: Follower) -> None:
    follower.system.tells_all = False
    follower.system.put("a", b"a")
    follower.publish()
    follower.system.put("b", b"b")
    follower.publish()
    before = follower.recorded()
    follower.system.put("c", b"c")
    follower.system.forgotten = len(follower.system.log)

    with pytest.raises(DiscontinuityError):
        follower.publish()

    assert follower.recorded() == before
    assert list(before) == ["https://h/b"]


def test_a_mere_feed_begins_with_the_present_and_an_empty_list(follower: Follower) -> None:
    follower.system.tells_all = False
    follower.system.put("a", b"a")

    assert counts(follower.publish()) == (0, 0, 0, 0)
    assert follower.listed() == []
    follower.system.put("a", b"second")
    follower.system.put("b", b"b")
    follower.clock.advance(seconds=1)
    assert counts(follower.publish()) == (2, 0, 0, 0)

    assert follower.asked()[0] == "position"
    assert sorted(follower.recorded()) == ["https://h/a", "https://h/b"]
    assert [it.kind for it in follower.listed("changelist")] == [ChangeKind.CREATED] * 2


# --- nothing from a partial read ---


@pytest.mark.parametrize("answers", [0, 1, 2, 3])
def test_a_reading_that_is_cut_short_changes_nothing(follower: Follower, answers: int) -> None:
    for number in range(50):
        follower.system.put(f"r{number:02}", b"x")
    follower.publish()
    documents = {path: path.read_bytes() for path in follower.out.rglob("*.xml")}
    recorded = follower.recorded()
    for number in range(40):
        follower.system.put(f"r{number:02}", b"other")
    follower.system.forgotten = len(follower.system.log)

    with follower.system.failing(answers), pytest.raises(SourceUnavailableError):
        follower.publish()

    assert follower.recorded() == recorded
    assert {path: path.read_bytes() for path in follower.out.rglob("*.xml")} == documents
    assert counts(follower.publish())[1] == 40


def test_changes_that_were_recorded_before_the_break_stay_and_are_not_asked_again(
    follower: Follower,
) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    for number in range(50):
        follower.system.put(f"r{number:02}", b"x")
    follower.asked()

    with follower.system.failing(2), pytest.raises(SourceUnavailableError):
        follower.publish()
    assert len(follower.recorded()) == 41
    assert counts(follower.publish()) == (10, 0, 0, 0)

    assert follower.asked() == ["changes after 1, 0 s", "changes after 41, 0 s"]


def test_rows_and_position_are_recorded_together_or_not_at_all(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    follower.system.put("b", b"b")
    follower.asked()

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("resourcesync.adapters.catalogue.posting.write_notes", crash)
        with pytest.raises(KeyboardInterrupt):
            follower.publish()
    assert list(follower.recorded()) == ["https://h/a"]

    follower.publish()
    assert follower.asked() == ["changes after 1, 0 s"] * 2
    assert follower.recorded() == follower.system.resources


def test_most_that_is_gone_at_once_is_refused_unless_it_is_meant(follower: Follower) -> None:
    for number in range(300):
        follower.system.put(f"r{number:03}", b"x")
    follower.publish()
    for number in range(151):
        del follower.system.resources[f"https://h/r{number:03}"]
    follower.clock.advance(seconds=8 * DAY)

    with pytest.raises(ConfigurationError) as refused:
        follower.publish()
    assert (refused.value.code, len(follower.recorded())) == ("many-gone", 300)
    assert "--allow-empty" in refused.value.hint

    follower.system.put("r000", b"x")  # half of it may be gone
    assert counts(follower.publish())[2] == 150


def test_a_system_that_tells_of_nothing_is_refused_unless_it_is_meant(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    follower.system.remove("a")
    follower.clock.advance(seconds=8 * DAY)

    with pytest.raises(ConfigurationError) as refused:
        follower.publish()
    assert (refused.value.code, len(follower.recorded())) == ("empty-account", 1)

    assert counts(follower.publish(allow_empty=True)) == (0, 0, 1, 0)


# --- what cannot be published ---


def test_what_cannot_be_published_is_left_out_and_counted(follower: Follower) -> None:
    follower.system.put("a", b"a")
    for uri in ("mailto:me", "https://h/a b", "nothing"):
        follower.system.tell(ChangeKind.CREATED, Resource(uri=uri))

    done = follower.publish()
    assert counts(done) == (1, 0, 0, 3)
    assert {it.name for it in done.omissions} == {"mailto:me", "https://h/a b", "nothing"}
    follower.system.tell(ChangeKind.CREATED, Resource(uri="https://h/\0"))
    follower.system.put("b", b"b")
    done = follower.publish()

    assert counts(done) == (1, 0, 0, 1)
    assert sorted(follower.recorded()) == ["https://h/a", "https://h/b"]


def test_what_the_system_could_not_say_is_counted_too_and_only_so_many_are_kept(
    follower: Follower,
) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    bad = [Omission(name=f"line {number}", reason="no JSON") for number in range(250)]
    follower.system.lots = [Told("after 1", (), bad)]

    done = follower.publish()

    assert counts(done) == (0, 0, 0, 250)
    assert len(done.omissions) == 100
    assert done.omissions[0] == bad[0]
    follower.system.lots = []
    assert counts(follower.publish()) == (0, 0, 0, 0)


# --- times ---


def test_a_change_keeps_its_time_where_that_is_later_than_all_before_it(
    follower: Follower,
) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    start = follower.clock.now()
    follower.clock.advance(hours=2)
    minutes = [10, 5, 40, 600, 50]  # too early, and in the future
    resource = Resource(uri="https://h/a")
    changes = [
        Change(kind=ChangeKind.UPDATED, time=start + timedelta(minutes=it), resource=resource)
        for it in minutes
    ]
    follower.system.lots = [Told("after 2", changes), Told("after 3", changes[:1])]

    follower.publish()

    now, tick = follower.clock.now(), timedelta(microseconds=1)
    first = start + timedelta(minutes=10)
    third = start + timedelta(minutes=40)
    assert [it.time for it in follower.log()] == [
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


def test_a_feed_that_never_rests_is_published_while_it_goes_on(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    follower.system.is_endless = True
    told = 0

    def goes_on() -> None:
        nonlocal told
        told += 1
        follower.system.put(f"n{told}", b"n")
        follower.clock.advance(seconds=7)

    follower.system.on_lot = goes_on
    began = follower.clock.monotonic()

    for number, done in enumerate(islice(follower.keep(every=60), 4), 1):
        assert done.scan.created
        assert follower.clock.monotonic() - began <= number * 67
    assert told <= 40


def test_a_feed_that_is_closed_ends_the_following(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    last = Change(kind=ChangeKind.CREATED, resource=Resource(uri="https://h/last"))
    follower.system.lots = [Told("after 2", [last], is_last=True)]

    (done,) = follower.keep()

    assert counts(done) == (1, 0, 0, 0)


def test_what_only_lets_the_caller_stop_writes_nothing(follower: Follower) -> None:
    follower.system.put("a", b"a")
    follower.publish()
    path = follower.out / ".resourcesync/catalogue.db"
    follower.system.lots = [Told("after 1", ())] * 50

    with closing(sqlite3.connect(path)) as other:
        before = other.execute("PRAGMA data_version").fetchone()
        with accounts._following(
            follower.followed(), {"url": "https://h/"}, follower.clock, Asked()
        ) as following:
            following.follow(10.0)
        assert other.execute("PRAGMA data_version").fetchone() == before


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
    with pytest.raises(ConfigurationError, match="--with key="):
        follower.publish(values={"key": value})

    assert not follower.system.asked


def test_an_adapter_that_fails_in_its_own_way_is_told_with_its_name(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ValueError("no good")

    monkeypatch.setattr("tests.support.scripted_account.open_account", broken)

    with pytest.raises(ConfigurationError, match="told") as refused:
        follower.publish()

    assert ("got", "ValueError: no good") in refused.value.evidence


def test_the_address_of_the_source_is_remembered_and_asked_for_before_anything_else(
    follower: Follower,
) -> None:
    def publish() -> Published:
        return accounts.publish_account(
            follower.followed(), {}, clock=follower.clock, asked=Asked()
        )

    follower.system.put("a", b"a")
    with pytest.raises(ConfigurationError, match="not known yet") as refused:
        publish()
    assert "--url" in refused.value.hint
    assert not follower.out.exists()
    assert not follower.system.asked

    follower.publish()
    publish()
    options = follower.system.options
    assert options is not None
    assert (options.base_uri, options.address) == ("https://h/", "told:one")


def test_there_is_no_dry_run_and_it_says_so(follower: Follower) -> None:
    with pytest.raises(ResourceSyncError, match="no dry run"):
        accounts.publish_account(
            follower.followed(),
            {"url": "https://h/"},
            clock=follower.clock,
            asked=Asked(dry_run=True),
        )


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("feed:changes.ndjson", True),
        ("feed:/a folder/Änderungen.ndjson", True),
        ("feed:-", True),
        ("feed:", False),
        ("feed:a\nb", False),
        ("nosuch:thing", False),
        ("/some/folder", False),
    ],
)
def test_an_address_names_an_adapter_that_there_is(text: str, is_one: bool) -> None:
    assert accounts.is_address(text) is is_one
