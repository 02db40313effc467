"""DSpace's Change Lists, a new one for each update, are followed through their archive."""

from collections.abc import Callable
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from tests.support.software.dspace import CAPABILITY_LIST, DSpace, DSpaceOfJuly, DSpaceOfMay
from tests.support.software.foreign_world import ForeignWorld
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.moving import MovingWorld
from tests.support.worlds.world import BASE


class Repository(ForeignWorld):
    """A DSpace and its mirror."""

    def __init__(self, folder: Path, software: DSpace) -> None:
        super().__init__(folder, software)
        self.dspace = software
        self.begin(one="1", two="2", three="3")

    def update(self) -> None:
        self.clock.advance(hours=1)
        self.dspace.update(self.known)

    def rebase(self) -> None:
        self.clock.advance(hours=1)
        self.dspace.rebase(self.known)

    def follow(self, mode: Mode = Mode.INCREMENTAL) -> None:
        report = self.pull(BASE + CAPABILITY_LIST)
        assert (report.mode, report.state) == (mode, MirrorState.IN_SYNC)
        assert self.told("warning") == []
        assert self.in_sync()


@pytest.fixture(params=[DSpaceOfMay, DSpaceOfJuly])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    software: Callable[[], DSpace] = request.param
    return Repository(tmp_path / "mirror", software())


@pytest.fixture
def followed(repository: Repository) -> Repository:
    """A repository whose mirror knows an update."""
    repository.follow(Mode.BASELINE)
    repository.change(one="1, again")
    repository.update()
    repository.clock.advance(hours=25)  # where the lists are is looked for once a day
    repository.follow(Mode.BASELINE)  # the lists are new
    return repository


def test_each_update_is_followed(followed: Repository) -> None:
    followed.change(two=None, four="4")
    followed.update()
    followed.follow()
    followed.update()  # which lists nothing
    followed.clock.advance(hours=1)
    followed.pull(BASE + CAPABILITY_LIST)
    assert followed.in_sync()
    followed.change(four="4, again", three=None)
    followed.update()
    followed.follow()


def test_several_updates_between_two_pulls_are_followed(followed: Repository) -> None:
    followed.change(two="2, again", four="4")
    followed.update()
    followed.change(four=None)
    followed.update()
    followed.change(three="3, again", five="5")
    followed.update()

    followed.follow()


def test_a_rebase_is_followed_by_the_changes_that_led_to_it(followed: Repository) -> None:
    followed.change(two="2, again")
    followed.update()
    followed.change(one=None)
    followed.rebase()

    followed.follow(Mode.BASELINE)  # there is a new Resource List
    followed.follow(Mode.UNCHANGED)


def test_a_new_mirror_reads_the_resource_list_and_the_updates_since(repository: Repository) -> None:
    repository.dspace.initialise(repository.known)
    for number in range(3):
        repository.change(two=f"2, version {number}", **{f"new{number}": "new"})
        repository.update()
    repository.change(new1=None)
    repository.update()

    repository.follow(Mode.BASELINE)
    repository.change(two=None)
    repository.update()
    repository.follow()


class Secured(MovingWorld, Repository):
    """A DSpace that may go behind TLS."""


def test_a_list_that_is_at_two_addresses_since_its_source_went_behind_tls_is_read_once(
    tmp_path: Path,
) -> None:
    """Read again after those that followed it, its deletion would undo what they tell."""
    repository = Secured(tmp_path / "mirror", DSpaceOfJuly())
    repository.follow(Mode.BASELINE)
    for text in ("2, again", None, "2, new"):
        repository.change(two=text)
        repository.update()
        repository.pull(BASE + CAPABILITY_LIST)
        assert repository.in_sync()
    repository.change(two=None)
    repository.update()
    assert repository.pull(BASE + CAPABILITY_LIST).deleted == 1
    repository.change(two="2, once more")
    repository.update()
    repository.change(three="3, again")
    repository.update()
    repository.move_behind_tls()

    report = repository.pull(BASE + CAPABILITY_LIST)

    assert report.state is MirrorState.IN_SYNC
    assert repository.in_sync()


def test_where_the_last_list_was_rewritten_newer_ones_are_read_as_well(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "mirror", DSpaceOfJuly())
    repository.follow(Mode.BASELINE)
    repository.change(one="1, again", two="2, again")
    repository.update()
    repository.pull(BASE + CAPABILITY_LIST)
    assert repository.in_sync()
    repository.change(three="3, again", four="4")
    repository.update()
    files = repository.dspace.documents(repository.known)
    (old,) = (path for path, data in files.items() if b"one.html</loc><lastmod>" in data)
    repository.answers[BASE + old] = Answer(body=files[old].replace(b"updated", b"created"))

    report = repository.pull(BASE + CAPABILITY_LIST)

    assert report.state is MirrorState.IN_SYNC
    assert repository.in_sync()
