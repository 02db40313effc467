"""Versions and patches from the Source's command to the mirror's copy, over a real connection."""

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving import applications
from resourcesync.app.serving.published_tree import any_settings
from resourcesync.cli.main import run
from resourcesync.source.publication_settings import CATALOGUE
from tests.support.commands.command_line import Said, rows

PUBLIC = Path("public")
CHANGES = PUBLIC / "resourcesync/changelist.xml"
PADDING = [f"value {number}" for number in range(400)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    PUBLIC.mkdir()
    write(1)
    return tmp_path


@pytest.fixture
def said(capsys: Said) -> Said:
    return capsys


@pytest.fixture
def server() -> Iterator[str]:
    late = applications.LateApplication()
    with applications.ServerThread(late) as running:
        assert run(["publish", "public", "--url", running.uri, "-q", *KEEPING]) == 0
        late.application = applications.find_tree(PUBLIC).application(SystemClock())
        yield running.uri


KEEPING = ("--versions", "-o", "patches=true")
_TIMES = iter(range(1_700_000_000, 1_800_000_000))


def write(number: int) -> None:
    texts = {
        "a.json": json.dumps({"number": number, "padding": PADDING}, indent=1),
        "b.xml": f"<r><number>{number}</number>{''.join(f'<p>{name}</p>' for name in PADDING)}</r>",
        "c.txt": f"{number} {PADDING}",
    }
    for name, text in texts.items():
        (PUBLIC / name).write_text(text)
        modified = next(_TIMES)
        os.utime(PUBLIC / name, (modified, modified))


def pulled(said: Said, *more: str) -> dict[str, Any]:
    said.readouterr()
    run(["pull", *more, "copy", "--json"])
    return rows(said)[-1]


def is_same() -> bool:
    names = ("a.json", "b.xml", "c.txt")
    return all((PUBLIC / name).read_bytes() == (Path("copy") / name).read_bytes() for name in names)


@pytest.mark.founding("D-Lib §3", "JSON is updated by JSON Patch", "`-o patches=true`, `pull`")
def test_what_changed_comes_as_patches_that_are_far_smaller(server: str, said: Said) -> None:
    first = end = pulled(said, server)
    for number in (2, 3):
        write(number)
        assert run(["publish", "public", "-q"]) == 0
        end = pulled(said, server)

        assert (end["updated"], end["fetched"]["patched"], end["fetched"]["unpatched"]) == (3, 1, 0)
        assert end["fetched"]["verified"] == 3
        assert is_same()
    a, b, c = ((PUBLIC / name).stat().st_size for name in ("a.json", "b.xml", "c.txt"))
    lists = sum(path.stat().st_size for path in PUBLIC.rglob("resourcesync/*.xml"))
    assert int(str(first["received_bytes"])) > a + b + c
    assert int(str(end["received_bytes"])) < b + c + lists + a // 2
    assert run(["audit", "copy"]) == 0


@pytest.mark.founding(
    "0.9 §8.5",
    "A Source links each entry to the version of its moment",
    "`publish --versions`, `serve`",
)
def test_a_version_that_is_no_longer_there_comes_from_its_memento(server: str, said: Said) -> None:
    listed = {name: (PUBLIC / name).read_bytes() for name in ("a.json", "b.xml", "c.txt")}
    write(2)

    end = pulled(said, server)

    assert (end["state"], end["created"], end["fetched"]["verified"]) == ("in sync", 3, 3)
    assert {name: (Path("copy") / name).read_bytes() for name in listed} == listed
    assert run(["publish", "public", "-q"]) == 0
    assert pulled(said, server)["state"] == "in sync"
    assert is_same()


@pytest.mark.founding(
    "0.9 §5.1", "A Source packs its resources, and later the changes", "`publish --dumps all`"
)
@pytest.mark.founding("0.9 §8.3", "A Change Dump packs patches too", "`publish --dumps changes`")
def test_every_version_is_packed_with_its_patch_and_the_judge_finds_nothing(
    server: str, said: Said
) -> None:
    assert run(["publish", "public", "--dumps", "all", "-q"]) == 0
    for number in (2, 3):
        write(number)
        assert run(["publish", "public", "-q"]) == 0
    assert run(["publish", "public", "--dumps", "all", "-q"]) == 0

    with zipfile.ZipFile(PUBLIC / "resourcesync/changedump-000001.zip") as package:
        bodies = [package.read(name) for name in package.namelist() if name.endswith("a.json")]
        patches = [package.read(name) for name in package.namelist() if "patches" in name]
    assert [json.loads(body)["number"] for body in bodies] == [2, 3]
    assert len(patches) == 2
    said.readouterr()
    assert run(["validate", server, "--live", "--fail-on", "warning"]) == 0, said.readouterr().out
    assert pulled(said, server, "-o", "dumps=always")["state"] == "in sync"
    assert is_same()


def packed() -> list[object]:
    names = sorted((PUBLIC / "resourcesync").glob("changedump-*.zip"))
    with zipfile.ZipFile(names[-1]) as package:
        bodies = [package.read(name) for name in package.namelist() if name.endswith("a.json")]
    return [json.loads(body)["number"] for body in bodies]


def test_without_versions_a_change_dump_begins_after_what_is_gone_and_then_keeps_all(
    said: Said,
) -> None:
    assert run(["publish", "public", "--url", "https://museum.example", "-q"]) == 0
    for number in (2, 3):
        write(number)
        assert run(["publish", "public", "-q"]) == 0
    said.readouterr()

    assert run(["publish", "public", "--dumps", "all"]) == 0
    assert "3 changes cannot be packed" in said.readouterr().err
    assert packed() == [3]
    assert run(["validate", "public", "--fail-on", "warning"]) == 0, said.readouterr().out

    for number in (4, 5):
        write(number)
        assert run(["publish", "public", "-q"]) == 0
    assert b"memento" not in CHANGES.read_bytes()
    assert any(path.is_file() for path in Path("public/.resourcesync/versions").rglob("*"))
    said.readouterr()
    assert run(["publish", "public", "--dumps", "all"]) == 0
    assert "cannot be packed" not in said.readouterr().err
    assert packed() == [4, 5]
    assert run(["validate", "public", "--fail-on", "warning"]) == 0, said.readouterr().out
    assert not any(path.is_file() for path in Path("public/.resourcesync/versions").rglob("*"))


def test_versions_that_are_turned_on_later_are_told_of_by_a_new_resource_list(said: Said) -> None:
    assert run(["publish", "public", "--url", "https://museum.example", "-q"]) == 0
    assert any_settings(PUBLIC / CATALOGUE).keep_seconds == 365 * 86_400
    assert run(["publish", "public", "--versions", "-o", "patches=true", "-q"]) == 0
    assert any_settings(PUBLIC / CATALOGUE).keep_seconds == 0  # each version stays listed
    assert run(["publish", "public", "-o", "keep=365d", "-q"]) == 0
    assert any_settings(PUBLIC / CATALOGUE).keep_seconds == 365 * 86_400

    text = (PUBLIC / "resourcesync/resourcelist.xml").read_text()
    assert text.count('rel="memento"') == text.count('rel="timegate"') == 3
    before = text
    assert run(["publish", "public"]) == 0
    assert "Nothing changed" in said.readouterr().out
    assert (PUBLIC / "resourcesync/resourcelist.xml").read_text() == before

    assert run(["publish", "public", "--no-versions", "-q"]) == 0
    assert "memento" not in (PUBLIC / "resourcesync/resourcelist.xml").read_text()


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        (("-o", "patches=true"), "--versions"),
        (("--versions", "-o", "hash=md5"), "-o hash=sha-256"),
        (("--versions", "-o", "versions_in=public/past"), "dot"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_published(
    said: Said, options: tuple[str, ...], fix: str
) -> None:
    assert run(["publish", "public", "--url", "https://museum.example", *options]) == 2

    assert fix in said.readouterr().err
    assert not CHANGES.exists()
