"""Worlds that the journeys start from, and a disk that is soon full."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.hostile_server import HostileServer
from tests.support.sources.scripted_source import ScriptedSource
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[PublishedSource]:
    world = World(tmp_path / "mirror")
    for number in range(40):
        world.source.put(f"objects/{number:04}.html", f"content of {number}")
    world.source.publish_file("index.html", "home")
    return world


@pytest.fixture
def source(tmp_path: Path) -> Iterator[ScriptedSource]:
    with ScriptedSource(tmp_path / "mirror") as running:
        yield running


@pytest.fixture
def far() -> Iterator[HostileServer]:
    with HostileServer("127.0.0.2") as running:
        yield running


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a small disk can only be mounted by root")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    )
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)
