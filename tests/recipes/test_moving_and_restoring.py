"""The pages on moves, lost disks, upgrades and deletions are typed, and do what they say."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of, free_port, running, script
from tests.support.waiting import wait_until

COUNT = 60
SYSTEMCTL = f"""\
case $1 in
  start) {script("resourcesync")} watch >log 2>&1 & echo $! >pid ;;
  stop) kill "$(cat pid)"; while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.02; done ;;
esac
"""


class Place:
    """The folders that the pages name, a Source in one of them, and its mirror."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree, self.mirror = folder, folder / "srv/museum", folder / "museum"
        for name in ("srv/museum/objects", "srv/mirror", "backup"):
            (folder / name).mkdir(parents=True)
        for number in range(COUNT):
            self.write(number, "a jug")
        self.address = ""

    def write(self, number: int, text: str) -> None:
        (self.tree / f"objects/{number:04}.txt").write_text(text)

    def remove(self, *numbers: int) -> None:
        for number in numbers:
            (self.tree / f"objects/{number:04}.txt").unlink()
        self.type("resourcesync publish srv/museum")

    def page(self, name: str) -> TypedPage:
        there = {f"/{name}/": f"{self.folder}/{name}/" for name in ("srv", "backup")}
        hosts = ("https://museum.example/", "https://www.museum.example/")
        return TypedPage(
            RECIPES.parent / name, self.folder, there | dict.fromkeys(hosts, self.address)
        )

    def type(self, command: str) -> str:
        ran = self.page("install.md").type(command)
        assert ran.code == 0, ran.said
        return ran.stdout

    def is_equal(self, mirror: Path) -> bool:
        return files_of(mirror) == files_of(self.tree)

    @contextmanager
    def served(self) -> Iterator[None]:
        port = free_port()
        self.address = f"http://127.0.0.1:{port}/"
        words = ("serve", self.tree, "--bind", f"127.0.0.1:{port}", "--url", self.address)
        with running(script("resourcesync"), *words, port=port, cwd=self.folder):
            yield


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    place.type("resourcesync publish srv/museum --url http://127.0.0.1:1/")
    with place.served():
        place.type(f"resourcesync publish srv/museum --url {place.address}")
        place.type(f"resourcesync pull {place.address} museum")
        yield place


def test_a_source_moves_and_its_mirror_follows(place: Place) -> None:
    with place.served():
        page = place.page("follow-a-move.md")
        own, look, follow = page.blocks("sh")
        place.type(own)

        assert "would create 0, update 0, delete 0" in page.succeed(look)
        assert f"{COUNT} resources, nothing changed" in page.succeed(follow)
        assert "nothing changed" in place.type("resourcesync pull museum")


def test_a_mirror_moves_and_fetches_nothing_again(place: Place) -> None:
    page = place.page("move-a-mirror.md")
    *_, said = map(page.succeed, page.blocks("sh"))

    assert f"{COUNT} resources, nothing changed" in said
    assert place.is_equal(place.folder / "srv/mirror/museum")


def test_a_lost_disk_is_replaced_by_its_backup(place: Place) -> None:
    page = place.page("back-up-and-restore.md")
    backup, restore, save, back, anew = page.blocks("sh")
    page.succeed(backup + save)
    place.write(0, "changed after the backup")
    page.succeed("resourcesync publish srv/museum; resourcesync pull museum")

    shutil.rmtree(place.mirror)
    (place.folder / "backup/museum/objects/0001.txt").unlink()
    assert "1 created" in page.succeed(restore)
    assert place.is_equal(place.mirror)

    shutil.rmtree(place.tree / ".resourcesync")
    (place.tree / "objects/0000.txt").unlink()
    assert "1 deleted" in page.succeed(back)
    place.type("resourcesync pull museum")
    assert place.is_equal(place.mirror)

    shutil.rmtree(place.tree / ".resourcesync")
    (place.tree / "objects/0001.txt").unlink()
    assert page.type("resourcesync publish srv/museum").code == 8
    page.succeed(anew)
    place.type("resourcesync pull museum")
    assert place.is_equal(place.mirror)


def test_an_upgrade_loses_no_change(place: Place) -> None:
    for name, text in {"systemctl": SYSTEMCTL, "pip": ""}.items():
        (place.folder / name).write_text(f"#!/bin/sh\n{text}")
        (place.folder / name).chmod(0o755)
    (place.folder / "resourcesync.toml").write_text(
        f'[mirror.museum]\nsource = "{place.address}"\ndest = "museum"\nevery = "1s"\n'
    )
    page = place.page("upgrade.md")
    stop, install, start = (f"PATH=.:$PATH\n{block}" for block in page.blocks("sh"))
    page.succeed("./systemctl start")
    wait_until(lambda: "Watching" in (place.folder / "log").read_text())

    page.succeed(stop + install)
    assert "Stopped   cleanly" in (place.folder / "log").read_text()
    place.write(0, "changed meanwhile")
    place.type("resourcesync publish srv/museum")
    assert "100 %" in page.succeed(start)

    wait_until(lambda: place.is_equal(place.mirror))
    page.succeed(stop)


def test_held_deletions_are_released(place: Place) -> None:
    gone = COUNT * 9 // 20
    place.remove(*range(gone))
    page = place.page("release-held-deletions.md")
    assert page.type("resourcesync pull museum").code == 7
    look, release = page.blocks("sh")

    assert page.type(look).stdout.count("- /objects/") == gone
    assert f"{gone} deleted" in page.succeed(release)
    assert place.is_equal(place.mirror)


def test_a_deleted_file_is_restored(place: Place) -> None:
    place.remove(1, 2)
    place.type("resourcesync pull museum")
    page = place.page("restore-a-deleted-file.md")
    listed, restored, emptied = page.blocks("sh")

    assert "/objects/0001.txt" in page.succeed(listed)
    page.succeed(restored)
    assert (place.mirror / "objects/0001.txt").read_text() == "a jug"
    page.succeed(emptied)
