"""A real file system that takes A for a: exFAT on a loop device, where a test may mount one."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.run import program
from tests.support.servers.tiny_source import TinySource

_SIZE = 32 << 20
_LONG = "n" * 255
NAMES = (
    *("README", "readme", "ReadMe", "Docs/a", "docs/b", "docs/A", "DOCS/c/d", "a", "A/b"),
    *("caf%C3%A9.html", "cafe%CC%81.html", "CAF%C3%89.html", "Stra%C3%9Fe", "strasse"),
    *("a:b", "star*", "con.txt", "AUX", "x.", "q?a=1", "q?A=1", _LONG, "%C3%A9" * 120),
    *("RESOUR~1/state.db", ".ResourceSync/state.db", ".RESOURCESYNC/x"),
)


@pytest.fixture
def folding(tmp_path: Path) -> Iterator[Path]:
    tools = [shutil.which(name) for name in ("mkfs.exfat", "mount.exfat-fuse", "losetup")]
    if os.geteuid() or not all(tools) or not os.path.exists("/dev/fuse"):
        pytest.skip("needs root, /dev/fuse, exfatprogs and exfat-fuse")
    image, place = tmp_path / "image", tmp_path / "folding"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(_SIZE)
    made, loop = program("mkfs.exfat", image), program("losetup", "-f", "--show", image)
    device = loop.stdout.strip()
    try:
        if made.code or loop.code or program("mount.exfat-fuse", device, place).code:
            pytest.skip("no file system can be mounted here")
        yield place
        program("umount", place)
    finally:
        program("losetup", "-d", device)


def test_names_that_are_one_there_all_find_a_place(
    folding: Path, source: TinySource, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies = {f"/{name}": f"content of {name}".encode() for name in NAMES}
    mirror = folding / "mirror"
    source.offer({path: bodies[path] for path in [*bodies][::2]})
    assert run(["pull", source.url, str(mirror)]) == 0

    source.offer(bodies)  # what is here may have to yield to what comes now
    assert run(["pull", str(mirror)]) == 0

    assert run(["audit", str(mirror)]) == 0
    assert run(["pull", str(mirror), "--mode", "baseline"]) == 0
    assert run(["audit", str(mirror)]) == 0, capsys.readouterr().out
    held = {path.read_bytes() for path in mirror.rglob("*") if path.is_file()}
    assert held >= {*bodies.values()}
    assert not [*(mirror / ".resourcesync/quarantine").iterdir()]
    assert (mirror / "README").read_bytes() == b"content of README"
