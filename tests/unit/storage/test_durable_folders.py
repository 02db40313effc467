"""What is made in a folder that was not there outlives a power cut: each name is synced."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resourcesync.app.mirrors import stores
from resourcesync.app.mirrors.stores import Home
from resourcesync.own_files import make_folder, sync_folder
from resourcesync.push_state.stores import FileHub
from resourcesync_oai import repository_state as oai


def hub(folder: Path) -> None:
    FileHub(folder / "hub.db").close()


def harvest(folder: Path) -> None:
    with oai.RepositoryState(folder):
        pass


def home(folder: Path) -> None:
    stores.bind(Home(folder, f"file://{folder.parent.parent}/copies"))


@pytest.mark.parametrize("make", [make_folder, hub, harvest, home])
def test_the_names_of_all_folders_that_were_made_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    synced: set[int] = set()
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    make(tmp_path / "a/b")
    assert {tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino} <= synced
    if make is home:
        assert (tmp_path / "a/b/.resourcesync/store").stat().st_ino in synced


def test_a_file_system_that_cannot_sync_a_folder_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 22

    def refuses(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuses)
    make_folder(tmp_path / "a/b")
    assert (tmp_path / "a/b").is_dir()
    number = 5
    with pytest.raises(OSError, match="Input/output"):
        sync_folder(0)
