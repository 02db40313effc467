"""What another system tells, followed in a catalogue and published: nothing lost or wrong, and
nothing that it loses is published unasked."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.app.publishing import accounts
from resourcesync.errors import ConfigurationError, DiscontinuityError, SourceUnavailableError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import ChangeBatch
from resourcesync.ports.originals import Omission
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.scan_for_changes import LeftFile
from tests.support.accounts.account_follower import Follower, counts
from tests.support.accounts.scripted_account import scripted

DAY = 86_400.0


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    with scripted(monkeypatch, "one") as (system,):
        yield Follower(system, tmp_path / "out")


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


@pytest.mark.parametrize(("gone", "code"), [(151, "many-gone"), (300, "empty-account")])
def test_most_that_a_listing_lacks_is_refused_unless_it_is_meant(
    follower: Follower, gone: int, code: str
) -> None:
    fill(follower, 300)
    for number in range(gone):
        del follower.system.resources[f"https://h/{number:04}"]
    follower.clock.advance(seconds=8 * DAY)

    with pytest.raises(ConfigurationError) as refused:
        follower.publish()
    assert (refused.value.code, len(follower.recorded())) == (code, 300)
    assert "--allow-empty" in refused.value.hint
    if gone == 300:
        assert counts(follower.publish(allow_empty=True))[2] == 300
    else:
        follower.system.put("0000", b"0000")  # half of it may be gone
        assert counts(follower.publish())[2] == 150


def test_what_cannot_be_published_is_left_out_and_counted(follower: Follower) -> None:
    follower.system.put("a", b"a")
    for uri in ("mailto:me", "https://h/a b", "nothing"):
        follower.system.tell(ChangeKind.CREATED, Resource(uri=uri))

    done = follower.publish()
    assert counts(done) == (1, 0, 0, 3)
    found = {omission.name for omission in done.omissions}
    assert found == {"mailto:me", "https://h/a b", "nothing"}
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
    follower.system.put("a", b"a")
    with pytest.raises(ConfigurationError, match="not known yet") as refused:
        publish(follower, {})
    address = follower.followed().address
    command = f"resourcesync publish {address} --url https://HOST/ --out {follower.out}"
    assert command in refused.value.hint
    assert not follower.out.exists()
    assert not follower.system.asked

    follower.publish()
    publish(follower, {})
    options = follower.system.options
    assert options is not None
    assert (options.base_uri, options.address) == ("https://h/", "told:one")


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
        lots.append(ChangeBatch(str(position + at + 1), (follower.system.log[-1],)))
    follower.system.lots = lots

    for _ in range(2):
        with pytest.raises(ConfigurationError) as refused:
            follower.publish()
        assert refused.value.code == "many-gone"
        assert len(follower.recorded()) == 20
        assert len(follower.listed()) == 40, "what was published stays"


def test_half_of_it_or_a_few_may_go_by_a_log_and_all_for_what_comes(follower: Follower) -> None:
    names = fill(follower, 40)
    for gone, left in ((names[:20], 20), (names[20:30], 10), (names[30:], 0)):
        for name in gone:
            follower.system.remove(name)
        follower.publish()
        assert len(follower.recorded()) == left
    for name in fill(follower, 40):
        follower.system.put(f"new-{name}", b"x")
        follower.system.remove(name)
    assert counts(follower.publish()) == (40, 0, 40, 0)


def test_changes_that_the_other_system_holds_back_are_no_silence(follower: Follower) -> None:
    fill(follower, 3)
    follower.system.lots = [ChangeBatch("3", (), warnings=[("held-back", "2 changes held back")])]
    assert follower.publish().scan.left == (
        LeftFile(code="held-back", reason="2 changes held back"),
    )

    follower.system.lots = [ChangeBatch("3", ())]
    assert follower.publish().scan.left == ()


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


def told_last(follower: Follower) -> Mapping[str, str]:
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
    assert told_last(follower) == first

    follower.publish(values=other)
    follower.publish()

    assert follower.asked() == ["position", "resources", "changes after 3, 0 s"]
    assert told_last(follower) == other


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
