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
    *("mirror_sets.", "mirror_stores.", "tables.", "configured_"),
    "mirror_home.each_mirror",
    "mirror_home.is_folder_of_sets",
    "mirror_home.mirrors_of",
)
"""What a command needs to understand its arguments, such as a folder of several mirrors."""
CHECKS = {"fetchers.checked_network"}
"""What checks the arguments of a program; those of a command are checked as they are read."""

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


URL = "https://museum.example/"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda source: Mirror(source, Path("one")).pull(), ["pull", "URL", "two"]),
        (lambda source: Mirror(None, Path("made")).audit(), ["audit", "made"]),
        (lambda source: Publisher(Path("a"), url=URL).publish(), ["publish", "b", "--url", URL]),
    ],
    ids=["a pull", "an audit", "a publication"],
)
def test_the_library_and_the_command_line_do_the_same(
    source: TinySource, work: Callable[[str], object], words: list[str]
) -> None:
    Mirror(source.url, Path("made")).pull()
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "a.txt").write_text("a")
    command = [source.url if word == "URL" else word for word in words]

    by_library = calls_into_app(lambda: work(source.url))
    by_command = calls_into_app(lambda: run([*command, "-q"]))

    added = {name for name in by_command - by_library if not name.startswith(ARGUMENTS)}
    assert len(by_library) > 5
    assert by_library - by_command <= CHECKS
    assert added == set()
