"""What a command loads before it works: each module is paid for at every start."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.started import python
from tests.support.servers.listening import static

LOADED = (
    "import sys; from resourcesync.cli.main import run; code = run(sys.argv[1:]);"
    "print(*sys.modules); sys.exit(code)"
)
PROFILED = (
    "import resourcesync, sys, threading; from resourcesync.cli.main import run; ran = set();"
    "note = lambda frame, *_: ran.add(frame.f_code); threading.setprofile(note);"
    "sys.setprofile(note); code = run(sys.argv[1:]); sys.setprofile(None);"
    "home = resourcesync.__file__.removesuffix('__init__.py');"
    "print(sum(c.co_filename.startswith(home) and c.co_flags & 2 and c.co_name[0] != '<'"
    " for c in list(ran)), *sys.modules); sys.exit(code)"
)
"""Prints how many functions of this package ran, and the modules; lambdas are not counted."""
measured = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="its library has other parts, and classes more functions"
)
SLOW = frozenset({"asyncio", "email", "http", "protego", "rich", "ssl", "starlette", "tomllib"})
"""Libraries that no short command needs."""
EARLIER = 1_700_000_000


@pytest.fixture
def source(tmp_path: Path) -> Iterator[str]:
    public = tmp_path / "public"
    public.mkdir()
    (public / "a.txt").write_text("a")
    with static(public) as origin:
        url = f"{origin}/"
        assert run(["publish", str(public), "--url", url, "-q"]) == 0
        for document in public.rglob("*.xml"):  # a document of this second may change within it
            os.utime(document, (EARLIER, EARLIER))
        os.utime(public / ".well-known" / "resourcesync", (EARLIER, EARLIER))
        yield url


@pytest.fixture
def mirror(source: str, tmp_path: Path) -> Path:
    for _ in range(2):  # the second stores the validators of all documents
        assert run(["pull", source, str(tmp_path / "mirror"), "-q"]) == 0
    return tmp_path / "mirror"


def loaded_by(*arguments: str, home: Path, code: str = LOADED) -> set[str]:
    ran = python(code, *arguments, home=home, measured=False)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.splitlines()[-1].split())


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "resourcesync"}


@measured
def test_a_status_loads_nothing_but_what_reads_a_state(mirror: Path) -> None:
    modules = loaded_by("status", str(mirror), home=mirror.parent)

    assert modules & (SLOW | {"dataclasses", "hashlib", "pycurl", "socket", "tempfile"}) == set()
    assert {name for name in own(modules) if ".http" in name or ".documents" in name} == set()
    assert len(own(modules)) <= 61


def test_a_pull_with_nothing_new_loads_no_reader_of_documents(mirror: Path) -> None:
    modules = loaded_by("pull", str(mirror), home=mirror.parent)

    assert modules & SLOW == set()
    assert {name for name in own(modules) if ".documents" in name} == set()
    assert len(own(modules)) <= 99


@measured
def test_a_first_pull_walks_the_shortest_way(source: str, tmp_path: Path) -> None:
    said = loaded_by("pull", source, str(tmp_path / "new"), "-q", home=tmp_path, code=PROFILED)
    functions = next(int(word) for word in said if word.isdecimal())

    assert said & (SLOW | {"importlib.metadata"}) == set(), "it searches for no plug-ins"
    assert len(own(said)) <= 110
    assert 500 < functions <= 1_000


def test_a_publication_loads_nothing_of_mirrors(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    modules = loaded_by("publish", ".", "--url", "http://h.example", "-q", home=tmp_path)

    assert modules & SLOW == set()
    assert not [name for name in modules if ".mirrors" in name or ".planner" in name]
    assert len(own(modules)) <= 112
