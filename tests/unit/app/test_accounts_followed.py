"""What another system tells, followed in a catalogue and published: nothing lost, nothing wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError, DiscontinuityError, SourceUnavailableError
from resourcesync.model.entries import Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import ChangeBatch
from resourcesync.ports.originals import Omission
from tests.support.accounts.account_follower import Follower, counts
from tests.support.accounts.scripted_account import scripted

DAY = 86_400.0


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    with scripted(monkeypatch, "one") as (system,):
        yield Follower(system, tmp_path / "out")


# --- all, and then the changes ---


@settings(max_examples=6, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from(["put", "remove", "publish", "week"])),
        max_size=25,
    )
)
def test_whatever_happens_there_is_what_is_recorded_here(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, str]]
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, scripted(monkeypatch, "one") as (system,):
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


def test_another_address_has_all_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted(monkeypatch, "one", "two") as (system, two):
        first = Follower(system, tmp_path / "out")
        system.put("a", b"a")
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
    assert [item.kind for item in follower.listed("changelist")] == [ChangeKind.CREATED] * 2


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
        broken.setattr("resourcesync.catalogue.database.write_notes", crash)
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
    assert {omission.name for omission in done.omissions} == {
        "mailto:me",
        "https://h/a b",
        "nothing",
    }
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
    follower.system.lots = [ChangeBatch("after 1", (), bad)]

    done = follower.publish()

    assert counts(done) == (0, 0, 0, 250)
    assert len(done.omissions) == 100
    assert done.omissions[0] == bad[0]
    follower.system.lots = []
    assert counts(follower.publish()) == (0, 0, 0, 0)
