"""The library in a program: mirrors that are pulled, trees that are published."""

import doctest
import inspect
import io
import types
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Literal

import pytest

import resourcesync
from resourcesync import Mirror, Publisher, discover, validate
from resourcesync.app.serving.applications import LateApplication
from resourcesync.errors import (
    ConfigurationError,
    DocumentError,
    NotAListError,
    ResourceSyncError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import EARLY, tiny_source

source = tiny_source


def test_a_folder_that_is_no_mirror_is_told(tmp_path: Path) -> None:
    mirror = Mirror(None, tmp_path / "none")

    for call in (mirror.pull, mirror.dry_run, mirror.audit, mirror.repair, mirror.status):
        with pytest.raises(ConfigurationError, match="is not a mirror") as refused:
            call()
        assert refused.value.code == "not-a-mirror"
    assert not mirror.folder.exists()


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
    assert (done.resources, done.created, done.updated, done.deleted) == (3, 1, 0, 1)
    assert done.written
    assert not done.first
    assert publisher.publish().written == ()


@pytest.mark.founding("WWW §1", "A Python library discovers and reads lists", "`discover`")
@pytest.mark.parametrize("kind", ["append", "archive"])
def test_what_is_published_is_discovered_and_read(
    publisher: Publisher, tree: Path, kind: Literal["append", "archive"]
) -> None:
    url = publisher.publish().url
    publisher = Publisher(tree, change_lists=kind, rebase_up_to=0)
    publisher.publish()
    (tree / "a.txt").write_text("another")
    publisher.publish()

    found = discover(url)

    assert [resource.uri for resource in found.resources()] == [f"{url}{x}.txt" for x in "abc"]
    (change,) = found.changes()
    assert (change.kind.value, change.uri) == ("updated", f"{url}a.txt")
    assert list(found.changes(since=change.time)) == []
    assert list(validate(f"{url}.well-known/resourcesync", live=True, sample=9)) == []


def test_a_part_without_an_address_is_our_own_error(source: TinySource) -> None:
    head, _, _ = source.answers["/resourcelist.xml"].body.decode().partition("<url>")
    index = head.replace("urlset", "sitemapindex")
    broken = f"{index}<sitemap><loc>http://[</loc></sitemap></sitemapindex>"
    source.put("/resourcelist.xml", broken.encode(), "application/xml")

    with pytest.raises(NotAListError, match="not an address"):
        list(discover(source.url).resources())


def test_what_cannot_be_judged_is_an_error_at_the_end(source: TinySource) -> None:
    del source.answers["/resourcelist.xml"]
    findings = validate(source.url, live=True)

    with pytest.raises(ResourceSyncError):
        list(findings)


NAMED = {"/docs/": b"<p>all", "/a%20jug.txt": b"a jug", "/objects/1": b"\0"}
ADDRESS = "https://museum.example"


def test_an_address_leads_to_its_file_and_a_file_to_its_address(
    source: TinySource, tmp_path: Path
) -> None:
    source.offer(NAMED, at=EARLY)
    mirror = Mirror(source.url, tmp_path / "mirror")
    mirror.pull()
    for one in mirror.resources():
        assert mirror.path(one.uri) == one.path
        assert mirror.uri(one.path) == one.uri
    assert mirror.path(f"{mirror.source}/%61%20jug.txt") == mirror.folder / "a jug.txt"


def test_an_error_as_text_shows_no_secret_and_no_address_twice() -> None:
    secret = SourceUnavailableError("no answer", uri="https://me:pass@museum.example/a?token=1#x")
    known = DocumentError("no XML at http://museum.example/a", uri="http://museum.example/a")

    assert str(secret) == "no answer: https://museum.example/a"
    assert str(known) == known.message
    assert str(StorageError("the disk is full")) == "the disk is full"


def examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in vars(resourcesync)["__all__"]:
        item = getattr(resourcesync, name)
        if isinstance(item, type | types.FunctionType):
            module = inspect.getmodule(item)
            yield from (test for test in finder.find(item, name, module) if test.examples)


def test_the_examples_of_the_docstrings_do_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    objects = tmp_path / "public" / "objects"
    objects.mkdir(parents=True)
    (objects / "1.txt").write_text("a jug")
    (objects / "2.txt").write_text("a bowl")
    late, said = LateApplication(), io.StringIO()
    tests = sorted(examples(), key=lambda test: (test.name != "Publisher", test.name))
    assert [test.name for test in tests][:2] == ["Publisher", "Catalogue"]

    with ServerThread(late) as server:
        address = server.uri.rstrip("/")
        names = {**vars(resourcesync)}
        for name in vars(resourcesync)["__all__"]:
            names[name] = getattr(resourcesync, name)
        for test in tests:
            for example in test.examples:
                example.source = example.source.replace(ADDRESS, address)
                example.want = example.want.replace(ADDRESS, address)
            test.globs = names
            with redirect_stdout(said):
                doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
            if test.name == "Publisher":
                late.application = names["publisher"].application()

    assert said.getvalue() == ""
    assert len(tests) >= 10
