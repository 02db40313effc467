"""A Source that moves: behind TLS it is the same one; to another host, a person says so."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from resourcesync.app.mirror_home import identity_of
from resourcesync.cli.exit_codes import ExitCode, exit_code_of_pull
from resourcesync.destination.audits.explain import ResourceVerdict
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.sync_state import SyncState
from resourcesync.discovery.known_addresses import present_uri
from resourcesync.discovery.uris import is_same
from resourcesync.errors import ConfigurationError, SourceError
from resourcesync.ports import FetchRequest
from tests.support.crashes.killing import killed
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


class Moved:
    """Stands before a world's server: the Source is at another address now."""

    def __init__(
        self, world: World[PublishedSource], home: str, *, redirects_from: str = ""
    ) -> None:
        self.world, self.home, self.redirects_from = world, home, redirects_from
        world.fetcher.serve = self.serve

    def serve(self, request: FetchRequest) -> Answer | Exception:
        here = request.uri.startswith(self.home)
        if not here and not self.redirects_from:
            return Answer(status=404)
        path = request.uri.removeprefix(self.home if here else self.redirects_from)
        answer = self.world.source.honest(BASE + path)
        body = answer.body
        if "resourcesync" in path:
            body = body.replace(BASE.encode(), self.home.encode())
        return Answer(answer.status, body, answer.headers, self.home + path)

    def asked(self) -> list[str]:
        names = (uri.removeprefix(self.home).removeprefix(BASE) for uri in self.world.fetcher.asked)
        return [name for name in names if name and not re.search("resourcesync|sitemap", name)]


def world_of(folder: Path) -> World[PublishedSource]:
    world = World(folder)
    for number in range(30):
        world.source.put(f"a/{number}.html", f"content of {number}")
    world.source.publish_file("strange name!.html".replace(" ", "%20"), "strange")
    world.pull()
    return world


ELSEWHERE = "https://www.example/"


def test_a_source_at_another_host_loses_nothing_and_the_way_out_is_said(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror")
    Moved(world, ELSEWHERE, redirects_from=BASE)

    report = world.pull(mode="baseline")

    (said,) = (mapping for mapping in world.told("warning") if mapping["code"] == "not-understood")
    assert f"resourcesync pull {world.folder} --moved {ELSEWHERE}" in str(said["hint"])
    assert (report.deleted, report.held, len(world.files())) == (0, 0, 31)


@pytest.mark.parametrize("named", ["", "resourcesync/capabilitylist.xml"])
@pytest.mark.parametrize("there", [ELSEWHERE, ELSEWHERE + "files/", BASE + "files/"])
def test_a_person_says_where_the_source_moved_and_nothing_is_fetched_again(
    tmp_path: Path, there: str, named: str
) -> None:
    world = world_of(tmp_path / "mirror")
    before = world.files()
    moved = Moved(world, there)
    world.source.put("a/1.html", "changed")
    world.source.remove("a/2.html")
    world.source.publish()

    world.pull(None, moved=there + named, dry_run=True)
    (plan,) = world.told("plan")
    with pytest.raises(SourceError):
        world.pull(None)  # a dry run changed nothing
    first = world.pull(None, moved=there + named)
    asked = moved.asked()
    world.source.publish_file("a/3.html", "changed, too")
    second = world.pull(None)

    assert (plan["create"], plan["update"], plan["delete"], plan["held"]) == (0, 1, 1, 0)
    assert first.state is MirrorState.IN_SYNC
    assert (first.created, first.updated, first.deleted) == (0, 1, 1)
    assert asked == ["a/1.html"]
    assert (second.state, second.updated, moved.asked()) == (MirrorState.IN_SYNC, 1, ["a/3.html"])
    assert before.keys() - world.files().keys() == {f"{BASE}a/2.html"}
    assert (world.in_sync(), world.audit().in_sync) == (True, True)
    with world.destination() as destination:
        known = destination.explain([f"{there}a/1.html"], tuple, offline=False)
    assert known.verdict is ResourceVerdict.AS_LISTED
    identity = identity_of(world.folder)
    assert identity is not None
    assert identity.source == there + named  # the configuration file is to follow
    assert identity.was_at(BASE)
    globs = (urlsplit(there).path + "a/4.html", "/a/5.html")  # by the path of now, or the first
    assert world.pull(None, exclude=globs).listed.right == 28
    assert world.pull(None, exclude=(), include=globs[:1]).listed.right == 1


@pytest.mark.parametrize("there", ["http://www.example/", "http://www.example/files/"])
def test_a_source_may_move_twice_behind_tls_and_back(tmp_path: Path, there: str) -> None:
    world = world_of(tmp_path / "mirror")
    moved = Moved(world, there)
    assert world.pull(None, moved=there).state is MirrorState.IN_SYNC

    Moved(world, there.replace("http:", "https:"), redirects_from=there)
    behind_tls = world.pull(None, mode="baseline")
    world.fetcher.serve = world.network.serve
    back = world.pull(None, moved=BASE)

    assert (behind_tls.state, behind_tls.listed.refused) == (MirrorState.IN_SYNC, 0)
    assert (back.state, back.updated, back.deleted) == (MirrorState.IN_SYNC, 0, 0)
    assert world.asked_resources() == moved.asked() == []
    assert world.pull().state is MirrorState.IN_SYNC


def test_moves_of_path_and_host_in_a_row_are_one_move(tmp_path: Path) -> None:
    """The path of the first move stays true for the second, which is of the host alone."""
    world = world_of(tmp_path / "mirror")
    places = (BASE + "files/", ELSEWHERE + "files/", ELSEWHERE + "v2", ELSEWHERE)
    for number, there in enumerate(places):
        moved = Moved(world, there.rstrip("/") + "/")

        report = world.pull(None, moved=there)

        assert (report.state, report.created, report.held) == (MirrorState.IN_SYNC, 0, 0)
        assert set(moved.asked()) <= {there}  # the page is looked at
        with world.state() as state:
            identity = SyncState(state).identity
        assert identity is not None
        assert present_uri(f"{BASE}a/1.html", identity.moved) == moved.home + "a/1.html"
        assert all(identity.was_at(place) for place in (BASE, *places[:number]))
        assert not identity.was_at("https://other.example/files/")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://h/proj", "http://h/proj/", True),
        ("http://h", "http://h/", True),
        ("http://h/rs?set=a", "http://h/rs?set=b", False),
        ("http://h/a.xml", "http://h/b.xml", False),
        ("http://h/proj", "http://h/project", False),
    ],
)
def test_an_address_of_a_source_is_the_same_with_and_without_its_last_slash(
    one: str, other: str, *, same: bool
) -> None:
    assert is_same(one, other) is same


@pytest.mark.parametrize("writes", range(1, 12))
def test_a_kill_while_it_follows_its_source_is_got_over(tmp_path: Path, writes: int) -> None:
    world = world_of(tmp_path / "mirror")
    Moved(world, ELSEWHERE)
    with killed(world.home, writes, how=1):
        world.pull(None, moved=ELSEWHERE)

    report = world.pull(None, moved=ELSEWHERE)

    assert (report.state, report.updated, report.deleted) == (MirrorState.IN_SYNC, 0, 0)
    assert world.in_sync()


def test_an_address_where_there_is_no_source_changes_nothing(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror")

    with pytest.raises(SourceError):
        world.pull(None, moved="https://nobody.example/")

    assert world.pull().state is MirrorState.IN_SYNC
    with pytest.raises(ConfigurationError) as raised:
        World(tmp_path / "new").pull(None, moved=ELSEWHERE)
    assert "cannot have moved" in raised.value.message


def test_a_move_that_was_a_mistake_is_taken_back_though_the_other_lists_are_newer(
    tmp_path: Path,
) -> None:
    world = world_of(tmp_path / "mirror")
    before = world.files()
    other = World(tmp_path / "other")
    other.clock.advance(hours=24 * 30)
    other.source.publish_file("b/1.html", "of another Source")
    home = "https://wrong.example/"
    own = world.fetcher.serve

    def serve(request: FetchRequest) -> Answer | Exception:
        if not request.uri.startswith(home):
            return own(request)
        answer = other.source.honest(BASE + request.uri.removeprefix(home))
        body = answer.body.replace(BASE.encode(), home.encode())
        return Answer(answer.status, body, answer.headers, request.uri)

    world.clock.advance(hours=24 * 30 + 1)
    world.fetcher.serve = serve
    wrong = world.pull(None, moved=home)

    report = world.pull(None, moved=BASE)

    assert (wrong.state, wrong.deleted) == (MirrorState.STOPPED, 0)
    assert (report.held, report.deleted) == (0, 0)
    assert {uri: world.files()[uri] for uri in before} == before
    assert world.pull(None).deleted == 0
    assert world.files().keys() >= before.keys()


def test_a_dry_run_of_a_move_to_lists_that_are_too_old_ends_as_the_run(tmp_path: Path) -> None:
    world = world_of(tmp_path / "mirror")
    old = world.source.saved()
    world.source.publish_file("a/3.html", "changed")
    world.pull()
    world.source = old
    Moved(world, ELSEWHERE)

    for report in [world.pull(None, moved=ELSEWHERE, dry_run=dry) for dry in (True, False)]:
        assert report.state is MirrorState.BEHIND
        assert exit_code_of_pull(report) is ExitCode.PARTIAL
