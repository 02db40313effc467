"""Lists that contradict each other: a mirror with workers comes to the same."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.main import run
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.mirror_state.rows import Fixity, StateTransaction
from tests.support.servers.tiny_source import TinySource
from tests.support.worlds.contradicting_source import (
    LISTED_AT,
    ONE,
    OTHERS,
    ContradictingSource,
    change,
)
from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.shared_workers import SharedWorkers, Steady
from tests.support.worlds.world import World

pytestmark = pytest.mark.usefixtures("without_fsync")

URI = BASE + ONE
LATER = "2026-01-02T12:00:00Z"


@pytest.fixture
def worlds(tmp_path: Path) -> list[World[ContradictingSource]]:
    workers = SharedWorkers(Steady())
    homes = FolderHome(tmp_path / "plain"), FolderHome(tmp_path / "shared", workers)
    made = [World(home, ContradictingSource()) for home in homes]
    for world in made:
        world.source.begin()
        assert world.pull().state is MirrorState.IN_SYNC
    return made


def summary(report: RunReport) -> tuple[Any, ...]:
    done = (report.created, report.updated, report.deleted, report.held, report.retained.unlisted)
    return (
        report.state,
        report.listed.total,
        report.failed,
        report.listed.pending,
        report.listed.refused,
        *done,
    )


REFUSED = "<url><loc>http://elsewhere.example/a</loc></url>"
ENTRIES = {
    "no change": (),
    "updated": (change("updated", "second"),),
    "without a time": (change("updated", "second", ""),),
    "to the same": (change("updated", "first", ""),),
    "deleted": (change("deleted"),),
    "deleted without a time": (change("deleted", time=""),),
    "deleted later": (change("deleted", time=LATER),),
    "updated later": (change("updated", "second", LATER),),
    "first unknown, then later": (change("deleted", time=""), change("created", "second", LATER)),
    "updated, then deleted": (change("updated", "second", ""), change("deleted", time="")),
    "of another": (change("deleted", name="none.html"), change("updated", "x", name="0.html")),
}


@pytest.mark.parametrize("entries", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize(
    ("served", "listed"),
    [("first", "first"), ("second", "first"), ("third", "first"), (None, "first"), ("first", None)],
)
def test_workers_come_to_the_same_as_a_plain_mirror(
    worlds: list[World[ContradictingSource]],
    served: str | None,
    listed: str | None,
    entries: tuple[str, ...],
) -> None:
    told: list[list[object]] = []
    for world in worlds:
        world.source.serve_one(served)
        world.source.list(LISTED_AT, listed, *entries)
        found: list[object] = []
        for _ in range(2):
            world.clock.advance(seconds=3_600)
            found += [summary(world.pull()), world.files(), world.audit().in_sync]
        told.append(found)

    assert told[0] == told[1]


@pytest.mark.parametrize("served", ["first", None])
@pytest.mark.parametrize("policy", ["never", "signalled", "auto"])
def test_policies_of_deletion_hold_for_workers_too(
    worlds: list[World[ContradictingSource]], policy: str, served: str | None
) -> None:
    told: list[object] = []
    for world in worlds:
        world.source.serve_one(served)
        world.source.list(LISTED_AT, "first", change("deleted"))
        world.clock.advance(seconds=3_600)
        told.append((summary(world.pull(delete=policy)), world.files(), world.audit().in_sync))

    assert told[0] == told[1]


def test_an_old_deletion_beside_an_entry_that_cannot_be_used_is_not_obeyed_by_workers(
    worlds: list[World[ContradictingSource]],
) -> None:
    for world in worlds:
        world.source.list(LISTED_AT, None, change("deleted"))
        document = world.source.published.documents.open("resourcesync/resourcelist.xml")
        assert document is not None
        text = document.read().decode().replace("</urlset>", f"{REFUSED}</urlset>")
        world.source.published.documents.write("resourcesync/resourcelist.xml", [text.encode()])
        world.clock.advance(seconds=3_600)

        assert world.pull().state is MirrorState.BEHIND
        assert URI in world.files()


@pytest.mark.parametrize("served", ["first", "second", None])
def test_what_could_not_be_asked_for_is_decided_later_by_workers_too(
    worlds: list[World[ContradictingSource]], served: str | None
) -> None:
    told: list[object] = []
    for world in worlds:
        world.network.answers[URI] = Answer(status=500)
        world.source.list(LISTED_AT, "first", change("updated" if served else "deleted", "second"))
        world.clock.advance(seconds=3_600)
        first = summary(world.pull())
        del world.network.answers[URI]
        world.source.serve_one(served)
        world.clock.advance(seconds=3_600)
        told.append((first, summary(world.pull()), world.files(), world.audit().in_sync))

    assert told[0] == told[1]


def test_what_a_person_brought_back_is_called_so_by_workers_too(
    worlds: list[World[ContradictingSource]],
) -> None:
    for world in worlds:
        with world.destination() as destination:
            state = destination.read_only_session().state
            copy = state.copy(URI)
            assert copy is not None
            state.commit(StateTransaction(installed=[copy._replace(fixity=Fixity.RESTORED)]))
        world.source.list(LISTED_AT, None, change("deleted", time=LATER))
        world.clock.advance(seconds=3_600)

        dry, foreseen = world.pull(dry_run=True), world.told("plan")
        report = world.pull()

        assert (report.state, report.retained.restored, report.deleted) == (
            MirrorState.IN_SYNC,
            1,
            0,
        )
        assert (foreseen[0]["delete"], dry.retained.unlisted) == (0, 0)


def test_a_dry_run_says_what_an_earlier_pull_left_to_delete(
    worlds: list[World[ContradictingSource]],
) -> None:
    for world in worlds:
        world.source.list(LISTED_AT, None, change("deleted", time=LATER))
        world.clock.advance(seconds=3_600)
        assert world.pull(delete="never").retained.unlisted == 1
        world.pull(mode="baseline", dry_run=True, delete="signalled")
        foreseen = world.told("plan")

        report = world.pull(mode="baseline", delete="signalled")

        assert foreseen[0]["delete"] == report.deleted == 1


def test_real_workers_ask_the_source_where_its_lists_contradict_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = tmp_path / "mirror"
    with TinySource() as source:
        begin(source)
        words = ["pull", source.url, str(mirror), "-o", "engine=processes:1", "-q"]
        assert run(words) == 0
        source.put(f"/{ONE}", b"first")
        contradict(source, change("deleted"))

        assert run(words) == 3, "the Source gives what a change calls deleted"
        assert (mirror / ONE).read_bytes() == b"first"
        assert run(["audit", str(mirror), "-q"]) == 1

        contradict(source, change("updated", "second"))
        assert run(words) == 0
        assert (mirror / ONE).read_bytes() == b"first"
        del source.answers[f"/{ONE}"]
        contradict(source, change("deleted", time=""))
        assert run(words) == 0
        assert not (mirror / ONE).exists()
        assert run(["audit", str(mirror), "-q"]) == 0
    capsys.readouterr()


def begin(source: TinySource) -> None:
    """Offer all by a Resource List, and an empty Change List."""
    resources = {f"/{name}": text.encode() for name, text in {**OTHERS, ONE: "first"}.items()}
    source.offer(resources, at="2026-01-01T00:00:00Z")
    contradict(source, at="2026-01-01T00:00:00Z")


def contradict(source: TinySource, *entries: str, at: str = LISTED_AT) -> None:
    """Offer the Resource List of some moment, and a Change List of these entries."""
    resources = {**OTHERS, ONE: "first"}
    listed = [source.entry(f"/{name}", text.encode()) for name, text in resources.items()]
    source.offer_entries(listed, at=at)
    pointers = ("resourcelist", "changelist")
    source.put_document(
        "/capabilitylist.xml",
        '<rs:md capability="capabilitylist"/>',
        [source.pointer(f"/{pointer}.xml", pointer) for pointer in pointers],
    )
    here = [entry.replace(BASE, f"{source.url}/") for entry in entries]
    head = '<rs:md capability="changelist" from="2025-12-30T00:00:00Z"/>'
    source.put_document("/changelist.xml", head, here)
