"""Others accept our packages, and we read theirs."""

import hashlib
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from resync.dump import Dump
from resync.resource import Resource as TheirResource
from resync.resource_list import ResourceList

from resourcesync.documents.packages.reader import open_package
from resourcesync.documents.packages.zip_writer import write_package
from tests.support.documents.packages import RESOURCES, resource

FILES = {"a.txt": b"one " * 100, "b.bin": bytes(range(256)) * 2000, "e": b""}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    entries = [resource(f"http://h/{name}", data, f"/d/{name}") for name, data in FILES.items()]
    path = tmp_path / "ours.zip"
    with path.open("wb") as file:
        for piece in write_package(RESOURCES, entries, lambda item: [FILES[item.path[3:]]]):
            file.write(piece)
    return path


def test_other_programs_take_our_packages(package: Path) -> None:
    with zipfile.ZipFile(package) as peer:
        assert peer.testzip() is None
        assert {file: peer.read(f"d/{file}") for file in FILES} == FILES
    if shutil.which("unzip") is None:
        pytest.skip("Info-ZIP is not installed")
    done = subprocess.run(["unzip", "-t", package], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "No errors detected" in done.stdout


@pytest.mark.filterwarnings("ignore:os.path.commonprefix")  # of resync, on Python 3.15
@pytest.mark.parametrize("compress", [True, False])
def test_the_dumps_of_resync_are_read(tmp_path: Path, compress: bool) -> None:
    theirs = ResourceList()
    for name, data in FILES.items():
        path = tmp_path / name
        path.write_bytes(data)
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        theirs.add(TheirResource(uri=f"http://h/{name}", path=str(path), md5=digest))
    Dump(resources=theirs, compress=compress).write(basename=f"{tmp_path}/dump_")

    with (tmp_path / "dump_00000.zip").open("rb") as file:
        reader = open_package(file, uri="http://h/dump_00000.zip")
        found = {member.entry.uri: b"".join(member.chunks()) for member in reader.members()}
        unlisted = reader.unlisted

    assert found == {f"http://h/{name}": data for name, data in FILES.items()}
    assert unlisted == []
