"""The library in a program: the resources of a mirror, their files, and what ``help`` shows."""

import doctest
import inspect
import io
import types
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import resourcesync
from resourcesync import Mirror
from resourcesync.app.serving.applications import LateApplication
from resourcesync.errors import (
    DocumentError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import EARLY

FILES = {"/docs/": b"<p>all", "/a%20jug.txt": b"a jug", "/objects/1": b"\0"}
ADDRESS = "https://museum.example"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    with TinySource() as source:
        source.offer(FILES, at=EARLY)
        mirror = Mirror(source.url, tmp_path / "mirror")
        mirror.pull()
        yield mirror


# --- resources and their files -------------------------------------------------------------------


def test_an_address_leads_to_its_file_and_a_file_to_its_address(mirror: Mirror) -> None:
    for one in mirror.resources():
        assert mirror.path(one.uri) == one.path
        assert mirror.uri(one.path) == one.uri
    assert mirror.path(f"{mirror.source}/%61%20jug.txt") == mirror.folder / "a jug.txt"


# --- errors and help -----------------------------------------------------------------------------


def test_an_error_as_text_shows_no_secret_and_no_address_twice() -> None:
    secret = SourceUnavailableError("no answer", uri="https://me:pass@museum.example/a?token=1#x")
    known = DocumentError("no XML at http://museum.example/a", uri="http://museum.example/a")

    assert str(secret) == "no answer: https://museum.example/a"
    assert str(known) == known.message
    assert str(StorageError("the disk is full")) == "the disk is full"


# --- examples ------------------------------------------------------------------------------------


def examples() -> Iterator[doctest.DocTest]:
    """Yield the examples in the docstrings of the public names."""
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
