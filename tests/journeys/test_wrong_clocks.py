"""A clock that is days off is reported, and no mirror is called in sync by it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from resourcesync.destination.reports import MirrorState
from tests.support.commands.command_line import Said, rows
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.worlds.dated_server import DatedServer
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[DatedServer]:
    world = World(tmp_path / "mirror", DatedServer())
    world.source.put("a", "1")
    world.source.publish()
    return world


def skews(world: World[DatedServer]) -> list[str]:
    said = [
        str(mapping["message"])
        for mapping in world.told("warning")
        if mapping["code"] == "clock-skew"
    ]
    return [name for name in said if "this machine" in name]


@contextmanager
def our_clock_is(world: World[DatedServer], late: timedelta) -> Iterator[None]:
    right, world.source.ahead = world.clock.now(), late
    world.clock.set(right - late)
    yield
    world.source.ahead = timedelta()
    world.clock.set(right)


@pytest.mark.parametrize(
    ("late", "message"),
    [
        (timedelta(days=45), "this machine's clock is 45.0 d behind the Source's"),
        (timedelta(days=3_650), "this machine's clock is 3650.0 d behind the Source's"),
        (timedelta(days=-45), "this machine's clock is 45.0 d ahead of the Source's"),
        (timedelta(hours=30), "this machine's clock is 30 h behind the Source's"),
    ],
)
def test_by_a_clock_that_is_days_off_no_mirror_is_in_sync(
    world: World[DatedServer], late: timedelta, message: str
) -> None:
    for _ in range(3):
        with our_clock_is(world, late):
            report = world.pull()
        assert report.state is MirrorState.BEHIND
        assert skews(world) == [message]
        assert report.faults.skew_seconds == pytest.approx(-late.total_seconds(), abs=1)
        assert world.in_sync(), "what could be had is here all the same"
    report = world.pull()
    assert (report.state, report.faults.skew_seconds) == (MirrorState.IN_SYNC, 0.0)
    assert skews(world) == []


@pytest.mark.parametrize("days", [20_000, -400])
def test_a_night_with_a_wrong_clock_takes_nothing_from_the_trash_the_log_and_the_status(
    world: World[DatedServer], days: int
) -> None:
    """As after a reset to 1970, and a year ahead: the next night the clock is right again."""

    def remove_and_publish(name: str) -> None:
        world.source.publish_deletion(name)

    for name in "bcd":
        world.source.put(name, name)
    world.source.publish()
    world.pull()
    remove_and_publish("b")
    world.pull()
    remove_and_publish("c")
    with our_clock_is(world, timedelta(days=days)):
        world.pull()
    for _ in range(2):
        world.clock.advance(hours=24)
        world.pull()

    assert world.status().state is MirrorState.IN_SYNC
    assert len(list((world.folder / ".resourcesync/trash").iterdir())) == 2
    with world.state() as state:
        assert state.change_bounds()[0] == 0, "no change was deleted"
    assert world.status().last_run == world.clock.now()
    world.clock.advance(hours=24 * 91)
    world.pull()
    with world.state() as state:
        assert state.change_bounds()[0] > 4, "in its time it is"
    assert not list((world.folder / ".resourcesync/trash").iterdir())


def test_an_audit_by_a_wrong_clock_knows_of_no_sync(world: World[DatedServer]) -> None:
    world.pull()
    assert world.audit().in_sync
    world.events.clear()
    with our_clock_is(world, timedelta(days=45)):
        assert not world.audit().in_sync
        assert skews(world) == ["this machine's clock is 45.0 d behind the Source's"]
        assert world.audit(offline=True).in_sync, "that asks nobody"


@pytest.mark.parametrize(("days", "words"), [(400, "400.0 d behind"), (-2, "48 h ahead of")])
def test_a_pull_by_a_wrong_clock_ends_with_3_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said, days: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    date, now = (f"{datetime.now(UTC) + timedelta(n):%a, %d %b %Y %T GMT}" for n in (days, 0))
    times = {"Date": date, "Last_Modified": now}
    with HostileServer() as server:
        page = server.on("/a.html", answer("200 OK", b"page", **times))
        listed = urlset((page, "2025-01-01"))
        uri = server.on("/map.xml", answer("200 OK", listed, Content_Type="text/xml", **times))
        assert run(["pull", uri, "m"]) == 3
        said = capsys.readouterr()
        assert run(["pull", "m", "--json"]) == 3
    text = said.out + said.err
    assert f"this machine's clock is {words} the Source's" in text
    assert "next   correct this machine's clock" in text
    assert "run it again" not in text
    assert rows(capsys)[-1]["faults"]["skew_seconds"] == pytest.approx(-days * 86_400, abs=60)
