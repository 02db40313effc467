"""What is held goes when the Source itself says, of each resource, that it is gone."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import ResourceMissingError
from resourcesync.model.settings import Limit
from tests.journeys.test_pulling_absence import RESOURCE_LIST, entry, offer, world_of
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import killed
from tests.support.worlds.world import World


def holding(folder: Path, here: int, gone: int, *, hours: int = 25) -> World[PublishedSource]:
    """Return a world of which the first resources, by number, are gone and held for a day."""
    world = world_of(folder, here)
    for number in range(gone):
        world.source.remove(f"{number}.html")
    offer(world, *(entry(f"{BASE}{n}.html") for n in range(gone, here)))
    assert world.pull(mode="baseline").held == gone
    world.clock.advance(hours=hours)
    return world


@pytest.mark.parametrize("status", [404, 410, 403, 500])
def test_a_server_that_says_so_of_everything_proves_nothing(tmp_path: Path, status: int) -> None:
    world = holding(tmp_path / "mirror", 60, 30)
    for number in range(60):
        world.network.answers[f"{BASE}{number}.html"] = Answer(status=status)

    report = world.pull()

    assert (report.deleted, report.held, len(world.asked_resources())) == (0, 30, 3)


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_only_gone_is_gone(tmp_path: Path, status: int) -> None:
    world = holding(tmp_path / "mirror", 60, 30)
    for number in range(30):
        world.network.answers[f"{BASE}{number}.html"] = Answer(status=status)

    report = world.pull()

    assert (report.deleted, report.held) == (0, 30)


def test_of_an_empty_list_nothing_is_believed(tmp_path: Path) -> None:
    world = holding(tmp_path / "mirror", 60, 60)

    report = world.pull()

    assert (report.deleted, report.held, world.asked_resources()) == (0, 60, [])


def test_a_number_that_a_person_gave_is_never_exceeded(tmp_path: Path) -> None:
    world = holding(tmp_path / "mirror", 60, 30)

    report = world.pull(max_delete=Limit(number=0))

    assert (report.deleted, report.held, world.asked_resources()) == (0, 30, [])


def test_a_run_asks_for_some_hundreds(tmp_path: Path) -> None:
    world = holding(tmp_path / "mirror", 1_400, 700)

    reports = [world.pull() for _ in range(3)]

    assert [report.deleted for report in reports] == [300, 300, 100]
    assert [report.held for report in reports] == [400, 100, 0]
    assert world.in_sync()


def test_nothing_is_deleted_or_proven_while_the_source_lists_what_cannot_be_used(
    tmp_path: Path,
) -> None:
    world = world_of(tmp_path / "mirror", 20)
    for number in range(15):
        world.source.remove(f"{number}.html")
    world.source.publish_file("20.html", "moved")
    changes = BASE + "resourcesync/changelist.xml"
    body = world.source.honest(changes).body.replace(
        BASE.encode() + b"20", b"http://www.example/20"
    )
    world.network.answers[changes] = Answer(body=body)
    assert world.pull().held == 15
    world.clock.advance(hours=25)

    report = world.pull()

    assert (report.deleted, report.held, world.asked_resources()) == (0, 15, [])
    assert RESOURCE_LIST not in world.network.answers


FAR = "http://zoo.example/"  # its addresses come after the others in order


def holding_far(folder: Path) -> World[PublishedSource]:
    """Return a world of two servers; of what the far one has, half is gone and held for a day."""
    world = world_of(folder, 60)
    for number in range(60):
        world.source.originals.put(f"{FAR}{number}.html", b"far away")
    near = [entry(f"{BASE}{number}.html") for number in range(60)]
    offer(world, *near, *(entry(f"{FAR}{number}.html") for number in range(60)))
    scope = Filters(allow_origins=("http://zoo.example",))
    assert world.pull(mode="baseline", filters=scope).state is MirrorState.IN_SYNC
    for number in range(30):
        world.source.originals.remove(f"{FAR}{number}.html")
    offer(world, *near, *(entry(f"{FAR}{number}.html") for number in range(30, 60)))
    assert world.pull(mode="baseline").held == 30
    world.clock.advance(hours=25)
    return world


@pytest.mark.parametrize("there", [[], [30, 31, 32]])
def test_a_server_proves_nothing_for_another_one(tmp_path: Path, there: list[int]) -> None:
    world = holding_far(tmp_path / "mirror")
    for number in range(60):
        if number not in there:
            world.network.answers[f"{FAR}{number}.html"] = Answer(status=404)

    report = world.pull()

    proven = 30 if there else 0
    assert (report.deleted, report.held) == (proven, 30 - proven)
    assert not [name for name in world.asked_resources() if not name.startswith(FAR)]


def test_a_server_that_fails_takes_no_proof_from_another_one(tmp_path: Path) -> None:
    world = holding_far(tmp_path / "mirror")
    for number in range(60):
        world.network.answers[f"{BASE}{number}.html"] = Answer(status=404)

    report = world.pull()

    assert (report.deleted, report.held) == (30, 0)


@pytest.mark.parametrize(
    ("to", "proves"),
    [
        ("login", False),
        ("{}.html/", False),
        ("{}.html?missing", False),
        ("{}.html", True),
        ("old/../{}.html", False),
        ("%zz", False),
    ],
)
def test_where_an_address_leads_to_another_that_is_missing_nothing_is_proven(
    tmp_path: Path, to: str, proves: bool
) -> None:
    """A site that sends all it does not know to a page that is not there has not deleted them."""
    world = holding(tmp_path / "mirror", 60, 30)
    for number in range(30):
        last = BASE + to.format(number, number)
        world.network.answers[f"{BASE}{number}.html"] = ResourceMissingError(
            "404", uri=last, status=404
        )

    report = world.pull()

    assert (report.deleted, report.held) == ((30, 0) if proves else (0, 30))


def test_a_run_killed_while_it_deletes_what_is_proven_does_not_let_the_rest_go(
    tmp_path: Path,
) -> None:
    """The rest alone would be few enough to go at once; it counts with what went before."""
    deaths: list[int] = []
    for writes in range(40):
        world = holding(tmp_path / str(writes), 60, 30)
        by_name = sorted(range(30), key=str)
        for number in by_name[10:]:
            world.network.answers[f"{BASE}{number}.html"] = Answer(status=403)
        if not killed(world, writes):
            break
        deaths.append(60 - len(world.home.files_on_disk()))

        reports = [world.pull() for _ in range(4)]  # each goes on where the last one stopped

        assert {report.state for report in reports} == {MirrorState.STOPPED}
        assert (reports[-1].held, len(world.files())) == (20, 50)
    else:
        pytest.fail("no run came to its end")
    assert {0, 10} <= set(deaths), "some were killed before the files went, and some after"
