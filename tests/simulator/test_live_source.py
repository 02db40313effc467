"""``simulate --live`` as the resync-simulator has it, for our pull and for the peer's."""

import importlib.util
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resourcesync.cli.main import run as command
from resourcesync.documents import reader
from resourcesync.model.resources import Change, Resource
from resourcesync.simulator import live_server, resync_simulator
from resourcesync.simulator.live import LiveSettings, LiveSource
from tests.support.commands.run import files_of, run, script
from tests.support.in_memory import ManualClock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BASE = "http://127.0.0.1:8888/"
YAML = """\
source:
  name: A small one
  number_of_resources: 20
  change_delay: 0.02
  event_types: [create, update, delete]
  average_payload: 300
  max_events: 25
  stats_interval: 10
resource_list_builder:
  class: DynamicResourceListBuilder
  uri_path: resourcelist.xml
changememory:
  class: DynamicChangeList
  uri_path: changelist.xml
  max_changes: 1000
"""


def changes(source: LiveSource, now: datetime) -> list[Change]:
    from io import BytesIO

    document = reader.read_stream(BytesIO(source.answer("changelist.xml", now).body), uri=BASE)
    found = list(document.entries())
    assert all(isinstance(item, Change) for item in found)
    return [item for item in found if isinstance(item, Change)]


def test_what_is_due_happens_at_its_own_time_and_the_oldest_is_forgotten() -> None:
    source = LiveSource(LiveSettings(change_delay=2, max_changes=5), BASE, 1, NOON)

    assert changes(source, NOON) == []
    found = changes(source, NOON + timedelta(seconds=21))

    assert [change.time for change in found] == [
        NOON + timedelta(seconds=s) for s in (12, 14, 16, 18, 20)
    ]


def test_the_lists_tell_what_is_there_and_the_same_seed_tells_the_same() -> None:
    from io import BytesIO

    later = NOON + timedelta(minutes=10)
    source, other = (LiveSource(LiveSettings(), BASE, 7, NOON) for _ in range(2))
    listed = reader.read_stream(BytesIO(source.answer("resourcelist.xml", later).body), uri=BASE)

    for resource in listed.entries():
        assert isinstance(resource, Resource)
        assert len(source.answer(resource.uri.removeprefix(BASE), later).body) == resource.length
    assert source.answer("resourcelist.xml", later) == other.answer("resourcelist.xml", later)


@pytest.mark.parametrize(
    "path", ["resources/0", "resources/x", "resources/²", "etc/passwd", "../a"]
)
def test_what_is_not_there_is_not_found(path: str) -> None:
    assert LiveSource(LiveSettings(), BASE, 1, NOON).answer(path, NOON).status == 404


def test_our_pull_and_the_peers_end_with_what_the_source_has(tmp_path: Path) -> None:
    config = tmp_path / "default.yaml"
    config.write_text(YAML)
    configured, clock = resync_simulator.read_configuration(config), ManualClock(NOON)
    assert configured.ignored == ()
    with live_server.serve_live(
        configured.settings, live_server.LiveAddress(), seed=3, clock=clock
    ) as serving:
        uri = serving.uri
        assert command(["pull", uri, str(tmp_path / "ours"), "-q"]) == 0
        peer = _has_peer()
        if peer:
            _peer(tmp_path, uri, "--baseline")
        clock.advance(seconds=0.6)  # all 25 events
        assert command(["pull", str(tmp_path / "ours"), "-q"]) == 0
        assert command(["audit", str(tmp_path / "ours"), "-q"]) == 0
        if peer:
            _peer(tmp_path, uri, "--incremental")
            _peer(tmp_path, uri, "--baseline", "--delete")

    ours = {
        Path(name).name.removesuffix("!9"): body
        for name, body in files_of(tmp_path / "ours").items()
    }
    assert len(ours) > 10
    if peer:
        theirs = files_of(tmp_path / "theirs")
        assert {Path(name).name: body for name, body in theirs.items()} == ours


def _has_peer() -> bool:
    return sys.version_info < (3, 12) and importlib.util.find_spec("resync") is not None


def _peer(home: Path, uri: str, *words: str) -> None:
    ran = run(script("resync-sync"), *words, uri, "theirs", cwd=home)
    assert "Error" not in ran.said, ran.said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("source: [", "is not YAML"),
        ("- source", "the file must be a table"),
        ("publisher: {}", "it has no table source"),
        ("{source: , changememory: 5}", "changememory must be a table"),
        ("source: 5", "source must be a table"),
        ("source: {change_delay: 0}", "source.change_delay is 0, but must be seconds"),
        ("source: {change_delay: .inf}", "source.change_delay is inf"),
        ("source: {event_types: [explode]}", "must be a list of some of create, update, delete"),
        ("source: {event_types: create}", "source.event_types is 'create'"),
        ("source: {number_of_resorces: 3}", "unknown key source.number_of_resorces"),
        ("source: {number_of_resources: -1}", "a whole number from 0 to 1,000,000"),
        ("{source: {}, sorce: {}}", "unknown key sorce"),
        ("{source: {}, changememory: {uri_path: resourcelist.xml}}", "both lists are at"),
        ("{source: {}, changememory: {uri_path: resources/3}}", "of a list is used already"),
        ("{source: {}, changememory: {uri_path: capabilitylist.xml}}", "of a list is used already"),
        ("{source: {}, changememory: {class: Magic}}", "DynamicChangeList or StaticChangeList"),
        ("{source: {}, changememory: {max_changes: 0}}", "changememory.max_changes is 0"),
    ],
)
def test_a_configuration_with_a_mistake_is_refused_and_the_mistake_named(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)

    assert command(["simulate", str(path), "--live"]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())
