"""A Source without a folder, on real files: told by lines, published, read by others."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from resourcesync import Catalogue, Change, Digest, Resource
from resourcesync.documents import reader
from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import Part
from resourcesync.model.vocabulary import ChangeKind
from tests.support.commands.run import run, script

BASE = "https://museum.example/"
FEW = ("-o", "max_entries=40")


def command(*arguments: str | Path, lines: str = "") -> str:
    done = run(script("resourcesync"), *arguments, cwd=Path.cwd(), lines=lines)
    assert done.code == 0, done.stderr
    return done.stdout


def line(number: int, version: int, change: str = "") -> str:
    told: dict[str, object] = {"uri": f"{BASE}object-{number:04}", "length": version}
    if change:
        told["change"] = change
    return json.dumps(told) + "\n"


def documents(out: Path) -> Iterator[Path]:
    """The Resource List's documents with entries, in order."""
    head = out / "resourcesync" / "resourcelist.xml"
    with head.open("rb") as stream:
        document = reader.read_stream(stream, uri=head.name)
        parts = [entry.uri for entry in document.entries() if isinstance(entry, Part)]
    yield from [head.with_name(uri.rpartition("/")[2]) for uri in parts] or [head]


def listed(out: Path) -> list[Resource]:
    found: list[Resource] = []
    for path in documents(out):
        with path.open("rb") as stream:
            document = reader.read_stream(stream, uri=path.name)
            found += [entry for entry in document.entries() if isinstance(entry, Resource)]
            assert document.refused == 0
    return found


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # where the program is at home
    lines = "".join(line(number, 1) for number in range(300))
    command("catalogue", "import", tmp_path / "c.db", lines=lines)
    where = f"catalogue:{tmp_path / 'c.db'}"
    command("publish", where, "--url", BASE, "--out", tmp_path / "out", *FEW)
    return tmp_path


def test_a_harmed_part_is_written_from_the_catalogue(source: Path) -> None:
    path = list(documents(source / "out"))[2]
    path.write_bytes(path.read_bytes().replace(b'length="1"', b'length="7"'))
    command("catalogue", "post", source / "c.db", lines=line(1, 5, "updated"))

    command("publish", f"catalogue:{source / 'c.db'}")

    assert listed(source / "out") == list(Catalogue(source / "c.db").resources())


@pytest.mark.parametrize(
    "wrong",
    [
        {"digests": (Digest("sha256", "a" * 64),)},
        {"digests": (Digest("sha-256", "a" * 40),)},
        {"digests": (Digest("sha-256", ""),)},
        {"digests": (Digest("blake3", ""),)},
        {"lastmod": datetime(2026, 1, 1)},  # noqa: DTZ001 - this is the fault
    ],
)
def test_a_value_that_no_reader_could_use_is_refused_with_its_resource(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    catalogue, uri = Catalogue(tmp_path / "own.db"), f"{BASE}jug"
    resource = Resource(uri=uri, **wrong)  # type: ignore[arg-type]  # that is the test
    change = Change(kind=ChangeKind.CREATED, resource=resource)

    with pytest.raises(ConfigurationError, match=uri):
        catalogue.fill([resource])
    with pytest.raises(ConfigurationError, match=uri):
        catalogue.post([change])

    assert list(catalogue.resources()) == []


def test_a_digest_of_an_algorithm_that_we_do_not_know_is_published_as_it_is(tmp_path: Path) -> None:
    known = Resource(uri=f"{BASE}jug", digests=(Digest("blake3", "ab" * 32),))

    Catalogue(tmp_path / "own.db").fill([known])

    assert list(Catalogue(tmp_path / "own.db").resources()) == [known]
