"""The page of small programs is true: each is run as written, and accepted by type checkers."""

import asyncio
import fcntl
import importlib.util
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Mirror, MirrorState
from resourcesync.app.serving.applications import LateApplication
from resourcesync.server.uvicorn_server import ServerThread

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "thirty-lines.md"
PROGRAM = ROOT / "tests" / "typing" / "api.py"
ADDRESS = "https://museum.example"
MOST_WORDS = 1_200


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def write_row(name: str, text: str, changed: int) -> None:
    with closing(sqlite3.connect("museum.db")) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS page (name PRIMARY KEY, text, changed)")
        db.execute("REPLACE INTO page VALUES (?, ?, ?)", (name, text, changed))


def delete_row(name: str) -> None:
    with closing(sqlite3.connect("museum.db")) as db, db:
        db.execute("DELETE FROM page WHERE name = ?", (name,))


class Page:
    """The programs of the page, run one after the other in one place."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.names: dict[str, Any] = {"__name__": "example"}

    def run(self, number: int) -> None:
        code = blocks()[number].replace(ADDRESS, self.address)
        exec(compile(code, f"{PAGE.name}, program {number + 1}", "exec"), self.names)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """Run the first two programs, and serve what they make."""
    monkeypatch.chdir(tmp_path)
    write_row("jug", "a jug", 1_700_000_000)
    write_row("bowl", "a bowl", 1_700_000_000)
    late = LateApplication()
    with ServerThread(late) as server:
        page = Page(server.uri.rstrip("/"))
        page.run(0)
        page.names["publish"]("museum.db")
        page.run(1)
        late.application = page.names["application"]()
        yield page


def test_rows_of_a_database_are_published_served_and_mirrored(page: Page) -> None:
    page.run(2)
    names = page.names

    assert names["report"].state is MirrorState.IN_SYNC
    assert names["total"] == len("a jug") + len("a bowl")
    assert names["path"].read_text() == "a jug"
    assert names["uri"] == f"{page.address}/pages/jug"


def test_an_index_follows_the_rows(page: Page) -> None:
    page.run(3)
    names, stop, index = page.names, threading.Event(), page.names["index"]
    rounds: list[dict[str, bytes]] = []

    class Pause(threading.Event):
        """Changes the rows at the end of the first round, and ends the second."""

        def wait(self, timeout: float | None = None) -> bool:
            del timeout
            rounds.append(dict(index))
            if len(rounds) == 1:
                write_row("jug", "a blue jug", 1_700_000_001)
                delete_row("bowl")
                names["publish"]("museum.db")
            else:
                self.set()
            return True

    stop = Pause()
    asyncio.run(names["follow"](Mirror(page.address, "museum"), 60, stop))

    base = f"{page.address}/pages"
    assert rounds == [
        {f"{base}/jug": b"a jug", f"{base}/bowl": b"a bowl"},
        {f"{base}/jug": b"a blue jug"},
    ]


class Rounds(threading.Event):
    """Runs the steps, one after each round, and ends the loop after the last one.

    Args:
        steps: What happens between two rounds.
    """

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self.steps = iter(steps)

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        step = next(self.steps, None)
        if step is None:
            self.set()
        else:
            step()
        return True


def test_following_goes_on_past_a_lock_and_a_broken_list(
    page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.run(3)
    names = page.names
    with ExitStack() as locks:

        def lock() -> None:
            file = locks.enter_context((tmp_path / "museum/.resourcesync/lock").open("rb"))
            fcntl.flock(file, fcntl.LOCK_EX)

        def unlock_and_break() -> None:
            locks.close()
            for path in (tmp_path / "lists").rglob("*"):
                if path.is_file():
                    path.write_text("<html><title>down for maintenance</title></html>")

        rounds = Rounds(lock, unlock_and_break)
        asyncio.run(names["follow"](Mirror(page.address, "museum"), 60, rounds))

    assert len(names["index"]) == 2
    assert capsys.readouterr().out.count("later again: ") == 2


def test_following_starts_over_when_the_mirror_was_made_again(page: Page) -> None:
    page.run(3)
    names, index = page.names, page.names["index"]

    def make_again() -> None:
        shutil.rmtree("museum")
        index["stale"] = b"of the mirror before"

    asyncio.run(names["follow"](Mirror(page.address, "museum"), 60, Rounds(make_again)))

    assert {uri.rpartition("/")[2] for uri in index} == {"jug", "bowl"}


def test_following_goes_on_past_the_end_of_the_time_of_a_pull(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    page.run(3)
    mirror = Mirror(page.address, "museum", max_duration=0.000_001)

    asyncio.run(page.names["follow"](mirror, 60, Rounds(Mirror(page.address, "museum").pull)))

    assert capsys.readouterr().out.count("later again: the time limit") == 1
    assert len(page.names["index"]) == 2


def test_the_page_is_short_and_each_program_has_thirty_lines() -> None:
    assert len(PAGE.read_text("utf-8").split()) <= MOST_WORDS
    assert len(blocks()) == 4
    for block in blocks():
        code = [line for line in block.splitlines() if line.strip()]
        assert len(code) <= 31


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project of a user: the programs of the page, and one that uses every name."""
    folder = tmp_path_factory.mktemp("project")
    for number, block in enumerate(blocks()):
        (folder / f"program_{number + 1}.py").write_text(block)
    shutil.copy(PROGRAM, folder / "every_name.py")
    return folder


def test_mypy_accepts_a_project_that_uses_the_library(project: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: requirements/dev.txt has it")
    words = ["--strict", "--no-error-summary", "--follow-imports=silent", "--config-file="]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *words, "--cache-dir", project / "cache", "."],
        check=False,
        cwd=project,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
    )

    assert (ran.stdout, ran.returncode) == ("", 0)


def test_pyright_accepts_a_project_that_uses_the_library(project: Path) -> None:
    node, found = shutil.which("node"), importlib.util.find_spec("pyright")
    if node is None or found is None or found.origin is None:
        pytest.skip("there is no node, or no pyright: the dependency group package has it")
    program = Path(found.origin).parent / "dist" / "index.js"
    if not program.is_file():
        pytest.skip("this pyright would download itself")
    settings = {
        "include": ["*.py"],
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
    }
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    ran = subprocess.run(
        [node, program, "--pythonpath", sys.executable],
        check=False,
        cwd=project,
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stdout
