"""One pull of a Source that misbehaves in every way at once; then its healing."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from tests.support.commands.run import Ran, resourcesync
from tests.support.sources.torture import TortureSource

BOUND = 100.0
"""Seconds: far above what the run takes, far below what one of the ways alone could cost."""
NETWORK = ("-o", "timeout=1s", "-o", "retries=1")


@dataclass(frozen=True, slots=True)
class Tortured:
    """A mirror after its first pull, in a folder of its own with a canary beside it."""

    source: TortureSource
    home: Path
    first: Ran
    seconds: float

    @property
    def mirror(self) -> Path:
        return self.home / "in" / "mirror"

    def pull(self, *words: str) -> Ran:
        return resourcesync("pull", *words, self.mirror, "--json", *NETWORK, cwd=self.home)

    def files(self) -> dict[str, bytes]:
        with MirrorFolder(self.mirror, SystemClock()) as folder:
            assert folder.state is not None
            owners = {copy.path: copy.uri for copy in folder.state.copies()}
        found = (path for path in self.mirror.rglob("*") if path.is_file())
        paths = {path.relative_to(self.mirror).as_posix(): path for path in found}
        return {
            owners.get(name, name): path.read_bytes()
            for name, path in paths.items()
            if not name.startswith(".resourcesync/")
        }


@pytest.fixture(scope="module")
def tortured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tortured]:
    home = tmp_path_factory.mktemp("torture")
    (home / "in").mkdir()
    (home / "canary.txt").write_text("canary")
    with TortureSource() as source:
        began = time.monotonic()
        mirror = home / "in" / "mirror"
        first = resourcesync("pull", source.uri, mirror, "--json", *NETWORK, cwd=home)
        yield Tortured(source, home, first, time.monotonic() - began)


def failures(ran: Ran) -> dict[str, tuple[str, str]]:
    return {
        item["uri"]: (item["code"], item["reason"])
        for item in ran.events("item")
        if item["status"] == "error"
    }


@pytest.mark.timeout(300)
def test_a_source_that_misbehaves_in_every_way_is_left_in_bounded_time(tortured: Tortured) -> None:
    assert len(tortured.source.ways) + len(tortured.source.refused) >= 70
    assert tortured.first.code == 3, tortured.first.said[-3_000:]
    assert tortured.seconds < BOUND


def test_the_counts_of_a_tortured_run_add_up(tortured: Tortured) -> None:
    source, end = tortured.source, tortured.first.end
    broken = [way for way in source.ways if way.code]

    listed = end["listed"]
    assert sum(filter(None, listed.values())) == len(source.listed) + len(source.refused)
    assert listed["applied"] == end["resources"] == len(source.expected)
    assert listed["pending"] == end["failed"] == len(broken) > 40
    assert listed["refused"] == len(source.refused) >= 15
    assert (listed["unchanged"], listed["absent"], listed["skipped"]) == (0, 0, 0)
    assert end["fetched"]["verified"] == len(source.expected)
    assert end["state"] == "behind"
    assert end["exit"] == 3


def test_each_resource_that_can_be_had_is_here_byte_for_byte(tortured: Tortured) -> None:
    assert tortured.files() == tortured.source.expected


def test_nothing_outside_a_tortured_mirror_is_touched(tortured: Tortured) -> None:
    assert sorted(path.name for path in tortured.home.iterdir() if path.name[0] != ".") == [
        "canary.txt",
        "in",
    ]
    assert (tortured.home / "canary.txt").read_text() == "canary"
    assert [path.name for path in (tortured.home / "in").iterdir()] == ["mirror"]
    assert not [path for path in tortured.mirror.rglob("*") if path.is_symlink()]
    assert tortured.source.forbidden.connections == 0
    assert not list((tortured.mirror / ".resourcesync" / "tmp").iterdir())


def test_each_way_to_misbehave_is_explained_by_why(
    tortured: Tortured, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {}
    for way in tortured.source.ways:
        uri = tortured.source.uri_of(way)
        code = run(["why", str(tortured.mirror), uri, "--offline", "--json"])
        end = json.loads(capsys.readouterr().out.splitlines()[-1])
        pending = end["pending"] or {"code": "", "reason": ""}
        told[way.name] = (code, pending["code"], pending["reason"])

    for way in tortured.source.ways:
        code, known, reason = told[way.name]
        assert code == (1 if way.code else 0), way.name
        assert known == way.code, way.name
        assert way.words in reason, way.name
        assert bool(way.words) == bool(way.code), f"{way.name}: nothing is asked of its reason"


def test_each_entry_that_cannot_be_used_is_explained_by_why(
    tortured: Tortured, capsys: pytest.CaptureFixture[str]
) -> None:
    for entry in tortured.source.refused:
        assert run(["why", str(tortured.mirror), entry.known_as, "--offline", "--json"]) == 1
        end = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert end["verdict"] == "refused", entry.uri
        assert end["refused"]["code"] == entry.code, entry.uri
        assert len(end["refused"]["reason"]) > 10, entry.uri


@pytest.mark.timeout(300)
def test_a_second_pull_is_as_the_first_and_a_healed_source_is_in_sync(tortured: Tortured) -> None:
    source, before = tortured.source, tortured.files()
    second = tortured.pull()

    assert second.code == 3
    listed = tortured.first.end["listed"]
    assert second.end["listed"] == {**listed, "applied": 0, "unchanged": len(source.expected)}
    assert failures(second).keys() == failures(tortured.first).keys()
    assert tortured.files() == before

    source.heal()
    healed = tortured.pull()

    assert healed.code == 0, healed.said[-3_000:]
    assert healed.end["state"] == "in sync"
    assert healed.end["listed"]["pending"] == 0
    assert tortured.files() == source.listed
    assert resourcesync("audit", tortured.mirror, cwd=tortured.home).code == 0
