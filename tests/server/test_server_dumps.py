"""Packages that are made while they are sent."""

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from resourcesync.adapters.catalogue import FileChangeLog
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import LateApplication, PublishedTree, find_tree
from resourcesync.cli.main import run
from resourcesync.documents import read
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.model.capabilities import Package
from resourcesync.model.resources import Resource
from resourcesync.ports.catalogue import CatalogueSnapshot
from resourcesync.server import dumps
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.source.publication_options import PublishRequest
from tests.support.servers.asgi import Answer, ask

BASE = "http://h.example/"
DUMP = "/resourcesync/dump/resourcedump.xml"


@pytest.fixture
def tree(tmp_path: Path) -> PublishedTree:
    tree = tmp_path / "tree"
    for number in range(25):
        (tree / f"{number % 3}").mkdir(parents=True, exist_ok=True)
        (tree / f"{number % 3}" / f"{number}.txt").write_bytes(os.urandom(100) * number)
    publish_tree(tree, {"url": BASE}, clock=SystemClock())
    return find_tree(tree)


@pytest.fixture
def app(tree: PublishedTree) -> ASGIApp:
    return served(tree)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dumps, "PACKAGE_SIZE", PackageSize(max_entries=10))


def served(tree: PublishedTree) -> ASGIApp:
    clock = SystemClock()
    return tree.application(clock, mounts={tree.dumps_path: tree.dumps(clock)})


def packages(app: ASGIApp) -> list[str]:
    """Return the paths of the packages that the dump lists."""
    document = read(io.BytesIO(ask(app, DUMP).body), uri="dump")
    assert document.header.at is not None
    entries = [entry for entry in document.entries() if isinstance(entry, Package)]
    assert all(entry.at == document.header.at for entry in entries)
    return [entry.uri.removeprefix(BASE.rstrip("/")) for entry in entries]


def contents(answer: Answer) -> dict[str, bytes]:
    """Return what a package holds, by URI, as its manifest says."""
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.testzip() is None
        manifest = read(io.BytesIO(archive.read("manifest.xml")), uri="manifest")
        found = {}
        for entry in manifest.entries():
            assert isinstance(entry, Resource)
            data = archive.read(entry.path[1:])
            assert entry.digests[0].value == hashlib.sha256(data).hexdigest()
            found[entry.uri] = data
    return found


def test_the_packages_hold_all_that_is_published_and_are_the_same_each_time(
    tree: PublishedTree, app: ASGIApp, small: None
) -> None:
    paths = packages(app)

    first = [ask(app, path) for path in paths]
    again = [ask(served(tree), path) for path in paths]

    assert len(paths) == 3
    held = {uri: data for answer in first for uri, data in contents(answer).items()}
    files = tree.root.glob("?/*.txt")
    assert held == {BASE + str(p.relative_to(tree.root)): p.read_bytes() for p in files}
    assert [answer.body for answer in first] == [answer.body for answer in again]
    assert [answer.fields["etag"] for answer in first] == [a.fields["etag"] for a in again]
    assert len({answer.fields["etag"] for answer in first}) == 3
    assert first[0].fields["content-type"] == "application/zip"


def test_a_package_that_is_known_is_not_made_again(app: ASGIApp) -> None:
    [path] = packages(app)
    known = {"if-none-match": ask(app, path).fields["etag"]}

    assert ask(app, path, fields=known).status == 304
    head = ask(app, path, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert ask(app, DUMP, fields={"if-none-match": ask(app, DUMP).fields["etag"]}).status == 304


def test_a_package_of_another_moment_is_gone(tree: PublishedTree, app: ASGIApp) -> None:
    [before] = packages(app)
    (tree.root / "new.txt").write_text("new")
    publish_tree(tree.root, {}, clock=SystemClock())

    assert ask(app, before).status == 404
    [after] = packages(app)
    assert BASE + "new.txt" in contents(ask(app, after))
    for path in (after.replace("-1.", "-2."), after.replace("-1.", "-0."), DUMP + "x"):
        assert ask(app, path).status == 404
    assert ask(app, after, method="POST").status == 405


@pytest.mark.parametrize("way", ["altered", "longer", "gone"])
def test_what_is_no_longer_as_listed_makes_no_package(
    tree: PublishedTree, app: ASGIApp, way: str
) -> None:
    [path] = packages(app)
    file = tree.root / "2" / "23.txt"
    data = file.read_bytes()
    file.write_bytes({"altered": data[::-1], "longer": data + b"x"}.get(way, b""))
    if way == "gone":
        file.unlink()

    answer = ask(app, path)

    assert answer.error is not None or answer.status == 503
    assert not zipfile.is_zipfile(io.BytesIO(answer.body))
    file.write_bytes(data)
    assert zipfile.is_zipfile(io.BytesIO(ask(app, path).body))


def test_more_than_may_be_made_at_a_time_are_refused_and_all_is_released(
    tree: PublishedTree,
) -> None:
    (tree.root / "big.bin").write_bytes(os.urandom(2_000_000))
    publish_tree(tree.root, {}, clock=SystemClock())
    closed, app = (
        tree.application(
            SystemClock(), mounts={tree.dumps_path: tree.dumps(SystemClock(), most=most)}
        )
        for most in (0, 1)
    )
    [path] = packages(app)

    refused = ask(closed, path)
    left = ask(app, path, gone_after=1)

    assert refused.status == 503
    assert refused.fields["retry-after"]
    assert len(left.body) < 2_000_000
    assert zipfile.is_zipfile(io.BytesIO(ask(app, path).body))


def test_a_package_that_takes_too_long_is_cut(
    app: ASGIApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    [path] = packages(app)
    monkeypatch.setattr(dumps, "MAX_PACKAGE_SECONDS", 0.0)

    assert ask(app, path).status == 503


@pytest.mark.parametrize("most", ["MAX_RESOURCES", "MAX_ENTRIES"])
def test_too_large_a_set_is_refused_with_what_to_do(
    app: ASGIApp, small: None, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    monkeypatch.setattr(dumps, most, 2)

    answer = ask(app, DUMP)

    assert answer.status == 503
    assert b"too many" in answer.body


def test_an_empty_set_has_an_empty_dump(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    asked = PublishRequest(allow_empty=True)
    publish_tree(tmp_path / "tree", {"url": BASE}, clock=SystemClock(), asked=asked)

    assert packages(served(find_tree(tmp_path / "tree"))) == []


def test_a_catalogue_that_moves_on_between_plan_and_package_makes_none(
    tree: PublishedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    real = FileChangeLog.snapshot

    class Later:
        def __init__(self, snapshot: CatalogueSnapshot) -> None:
            self.at = replace_year(snapshot)

    def replace_year(snapshot: CatalogueSnapshot) -> object:
        return snapshot.at.replace(year=2030)

    @contextmanager
    def look(self: FileChangeLog) -> Iterator[CatalogueSnapshot]:
        looks.append(1)
        with real(self) as snapshot:
            yield Later(snapshot) if len(looks) > 2 else snapshot  # type: ignore[misc]

    monkeypatch.setattr(FileChangeLog, "snapshot", look)
    app = served(tree)
    [path] = packages(app)

    assert ask(app, path).status == 503


def test_a_mirror_begins_from_such_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(5):
        (tree / f"{number}.txt").write_text(f"text {number}")
    late = LateApplication()
    with ServerThread(late) as server:
        publish_tree(tree, {"url": server.uri}, clock=SystemClock())
        late.application = served(find_tree(tree))
        code = run(["pull", f"{server.uri.rstrip('/')}{DUMP}", "mirror", "-q"])

    assert code == 0
    copies = {path.name: path.read_text() for path in (tmp_path / "mirror").rglob("*.txt")}
    assert copies == {f"{number}.txt": f"text {number}" for number in range(5)}
