"""A pull by workers into a shared folder, over real HTTP: what users run."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resourcesync import Event, Mirror
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.app.mirrors.stores import open_exchange, open_store
from resourcesync.cli.main import run
from resourcesync.cluster.rows import write_rows
from resourcesync.destination.cursor import Phase
from resourcesync.destination.planner import Fetch, ListedEntry
from tests.support.servers import nginx
from tests.support.storage.cursors import set_cursor

pytestmark = pytest.mark.skipif(not nginx.installed(), reason="nginx is not installed")


class Site:
    """A published tree that nginx serves; its lists have five entries each."""

    def __init__(self, root: Path, server: nginx.Nginx) -> None:
        self.root = root
        self.server = server
        self.url = server.url

    def publish(self) -> None:
        words = ["publish", str(self.root), "--url", self.url, "--max-entries", "5", "-q"]
        assert run(words) == 0

    def files(self) -> dict[str, bytes]:
        return _files(self.root / "data", self.root)

    def asked(self) -> list[str]:
        return [asked.target for asked in self.server.take() if asked.target.startswith("/data/")]


def _files(folder: Path, root: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "site"
    (root / "data").mkdir(parents=True)
    for number in range(23):
        (root / "data" / f"{number:02}.txt").write_text(f"text {number}\n")
    with nginx.serving(root, tmp_path / "nginx") as server:
        made = Site(root, server)
        made.publish()
        yield made


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as executor:
        yield executor


def test_workers_bring_all_once_and_later_what_changed(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    mirror = Mirror(site.url, f"file://{store}", state=tmp_path / "home", engine=pool)

    first = mirror.pull()
    assert (first.state, first.created, first.listed) == ("in sync", 23, 23)
    assert first.requests > 23 + 5, "each resource, and each list"
    assert first.received > sum(map(len, site.files().values()))
    assert _files(store / "data", store) == site.files()
    assert sorted(site.asked()) == [f"/data/{number:02}.txt" for number in range(23)]

    (site.root / "data" / "03.txt").write_text("other\n")
    (site.root / "data" / "04.txt").unlink()
    (site.root / "data" / "99.txt").write_text("new\n")
    site.publish()
    later = mirror.pull()
    assert (later.state, later.created, later.updated, later.deleted) == ("in sync", 1, 1, 1)
    assert _files(store / "data", store) == site.files()
    again = mirror.pull(mode="baseline")
    assert (again.state, again.same) == ("in sync", 23)
    assert sorted(site.asked()) == ["/data/03.txt", "/data/99.txt"]
    assert mirror.audit(method="hash").in_sync

    # Another machine begins with what is in the store: rows and copies.
    shutil.rmtree(tmp_path / "home")
    moved = Mirror(site.url, f"file://{store}", state=tmp_path / "elsewhere", engine=pool)
    assert (moved.pull().state, site.asked()) == ("in sync", [])


def test_an_engine_needs_a_place_that_workers_reach(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pull", site.url, str(tmp_path / "copy"), "--engine", "processes"]

    assert run(words) == 2

    said = capsys.readouterr().err
    assert "which other workers cannot reach" in said
    assert "file:///PATH" in said
    assert not (tmp_path / "copy").exists()


def test_an_engine_that_does_not_answer_changes_nothing(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    words = ["pull", site.url, f"file://{store}", "--state", str(tmp_path / "home")]

    assert run([*words, "--engine", "no-such-engine:3"]) == 2

    assert "there is no engine" in capsys.readouterr().err
    assert _files(store / "data", store) == {}


def test_packages_of_a_dump_are_unpacked_and_workers_fetch_the_rest(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    assert (
        run(["publish", str(site.root), "--dumps", "resources", "--max-package", "150", "-q"]) == 0
    )
    (site.root / "data" / "07.txt").write_text("newer than the dump\n")
    site.publish()
    store = tmp_path / "store"
    store.mkdir()
    mirror = Mirror(
        site.url, f"file://{store}", state=tmp_path / "home", engine=pool, dumps="always"
    )

    pulled = mirror.pull()

    assert (pulled.state, pulled.created) == ("in sync", 23)
    assert _files(store / "data", store) == site.files()
    asked = [asked.target for asked in site.server.take()]
    packages = [target for target in asked if target.endswith(".zip")]
    assert len(packages) == len(set(packages)) > 3, "several packages, each once"
    assert [target for target in asked if target.startswith("/data/")] == ["/data/07.txt"]
    assert mirror.audit(method="hash").in_sync
    assert not _files(store / ".resourcesync" / "units", store)


@pytest.mark.parametrize("engine", ["processes:1", ""])
def test_what_workers_left_is_taken_over_by_the_next_pull_with_or_without_any(
    site: Site, tmp_path: Path, engine: str
) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    store.mkdir()
    pull = ["pull", site.url, f"file://{store}", "--state", str(home), "-q"]
    assert run(pull) == 0
    exchange = open_exchange(open_store(f"file://{store}"), tmp_path / "here")
    with SqliteMirrorState(home / ".resourcesync" / "state.db") as state:
        copy, file = next(state.copies()), str(tmp_path / "rows")
        listed = ListedEntry(copy.uri, copy.uri, copy.path, copy.listed, 0, None, "")
        write_rows(file, [Fetch(listed, copy)])
        set_cursor(state, phase=Phase.BASELINE_DUE)
    for name in ("work/dead-000000", "done/dead-000000.begun"):
        exchange.send(name, file)
    (store / copy.path).write_text("what a worker put there\n")  # and its coordinator was killed

    assert run([*pull, "--engine", engine] if engine else pull) == 0

    assert not list(exchange.names(""))
    assert _files(store / "data", store) == site.files()


def test_a_dry_run_with_workers_leaves_nothing(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    mirror = Mirror(site.url, f"file://{store}", state=tmp_path / "home", engine=pool)

    events: list[Event] = []
    mirror.dry_run(on_event=events.append)
    assert [event.fields["create"] for event in events if event.kind == "plan"] == [23]

    assert not (tmp_path / "home").exists()
    assert not [path for path in store.rglob("*") if path.is_file() and "units" in path.parts]
