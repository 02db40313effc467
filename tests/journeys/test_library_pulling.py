"""The library in a program: mirrors that are planned and pulled, trees that are published."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync import (
    Event,
    Mirror,
    MirrorState,
    Mode,
    Publisher,
    discover,
    offered_sets,
    validate,
)
from resourcesync.app.serving.applications import LateApplication
from resourcesync.errors import (
    ConfigurationError,
    NotAListError,
    PlanOutdatedError,
    ResourceSyncError,
    SourceNotFoundError,
)
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import EARLY, FILES, LATE, LATER, here


@pytest.fixture
def source() -> Iterator[TinySource]:
    with TinySource() as running:
        running.offer(FILES, at=EARLY)
        yield running


@pytest.fixture
def mirror(source: TinySource, tmp_path: Path) -> Mirror:
    return Mirror(source.url, tmp_path / "mirror")


# --- pull, plan, apply -----------------------------------------------------------------------


def test_a_pull_brings_what_the_source_lists(mirror: Mirror) -> None:
    events: list[Event] = []

    report = mirror.pull(on_event=events.append)

    assert (report.state, report.created) == (MirrorState.IN_SYNC, len(FILES))
    assert here(mirror.folder) == FILES
    assert {"source", "plan", "item", "progress"} <= {event.kind for event in events}
    assert mirror.status().state is MirrorState.IN_SYNC


def test_a_mirror_knows_its_source_the_next_time(mirror: Mirror) -> None:
    mirror.pull()

    assert Mirror(None, mirror.folder).pull().same == len(FILES)


def test_a_folder_that_is_no_mirror_is_told(tmp_path: Path) -> None:
    mirror = Mirror(None, tmp_path / "none")

    for call in (mirror.pull, mirror.plan, mirror.audit, mirror.repair, mirror.status):
        with pytest.raises(ConfigurationError, match="is not a mirror") as refused:
            call()
        assert refused.value.code == "not-a-mirror"
    assert not mirror.folder.exists()


def test_a_failure_is_in_the_report_and_not_raised(mirror: Mirror, source: TinySource) -> None:
    del source.answers["/objects/03.txt"]

    report = mirror.pull()

    assert report.state is MirrorState.BEHIND
    assert [failure.uri for failure in report.failures] == [f"{source.url}/objects/03.txt"]


def test_planning_changes_nothing(mirror: Mirror) -> None:
    with mirror.plan() as plan:
        assert plan.create == len(list(plan)) == len(FILES)
        assert plan.size == sum(map(len, FILES.values()))
        assert not mirror.folder.exists()


def test_a_plan_is_carried_out_as_it_is(mirror: Mirror, source: TinySource) -> None:
    mirror.pull()
    files = {**FILES, "/new.txt": b"new", "/objects/05.txt": b"changed"}
    del files["/objects/07.txt"]
    source.offer(files, at=LATE)

    with mirror.plan() as plan:
        told = {action.action: action.path for action in plan}
        assert here(mirror.folder) == FILES
        report = mirror.apply(plan)

    assert told == {"create": "new.txt", "update": "objects/05.txt", "delete": "objects/07.txt"}
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert here(mirror.folder) == files


def test_a_plan_is_refused_when_the_source_changed(mirror: Mirror, source: TinySource) -> None:
    plan = mirror.plan()
    source.offer({**FILES, "/objects/05.txt": b"changed"}, at=LATE)

    with pytest.raises(PlanOutdatedError) as error:
        mirror.apply(plan)

    assert error.value.code == "plan-outdated"
    assert here(mirror.folder) == {}
    assert mirror.pull().state is MirrorState.IN_SYNC


def test_a_plan_is_refused_when_the_mirror_changed(mirror: Mirror) -> None:
    plan = mirror.plan()
    mirror.pull()

    with pytest.raises(PlanOutdatedError):
        mirror.apply(plan)


def test_a_plan_outlives_a_new_list_that_says_the_same(mirror: Mirror, source: TinySource) -> None:
    plan = mirror.plan()
    source.offer(FILES, at=LATER)

    assert mirror.apply(plan).created == len(FILES)


def test_a_plan_of_another_mirror_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    plan = mirror.plan()

    with pytest.raises(ConfigurationError):
        Mirror(mirror.source, tmp_path / "other").apply(plan)


def test_what_failed_is_planned_again(mirror: Mirror, source: TinySource) -> None:
    body = source.answers.pop("/objects/03.txt")
    mirror.pull()
    source.answers["/objects/03.txt"] = body

    plan = mirror.plan()

    assert [(action.action, action.path) for action in plan] == [("create", "objects/03.txt")]
    assert mirror.apply(plan).created == 1
    assert here(mirror.folder) == FILES


def test_options_are_those_of_a_pull(source: TinySource, tmp_path: Path) -> None:
    mirror = Mirror(
        source.url, tmp_path / "m", include=["/objects/0*"], delete="never", max_delete=3
    )
    assert mirror.pull().created == 10
    source.offer({"/objects/00.txt": FILES["/objects/00.txt"]}, at=LATE)

    plan = mirror.plan()

    assert (plan.same, plan.delete, plan.keep) == (1, 0, 9)


# --- a Source of ours: Change Lists --------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "public"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(name)
    return folder


@pytest.fixture
def publisher(tree: Path) -> Iterator[Publisher]:
    late = LateApplication()
    with ServerThread(late) as server:
        publisher = Publisher(tree, url=server.uri)
        publisher.publish()
        late.application = publisher.application()
        yield publisher


def test_publishing_tells_what_it_did(publisher: Publisher, tree: Path) -> None:
    (tree / "d.txt").write_text("d")
    (tree / "a.txt").unlink()

    planned = publisher.publish(dry_run=True)
    done = publisher.publish()

    assert (planned.dry_run, planned.written) == (True, ())
    assert (done.files, done.created, done.updated, done.deleted) == (3, 1, 0, 1)
    assert done.written
    assert not done.first
    assert publisher.publish().written == ()


def test_what_is_published_is_discovered_and_read(publisher: Publisher, tree: Path) -> None:
    url = publisher.publish().url
    (tree / "d.txt").write_text("d")
    publisher.publish()

    found = discover(url)

    assert [resource.uri for resource in found.resources()] == [
        f"{url}{name}.txt" for name in "abcd"
    ]
    assert [(change.kind.value, change.uri) for change in found.changes()] == [
        ("created", f"{url}d.txt")
    ]
    moment = next(found.changes()).time
    assert list(found.changes(since=moment)) == []
    assert list(validate(f"{url}.well-known/resourcesync", live=True)) == []


def test_a_part_without_an_address_is_our_own_error(source: TinySource) -> None:
    text = source.answers["/resourcelist.xml"].body.decode()
    head, _, _ = text.partition("<url>")
    index = head.replace("urlset", "sitemapindex")
    broken = f"{index}<sitemap><loc>http://[</loc></sitemap></sitemapindex>"
    source.put("/resourcelist.xml", broken.encode(), "application/xml")

    with pytest.raises(NotAListError, match="not an address"):
        list(discover(source.url).resources())


def test_an_incremental_plan_is_carried_out_as_it_is(
    publisher: Publisher, tree: Path, tmp_path: Path
) -> None:
    mirror = Mirror(publisher.publish().url, tmp_path / "mirror")
    mirror.pull()
    (tree / "d.txt").write_text("d")
    (tree / "b.txt").write_text("longer")
    (tree / "a.txt").unlink()
    publisher.publish()

    plan = mirror.plan()
    outdated = mirror.plan()
    told = {(action.action, action.path) for action in plan}
    report = mirror.apply(plan)

    assert plan.mode is Mode.INCREMENTAL
    assert told == {("create", "d.txt"), ("update", "b.txt"), ("delete", "a.txt")}
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    with pytest.raises(PlanOutdatedError):
        mirror.apply(outdated)


def test_an_incremental_plan_that_is_refused_moves_no_cursor(
    publisher: Publisher, tree: Path, tmp_path: Path
) -> None:
    mirror = Mirror(publisher.publish().url, tmp_path / "mirror")
    mirror.pull()
    (tree / "d.txt").write_text("d")
    publisher.publish()
    plan = mirror.plan()
    (tree / "e.txt").write_text("e")
    publisher.publish()

    with pytest.raises(PlanOutdatedError):
        mirror.apply(plan)

    assert "/d.txt" not in here(mirror.folder)
    assert mirror.apply(mirror.plan()).created == 2


def test_a_source_without_change_lists_says_so(source: TinySource) -> None:
    found = discover(source.url)

    assert len(list(found.resources())) == len(FILES)
    with pytest.raises(SourceNotFoundError):
        next(found.changes())


def test_what_cannot_be_judged_is_an_error_at_the_end(source: TinySource) -> None:
    del source.answers["/resourcelist.xml"]
    findings = validate(source.url, live=True)

    with pytest.raises(ResourceSyncError):
        list(findings)


def test_a_source_of_one_set_offers_one(publisher: Publisher) -> None:
    url = publisher.publish().url

    (offered,) = offered_sets(url)

    assert discover(url, set_name=offered.uri).lists == discover(url).lists
    with pytest.raises(ConfigurationError):
        discover(url, set_name="none")
