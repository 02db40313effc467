"""``catalogue``: a Source without a folder."""

import io
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from resourcesync import Catalogue, Change, ChangeKind
from resourcesync.cli.main import run
from resourcesync.documents import reader
from resourcesync.model.entries import Entry
from tests.support.commands.command_line import Said, rows

BASE = "https://h.example/"
LINES = Path("all.ndjson")


def told(*lines: Mapping[str, object]) -> None:
    LINES.write_text("".join(json.dumps(line) + "\n" for line in lines))


def listed(name: str) -> list[Entry]:
    with Path("out/resourcesync", name).open("rb") as stream:
        return list(reader.read_stream(stream, uri=name).entries())


def begin() -> None:
    told({"uri": BASE + "b", "length": 1, "hash": "md5:" + "0" * 32}, {"uri": BASE + "a"})
    assert run(["catalogue", "import", "c.db", str(LINES), "--quiet"]) == 0
    assert run(["publish", "catalogue:c.db", "--url", BASE, "--out", "out", "--quiet"]) == 0


def test_what_is_imported_and_posted_is_published(said: Said) -> None:
    begin()
    said.readouterr()
    told({"uri": BASE + "c", "change": "created"}, {"uri": BASE + "a", "change": "deleted"})
    assert run(["catalogue", "post", "c.db", str(LINES)]) == 0
    assert said.readouterr().out.splitlines()[0] == "Recorded  1 created, 1 deleted"

    assert run(["publish", "catalogue:c.db", "--json"]) == 0

    (end,) = [row for row in rows(said) if row["type"] == "run.end"]
    assert (end["created"], end["updated"], end["deleted"], end["resources"]) == (1, 0, 1, 2)
    assert [item.uri for item in listed("resourcelist.xml")] == [BASE + "b", BASE + "c"]
    assert [item.kind for item in listed("changelist.xml") if isinstance(item, Change)] == [
        ChangeKind.CREATED,
        ChangeKind.DELETED,
    ]
    assert run(["publish", "catalogue:c.db"]) == 0
    assert said.readouterr().out == "Nothing changed\n"


def test_what_is_exported_can_be_imported(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin()
    capfdbinary.readouterr()
    assert run(["catalogue", "export", "c.db"]) == 0
    lines = capfdbinary.readouterr().out
    assert lines.splitlines() == [
        b'{"uri":"https://h.example/a"}',
        b'{"uri":"https://h.example/b","length":1,"hash":"md5:' + b"0" * 32 + b'"}',
    ]

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert run(["catalogue", "import", "other.db", "-"]) == 0
    assert list(Catalogue("other.db").resources()) == list(Catalogue("c.db").resources())

    assert run(["catalogue", "import", "c.db", str(LINES)]) == 0
    assert b"nothing new" in capfdbinary.readouterr().out
    assert run(["catalogue", "export", "c.db", "--changes"]) == 0
    assert capfdbinary.readouterr().out == b""


def test_lines_are_published_without_a_catalogue_of_their_own(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    told({"uri": BASE + "a"}, {"uri": BASE + "b"})
    assert run(["publish", f"ndjson:{LINES}", "--url", BASE, "--out", "out"]) == 0
    assert said.readouterr().out.splitlines()[0].split() == [
        "Wrote", "out/resourcesync/resourcelist.xml", "2", "resources",
    ]  # fmt: skip

    line = json.dumps({"uri": BASE + "b"}).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
    assert run(["publish", "ndjson:-", "--out", "out"]) == 0

    assert [item.uri for item in listed("changelist.xml") if isinstance(item, Change)] == [
        BASE + "a"
    ]
