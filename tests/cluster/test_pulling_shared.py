"""A pull by workers into a shared folder, over real HTTP: what users run."""

import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from resourcesync import Mirror
from resourcesync.adapters.stored_files import StoredExchange
from resourcesync.app.mirrors import mirror_state, work_units
from resourcesync.app.mirrors.stores import open_store
from resourcesync.app.mirrors.table_mirror import TableInStore
from resourcesync.cli.main import run
from resourcesync.destination.cursor import Phase
from resourcesync.destination.planner import as_unknown
from resourcesync.ports.mirror import StateTransaction
from resourcesync.ports.tables import ListedRow, WorkRow
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


def test_one_entry_of_one_part_that_workers_cannot_use_keeps_what_the_list_lacks(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    mirror = Mirror(site.url, f"file://{store}", state=tmp_path / "home", engine=pool)
    assert mirror.pull().created == 23
    now = f'at="{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"'
    lists = [path for path in site.root.rglob("*.xml") if "/data/03.txt" in path.read_text()]
    for path in (site.root / "resourcesync").rglob("resourcelist*.xml"):
        path.write_text(re.sub(r'at="[^"]*"', now, path.read_text()))
    for path in lists:
        text = re.sub(r"<url>\s*<loc>[^<]*/data/04.txt</loc>.*?</url>", "", path.read_text())
        path.write_text(re.sub(r"http:[^<]*(?=/data/03)", "http://elsewhere.example", text))

    report = mirror.pull(mode="baseline")

    assert (report.refused, report.deleted, report.held) == (1, 0, 0)
    assert report.state == "behind"
    assert _files(store / "data", store) == site.files()


def test_a_part_that_workers_read_is_asked_for_again_though_its_index_stays_as_it_is(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    store, lists = tmp_path / "store", site.root / "resourcesync"
    store.mkdir()
    index = next(
        path for path in lists.rglob("resourcelist*.xml") if "<sitemap>" in path.read_text()
    )
    text = index.read_text()
    index.write_text(re.sub(r"</loc>.*?</sitemap>", "</loc></sitemap>", text, flags=re.DOTALL))
    mirror = Mirror(site.url, f"file://{store}", state=tmp_path / "home", engine=pool)
    assert mirror.pull().created == 23
    assert mirror.pull().mode == "unchanged"
    (site.root / "data" / "03.txt").write_text("written anew, and longer\n")
    part = next(
        path for path in lists.rglob("resourcelist*.xml") if "/data/03.txt" in path.read_text()
    )
    at = f'at="{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"'
    entry = r"(/data/03.txt</loc>).*?</url>"
    text = re.sub(r'at="[^"]*"', at, part.read_text(), count=1)
    part.write_text(re.sub(entry, r'\1<rs:md length="25"/></url>', text, flags=re.DOTALL))

    assert mirror.pull().mode == "baseline"

    assert _files(store / "data", store) == site.files()
    assert mirror.pull().mode == "unchanged"


def test_rows_move_into_a_table_and_back(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    store.mkdir()
    pull = ["pull", site.url, f"file://{store}", "--state", str(home)]
    assert run([*pull, "-q"]) == 0
    assert run([*pull, "--engine", "processes:1"]) == 2
    assert f"resourcesync tables make file://{store}" in capsys.readouterr().err
    before = _told(["audit", str(home), "--method", "hash"], capsys)

    made = _told(["tables", "make", str(home)], capsys)
    assert (made["copies"], made["parts"]) == (23, 1)
    told = json.loads((store / ".resourcesync" / "copies" / "copies.json").read_text())
    assert [part["rows"] for part in told["parts"]] == [23]
    assert _told(["tables", "show", str(home)], capsys)["copies"] == 23
    after = _told(["audit", str(home), "--method", "hash"], capsys)
    assert after == before
    assert run([*pull, "-q"]) == 0

    assert _told(["tables", "unmake", str(home)], capsys)["parts"] == 0
    assert not list((store / ".resourcesync" / "copies").glob("*.parquet"))
    assert run(["tables", "show", str(home)]) == 2
    assert run([*pull, "-q"]) == 0
    assert len(site.asked()) == 23, "nothing was fetched twice"


_VARYING = {"seconds", "audit", "pull", "run", "time", "since", "proven_since"}


def _told(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Run a command; return what its last event tells, but for what is never the same."""
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    end: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return {key: value for key, value in end.items() if key not in _VARYING}


def test_every_command_finds_the_copies_of_a_table(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, home, out = tmp_path / "store", tmp_path / "home", tmp_path / "out"
    store.mkdir()
    assert run(["pull", site.url, f"file://{store}", "--state", str(home), "-q"]) == 0
    first = f"{site.url}/data/00.txt"

    def told() -> list[dict[str, object]]:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return [
            *(_told(["audit", str(home), "--method", name], capsys) for name in ("lists", "hash")),
            _told(["publish", str(home), "--url", "http://a.example", "--out", f"{out}"], capsys),
            _told(["changes", str(home)], capsys),
            _told(["why", str(home), first], capsys),
            _told(["status", str(home)], capsys),
            _told(["pull", str(home), "--dry-run"], capsys),
        ]

    without = told()
    assert run(["tables", "make", str(home), "-q"]) == 0
    assert told() == without
    assert [fields.get("copies", fields.get("resources")) for fields in without[2:3]] == [23]


def test_a_reader_of_a_table_sees_one_moment_while_the_next_one_is_made(
    site: Site, tmp_path: Path
) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    store.mkdir()
    pull = ["pull", site.url, f"file://{store}", "--state", str(home), "-q"]
    assert run([*pull, "--engine", "processes:1"]) == 0
    memory = home / ".resourcesync" / "state.db"

    with (
        mirror_state.open_snapshot(memory) as reader,
        mirror_state.open_state(memory, read_only=True) as follower,
    ):
        assert follower.change_bounds()[1] == 23
        (site.root / "data" / "00.txt").write_text("another text\n")
        (site.root / "data" / "22.txt").unlink()
        site.publish()
        assert run(pull) == 0
        seen, count = list(reader.copies()), reader.count()
        assert follower.change_bounds()[1] == 25, "who follows the changes sees the new ones"

    assert (len(seen), count) == (23, 23)
    assert {copy.length for copy in seen} == {len("text 1\n"), len("text 10\n")}
    with mirror_state.open_state(memory, read_only=True) as after:
        assert after.count() == 22


def test_what_a_table_cannot_do_is_refused_and_a_trash_is_brought_back_without_one(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, home = tmp_path / "store", str(tmp_path / "home")
    store.mkdir()
    pull = ["pull", site.url, f"file://{store}", "--state", home]
    assert run([*pull, "--engine", "processes:1"]) == 0
    gone = site.root / "data" / "22.txt"
    body = gone.read_bytes()
    gone.unlink()
    site.publish()
    assert run(pull) == 0

    assert run([*pull, "--prune", "--include", "/data/*"]) == 2
    assert run(["trash", "restore", home, "--all"]) == 2
    assert "resourcesync tables unmake" in capsys.readouterr().err
    assert run(["trash", "list", home]) == 0
    assert run(["tables", "unmake", home]) == 0
    assert run(["trash", "restore", home, "--all"]) == 0
    assert run(["tables", "make", home]) == 0
    for more in ([], ["--mode", "baseline", "--delete", "absent"]):
        assert run([*pull, *more]) == 0
        assert (store / "data/22.txt").read_bytes() == body
    gone.write_bytes(body)
    site.publish()
    assert run([*pull, "--mode", "baseline"]) == 0
    gone.unlink()
    site.publish()
    assert run([*pull, "--mode", "baseline", "--delete", "absent"]) == 0
    assert not (store / "data/22.txt").exists()


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


def test_packages_of_a_dump_are_units_where_most_is_wanted(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    assert run(["dump", str(site.root), "--max-package", "150", "-q"]) == 0
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
    assert not list((store / ".resourcesync" / "units").rglob("*.parquet"))


def test_the_memory_in_the_store_finds_its_table_there(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    store, own = tmp_path / "store", tmp_path / "home" / ".resourcesync"
    store.mkdir()
    Mirror(site.url, f"file://{store}", state=tmp_path / "home", engine=pool).pull()
    for _ in range(3):  # runs that were killed before they put their memory there
        with mirror_state.open_table_state(own / "state.db") as state:
            state.commit(StateTransaction(suspect=[as_unknown(next(state.copies()))]))
            TableInStore(state, open_store(f"file://{store}"), own).fold()
    shutil.rmtree(tmp_path / "home")

    moved = Mirror(site.url, f"file://{store}", state=tmp_path / "elsewhere", engine=pool)
    assert moved.pull(mode="baseline").state == "in sync"
    assert run(["tables", "unmake", str(tmp_path / "elsewhere"), "-q"]) == 0
    shutil.rmtree(tmp_path / "elsewhere")
    again = Mirror(site.url, f"file://{store}", state=tmp_path / "third")
    assert (again.pull().state, len(site.asked())) == ("in sync", 23)


def test_what_workers_left_is_taken_over_before_there_is_no_table(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    store, own = tmp_path / "store", tmp_path / "home" / ".resourcesync"
    store.mkdir()
    Mirror(site.url, f"file://{store}", state=tmp_path / "home", engine=pool).pull()
    exchange = StoredExchange(open_store(f"file://{store}"), work_units.EXCHANGE, tmp_path / "here")
    with mirror_state.open_table_state(own / "state.db") as state:
        copy, file = next(state.copies()), str(tmp_path / "rows")
        listed = ListedRow(copy.uri, copy.uri, copy.path, copy.listed, 0, None, "", "")
        mirror_state.tables_of(own).write_work(file, [WorkRow(listed, copy)])
        set_cursor(state, phase=Phase.BASELINE_DUE)
    for name in ("work/dead-000000", "done/dead-000000.begun"):
        exchange.send(name, file)
    (store / copy.path).write_text("what a worker put there\n")  # and its coordinator was killed

    assert run(["tables", "unmake", str(tmp_path / "home"), "-q"]) == 0
    assert not list(exchange.names(""))
    pulled = Mirror(site.url, f"file://{store}", state=tmp_path / "home").pull()

    assert pulled.state == "in sync"
    assert _files(store / "data", store) == site.files()


def test_a_dry_run_with_workers_leaves_nothing(
    site: Site, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    mirror = Mirror(site.url, f"file://{store}", state=tmp_path / "home", engine=pool)

    with mirror.plan() as plan:
        assert plan.create == 23

    assert not (tmp_path / "home").exists()
    assert not [path for path in store.rglob("*") if path.is_file() and path.suffix == ".parquet"]
    assert not (store / ".resourcesync" / "copies").exists()
