"""Each row of the threat model on XML (X01 to X26), read in a process of its own and measured."""

import io
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from resourcesync.documents.reader import read_stream
from resourcesync.errors import MalformedDocumentError
from tests.support.commands.run import environment
from tests.support.commands.started import python
from tests.support.documents import hostile_documents
from tests.support.documents.hostile_documents import ROWS, Hostile
from tests.support.documents.text import RESOURCE_LIST, URI, document, url

ROOT = Path(__file__).parents[3]
MIB = 2**20


def cases() -> Iterator[ParameterSet]:
    for row, found in ROWS.items():
        for number, hostile in enumerate(found):
            yield pytest.param(row, number, hostile, id=f"{row}-{number}")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, int], str]]:
    """Give who reads a document in a process of its own."""
    kept = environment(tmp_path_factory.mktemp("home")).items()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.documents.hostile_documents"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        # What is measured is the reading, not the measuring of its coverage.
        env={name: value for name, value in kept if not name.startswith("COVERAGE")}
        | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, told = process.stdin, process.stdout

        def read_in_a_child(row: str, number: int) -> str:
            print(row, number, file=asked, flush=True)
            return told.readline()

        yield read_in_a_child


HEAVY = {"X01", "X02", "X08", "X09", "X10", "X11", "X13", "X25"}
"""Rows about size, each read in a process of its own; the others are read in this one."""


@pytest.mark.parametrize(("row", "number", "hostile"), list(cases()))
def test_a_hostile_document_is_answered_soon_and_in_little_memory(
    row: str,
    number: int,
    hostile: Hostile,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if row in HEAVY:
        told = json.loads(request.getfixturevalue("reader")(row, number))
    else:
        hostile_documents.main(row, number)
        told = json.loads(capsys.readouterr().out)

    assert told["outcome"] == hostile.outcome
    assert told["entries"] == hostile.entries
    assert told["refused"] == list(hostile.refused)
    assert isinstance(told["seconds"], float)
    assert told["seconds"] <= hostile.seconds
    assert isinstance(told["memory"], int)
    assert told["memory"] <= hostile.memory


def test_the_measure_sees_memory_that_was_used_and_is_not_used_any_more(tmp_path: Path) -> None:
    code = (
        "from tests.support.documents.hostile_documents import peak\n"
        "before = peak(); held = bytearray(64 * 2**20); held[::4096] = b'x' * 2**14; del held\n"
        "print(peak() - before)"
    )
    done = python(code, home=tmp_path, measured=False, PYTHONPATH=f"{ROOT / 'src'}:{ROOT}")

    assert 60 * MIB <= int(done.stdout) <= 80 * MIB


@pytest.mark.conformance("G01")
def test_nothing_outside_is_asked_while_a_document_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        there = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        hostile = [
            *(
                f'<?xml version="1.0"?><!DOCTYPE urlset {kind}>'.encode() + document()
                for kind in (f'SYSTEM "{there}"', f'[<!ENTITY % d SYSTEM "{there}"> %d;]')
            ),
            document(
                f'<i:include xmlns:i="http://www.w3.org/2001/XInclude" href="{there}"/>',
                url(there),
                md=f'<?xml-stylesheet href="{there}"?>{RESOURCE_LIST}',
            ).replace(b"<urlset ", f'<urlset xml:base="{there}" '.encode()),
        ]
        for data in hostile[:2]:
            with pytest.raises(MalformedDocumentError, match="DOCTYPE"):
                read_stream(io.BytesIO(data), uri=URI)
        assert len(list(read_stream(io.BytesIO(hostile[2]), uri=URI).entries())) == 1

        with pytest.raises(BlockingIOError):
            listener.accept()
