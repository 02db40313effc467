"""``export``: packages that a Destination reads, bags that validate, and no damage in either."""

import csv
import hashlib
import os
import sqlite3
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import bagit
import pytest

from resourcesync.cli.main import run
from resourcesync.destination.exports import exporters as export_formats
from resourcesync.ports.exporters import ExportFile, ExportOptions, MirrorSnapshot
from tests.support.commands.command_line import FILES, LATER, MIRRORED, Said, rows, spoil
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def export(form: str, out: str, *more: str) -> int:
    return run(["export", "museum", "--format", form, "--out", out, *more])


def left() -> set[str]:
    return {path.name for path in Path().iterdir()}


# --- packages ---


def test_a_package_is_judged_good_and_unpacks_to_the_tree_of_the_mirror(
    museum: str, said: Said
) -> None:
    assert export("zip", "museum.zip") == 0
    assert said.readouterr().out.startswith("Exported  12 resources in museum.zip, ")

    assert subprocess.run(["unzip", "-tq", "museum.zip"], check=False).returncode == 0
    with zipfile.ZipFile("museum.zip") as package:
        assert {name: package.read(name) for name in package.namelist()[1:]} == MIRRORED
        assert package.namelist()[0] == "manifest.xml"
    said.readouterr()
    assert run(["validate", "museum.zip"]) == 0


def test_the_same_copies_give_the_same_package(museum: str) -> None:
    for name in ("one.zip", "two.zip"):
        assert export("zip", name) == 0

    assert Path("one.zip").read_bytes() == Path("two.zip").read_bytes()


def test_a_folder_of_packages_that_is_served_can_be_pulled(
    source: TinySource, museum: str, said: Said
) -> None:
    assert export("zip", "dump", "--max-package", "40", "--url", f"{source.url}/dump/") == 0
    files = files_of(Path("dump"))
    assert len(files) > 3
    for name, body in files.items():
        kind = "application/zip" if name.endswith(".zip") else "application/xml"
        source.put(f"/dump/{name}", body, kind)
    for target in FILES:
        del source.answers[target]  # only the packages have the content

    assert run(["pull", f"{source.url}/dump/resourcedump.xml", "second"]) == 0
    assert files_of(Path("second")) == MIRRORED
    # It is a set of its own there, which the Source's own lists know nothing of.
    assert run(["pull", f"{source.url}/dump/resourcesync.xml", "third"]) == 0
    assert files_of(Path("third")) == MIRRORED
    assert run(["validate", "dump/resourcedump.xml"]) == 0
    assert run(["validate", "dump/capabilitylist.xml"]) == 0


@pytest.mark.parametrize("name", ["/A.txt", "/manifest.xml"])
def test_paths_that_cannot_be_together_everywhere_are_numbered(
    source: TinySource, said: Said, name: str
) -> None:
    source.offer({"/a.txt": b"small", name: b"LARGE"})
    assert run(["pull", source.url, "museum"]) == 0

    assert export("zip", "museum.zip") == 0

    said.readouterr()
    assert run(["validate", "museum.zip"]) == 0
    with zipfile.ZipFile("museum.zip") as package:
        names = package.namelist()
        assert all(name.startswith("resources/") for name in names[1:])
        assert sorted(map(package.read, names[1:])) == [b"LARGE", b"small"]


def test_one_file_cannot_be_served_as_a_dump(museum: str, said: Said) -> None:
    assert export("zip", "museum.zip", "--url", "https://a.example/") == 2
    assert "`url` needs a folder of packages" in said.readouterr().err
    assert left() == {"museum"}


# --- bags ---


def test_a_bag_is_valid_for_another_program(source: TinySource, museum: str) -> None:
    assert export("bagit", "bag", "--organization", "The  Museum\nof Prague") == 0

    bag = bagit.Bag("bag")
    bag.validate()
    assert bag.info["External-Identifier"] == source.url
    assert bag.info["Source-Organization"] == "The Museum of Prague"
    assert bag.info["Payload-Oxum"] == f"{sum(map(len, MIRRORED.values()))}.12"
    assert files_of(Path("bag/data")) == MIRRORED


def test_a_bag_says_which_resource_each_file_is(source: TinySource, museum: str) -> None:
    export("bagit", "bag")

    with Path("bag/resources.csv").open(newline="") as stream:
        found = {row["uri"]: row["path"] for row in csv.DictReader(stream)}
    assert found == {f"{source.url}{target}": f"data{target}" for target in FILES}


def test_a_bag_in_one_file_holds_one_folder(museum: str) -> None:
    assert export("bagit", "museum-2026.zip") == 0

    with zipfile.ZipFile("museum-2026.zip") as package:
        assert package.testzip() is None
        package.extractall("out")
    assert [path.name for path in Path("out").iterdir()] == ["museum-2026"]
    bagit.Bag("out/museum-2026").validate()
    assert subprocess.run(["unzip", "-tq", "museum-2026.zip"], check=False).returncode == 0


def test_percent_signs_are_encoded_in_the_manifest_and_nowhere_else(
    source: TinySource, said: Said
) -> None:
    source.offer({"/a%20b?c=1": b"asked", "/plain.txt": b"plain"})
    assert run(["pull", source.url, "museum"]) == 0
    assert export("bagit", "bag") == 0

    listed = {}
    for line in Path("bag/manifest-sha256.txt").read_text().splitlines():
        digest, _, path = line.partition("  ")
        decoded = path.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
        listed[decoded] = digest
    payload = files_of(Path("bag/data"))
    assert any("%" in path for path in payload)
    assert "%25" in Path("bag/manifest-sha256.txt").read_text()
    assert listed == {
        f"data/{path}": hashlib.sha256(body).hexdigest() for path, body in payload.items()
    }
    assert payload == files_of(Path("museum"))


# --- no lies ---


@pytest.mark.parametrize(
    ("form", "out"), [("bagit", "bag"), ("bagit", "bag.zip"), ("zip", "z.zip")]
)
def test_a_damaged_copy_is_not_exported_and_all_damage_is_named(
    museum: str, said: Said, form: str, out: str
) -> None:
    spoil(museum)

    assert export(form, out, "--json") == 1

    found = rows(said)
    assert {(row["kind"], row["path"]) for row in found if row["type"] == "finding"} == {
        ("+", "objects/0003.txt"),
        ("*", "objects/0005.txt"),
    }
    assert (found[-1]["damaged"], found[-1]["copies"]) == (2, 0)
    assert left() == {"museum"}


def test_damage_of_the_same_length_in_the_last_copy_is_seen(museum: str, said: Said) -> None:
    Path(museum, "objects/0011.txt").write_bytes(b"object XX\n")

    assert export("zip", "museum.zip") == 1

    out = said.readouterr().out
    assert "* /objects/0011.txt   not what was fetched: damaged or edited locally" in out
    assert "next   resourcesync audit museum" in out
    assert left() == {"museum"}


def test_what_is_said_to_do_next_mends_even_silent_damage(museum: str, said: Said) -> None:
    copy = Path(museum, "objects/0011.txt")
    info = copy.stat()
    with copy.open("r+b") as stream:
        stream.write(b"X")
    os.utime(copy, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert export("bagit", "bag") == 1
    said.readouterr()

    assert run(["audit", "museum"]) == 1
    assert run(["repair", "museum", "--from-audit", "last"]) == 0
    assert export("bagit", "bag") == 0
    assert files_of(Path("bag/data")) == MIRRORED


def test_an_empty_copy_that_is_missing_is_missing_all_the_same(
    source: TinySource, said: Said
) -> None:
    source.offer({"/empty.txt": b"", "/full.txt": b"x"})
    assert run(["pull", source.url, "museum"]) == 0
    assert export("bagit", "bag") == 0
    Path("museum/empty.txt").unlink()

    assert export("bagit", "again") == 1
    assert "+ /empty.txt   missing" in said.readouterr().out


def test_an_exporter_that_leaves_copies_out_makes_nothing(
    museum: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lazy(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
        yield ExportFile("first", holdings.content(next(holdings.copies())))

    monkeypatch.setattr(export_formats, "export_bag", lazy)

    assert export("bagit", "bag") == 8
    assert "the exporter wrote 1 of 12 copies" in said.readouterr().err
    assert left() == {"museum"}


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/out", "a//b", "."])
def test_an_exporter_cannot_write_outside(
    museum: str, said: Said, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def climbing(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
        yield ExportFile(path, [b"x"])

    monkeypatch.setattr(export_formats, "export_bag", climbing)

    assert export("bagit", "bag") == 2
    assert "leads out of the export" in said.readouterr().err
    assert left() == {"museum"}


def test_a_copy_whose_file_is_being_changed_is_not_exported(museum: str, said: Said) -> None:
    with sqlite3.connect("museum/.resourcesync/state.db") as db:
        db.execute("UPDATE copy SET length = -1 WHERE path = 'objects/0004.txt'")
    db.close()

    assert export("zip", "z.zip") == 1
    assert "! /objects/0004.txt   a pull is changing it" in said.readouterr().out


def test_more_resources_than_one_package_holds_need_a_folder(
    museum: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_formats, "MAX_ENTRIES", 5)

    assert export("zip", "z.zip") == 2
    assert "name a folder for several packages: --out DIR" in said.readouterr().err
    assert export("zip", "parts") == 0
    assert sorted(path.name for path in Path("parts").iterdir()) == [
        "part-00001.zip",
        "part-00002.zip",
        "part-00003.zip",
    ]


def test_a_file_of_somebody_else_is_not_exported(museum: str) -> None:
    Path(museum, "mine.txt").write_bytes(b"mine")

    assert export("bagit", "bag") == 0
    assert files_of(Path("bag/data")) == MIRRORED


def test_a_link_in_place_of_a_copy_is_not_followed(museum: str, said: Said) -> None:
    Path("secret").write_bytes(MIRRORED["objects/0001.txt"])
    copy = Path(museum, "objects/0001.txt")
    copy.unlink()
    copy.symlink_to(Path("secret").absolute())

    assert export("bagit", "bag") == 1
    assert "/objects/0001.txt   missing" in said.readouterr().out


def test_a_pull_meanwhile_is_said(
    source: TinySource, museum: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = export_formats.export_bag

    def pulling(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
        files = original(holdings, options)
        yield next(files)
        source.offer({**FILES, "/objects/0004.txt": b"new\n"}, at=LATER)
        assert run(["pull", museum]) == 0
        yield from files

    monkeypatch.setattr(export_formats, "export_bag", pulling)
    assert export("bagit", "bag") == 1
    monkeypatch.setattr(export_formats, "export_bag", original)
    assert "! /objects/0004.txt   a pull changed it during the export" in said.readouterr().out
    assert left() == {"museum"}
    assert export("bagit", "bag") == 0


def test_what_is_not_here_is_said(source: TinySource, said: Said) -> None:
    del source.answers["/objects/0007.txt"]
    assert run(["pull", source.url, "museum"]) == 3
    said.readouterr()

    assert export("bagit", "bag") == 0
    assert "1 listed resource not included" in said.readouterr().out


@pytest.mark.parametrize("form", ["zip", "bagit"])
@pytest.mark.parametrize("out", ["there.zip", "there"])
def test_nothing_is_written_over(museum: str, said: Said, form: str, out: str) -> None:
    Path("there.zip").write_text("mine")
    Path("there").mkdir()

    assert export(form, out) == 2

    assert f"{out} already exists" in said.readouterr().err
    assert Path("there.zip").read_text() == "mine"
    assert left() == {"museum", "there", "there.zip"}


def test_a_place_in_the_mirror_is_refused(museum: str, said: Said) -> None:
    assert export("zip", "museum/objects/all.zip") == 2
    assert "is inside museum" in said.readouterr().err


def test_a_folder_that_is_no_mirror_and_a_form_that_nobody_has_are_refused(
    museum: str, said: Said
) -> None:
    assert export("arc", "out") == 2
    assert "there is no plug-in 'arc'" in said.readouterr().err
    assert run(["export", "nothing", "--format", "zip", "--out", "z.zip"]) == 2
    assert left() == {"museum"}


def test_a_full_disk_leaves_nothing_behind(museum: str, said: Said) -> None:
    if not Path("/dev/full").exists() or os.geteuid() != 0:
        pytest.skip("needs a file system that can be made full")
    Path("small").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", "small"], check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        assert export("bagit", "small/bag") == 8
        assert list(Path("small").iterdir()) == []
    finally:
        subprocess.run(["umount", "small"], check=True)
    assert "no space left while writing" in said.readouterr().err


def test_an_export_that_is_to_be_served_is_judged_from_its_source_description(
    museum: str, said: Said
) -> None:
    assert export("zip", "dump", "--url", "https://copies.example/dump") == 0
    said.readouterr()

    code = run(["validate", "dump", "--json"])

    found = rows(said)
    judged = {row["uri"]: row["kind"] for row in found if row["type"] == "document"}
    assert judged["dump/resourcesync.xml"] == "Source Description"
    assert judged["dump/part-00001.zip#/manifest.xml"] == "Resource Dump Manifest"
    assert len(judged) == 4
    assert found[-1]["judged_alone"] == 0
    assert (code, found[-1]["errors"]) == (0, 0)
