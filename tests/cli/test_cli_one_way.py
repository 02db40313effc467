"""The library and the command line do the same by the same code: the calls into ``app`` agree."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from resourcesync import Mirror, Publisher
from resourcesync.cli.main import run
from tests.support.servers.tiny_source import TinySource

FACE = ("keywords", "mirror", "publisher")
"""What programs import: the command line has its own arguments and events."""

ARGUMENTS = (
    *("mirrors.sets.", "mirrors.stores.", "tables.", "configured_"),
    "mirrors.mirror_state.each_mirror",
    "mirrors.mirror_state.is_folder_of_sets",
    "mirrors.mirror_state.mirrors_of",
)
"""What a command needs to understand its arguments, such as a folder of several mirrors."""

Calls = set[str]


def calls_into_app(work: Callable[[], object]) -> Calls:
    """Return the functions of ``app``, below its face, that the work calls."""
    package = Path(sys.modules["resourcesync"].__file__ or "").parent / "app"
    found: Calls = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event != "call" or package not in path.parents or code.co_name.startswith("<"):
            return
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        if module not in FACE:
            found.add(f"{module}.{code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def assert_same(by_library: Calls, by_command: Calls) -> None:
    added = {name for name in by_command - by_library if not name.startswith(ARGUMENTS)}

    assert len(by_library) > 5
    assert by_library - by_command == set()
    assert added == set()


def test_a_pull_of_the_library_and_one_of_the_command_line_are_the_same(
    source: TinySource, here: Path
) -> None:
    by_library = calls_into_app(lambda: Mirror(source.url, here / "one").pull())
    by_command = calls_into_app(lambda: run(["pull", source.url, "two", "-q"]))

    assert_same(by_library, by_command)


def test_an_audit_of_the_library_and_one_of_the_command_line_are_the_same(
    source: TinySource, here: Path
) -> None:
    Mirror(source.url, here / "one").pull()
    by_library = calls_into_app(lambda: Mirror(None, here / "one").audit())
    by_command = calls_into_app(lambda: run(["audit", "one", "-q"]))

    assert_same(by_library, by_command)


@pytest.mark.usefixtures("here")
def test_a_publication_of_the_library_and_one_of_the_command_line_are_the_same(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a")
    url = "https://museum.example/"

    by_library = calls_into_app(lambda: Publisher(tmp_path / "one", url=url).publish())
    by_command = calls_into_app(lambda: run(["publish", str(tmp_path / "two"), "--url", url, "-q"]))

    assert_same(by_library, by_command)
