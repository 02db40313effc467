"""DSpace's Change Lists, a new one for each update, are followed through their archive."""

from collections.abc import Callable
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode, RunReport
from tests.support.software.dspace import CAPABILITY_LIST, DSpace, DSpaceOfJuly, DSpaceOfMay
from tests.support.software.software_source import software_world
from tests.support.worlds.moving import Moving
from tests.support.worlds.network import BASE, Answer, Route


class Repository:
    """A DSpace and its mirror."""

    def __init__(self, folder: Path, software: DSpace, route: Route | None = None) -> None:
        self.world = software_world(folder, software, route=route)
        self.source = self.world.source
        self.dspace = software
        self.source.begin(one="1", two="2", three="3")

    def update(self) -> None:
        self.world.clock.advance(hours=1)
        self.dspace.update(self.source.known)

    def rebase(self) -> None:
        self.world.clock.advance(hours=1)
        self.dspace.rebase(self.source.known)

    def pull(self) -> RunReport:
        return self.world.pull(BASE + CAPABILITY_LIST)

    def follow(self, mode: Mode = Mode.INCREMENTAL) -> None:
        report = self.pull()
        assert (report.mode, report.state) == (mode, MirrorState.IN_SYNC)
        assert self.world.told("warning") == []
        assert self.world.in_sync()


@pytest.fixture(params=[DSpaceOfMay, DSpaceOfJuly])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    software: Callable[[], DSpace] = request.param
    return Repository(tmp_path / "mirror", software())


@pytest.fixture
def followed(repository: Repository) -> Repository:
    """A repository whose mirror knows an update."""
    repository.follow(Mode.BASELINE)
    repository.source.change(one="1, again")
    repository.update()
    repository.world.clock.advance(hours=25)  # where the lists are is looked for once a day
    repository.follow(Mode.BASELINE)  # the lists are new
    return repository


def test_each_update_is_followed(followed: Repository) -> None:
    followed.source.change(two=None, four="4")
    followed.update()
    followed.follow()
    followed.update()  # which lists nothing
    followed.world.clock.advance(hours=1)
    followed.pull()
    assert followed.world.in_sync()
    followed.source.change(four="4, again", three=None)
    followed.update()
    followed.follow()


def test_a_rebase_is_followed_by_the_changes_that_led_to_it(followed: Repository) -> None:
    followed.source.change(two="2, again")
    followed.update()
    followed.source.change(one=None)
    followed.rebase()

    followed.follow(Mode.BASELINE)  # there is a new Resource List
    followed.follow(Mode.UNCHANGED)


def test_a_list_that_is_at_two_addresses_since_its_source_went_behind_tls_is_read_once(
    tmp_path: Path,
) -> None:
    """Read again after those that followed it, its deletion would undo what they tell."""
    moving = Moving()
    repository = Repository(tmp_path / "mirror", DSpaceOfJuly(), moving.route)
    repository.follow(Mode.BASELINE)
    for text in ("2, again", None, "2, new"):
        repository.source.change(two=text)
        repository.update()
        repository.pull()
        assert repository.world.in_sync()
    repository.source.change(two=None)
    repository.update()
    assert repository.pull().deleted == 1
    repository.source.change(two="2, once more")
    repository.update()
    repository.source.change(three="3, again")
    repository.update()
    moving.move_behind_tls()

    report = repository.pull()

    assert report.state is MirrorState.IN_SYNC
    assert repository.world.in_sync()


def test_where_the_last_list_was_rewritten_newer_ones_are_read_as_well(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "mirror", DSpaceOfJuly())
    repository.follow(Mode.BASELINE)
    repository.source.change(one="1, again", two="2, again")
    repository.update()
    repository.pull()
    assert repository.world.in_sync()
    repository.source.change(three="3, again", four="4")
    repository.update()
    files = repository.dspace.documents(repository.source.known)
    (old,) = (path for path, data in files.items() if b"one.html</loc><lastmod>" in data)
    repository.world.network.answers[BASE + old] = Answer(
        body=files[old].replace(b"updated", b"created")
    )

    report = repository.pull()

    assert report.state is MirrorState.IN_SYNC
    assert repository.world.in_sync()
