"""Each row of the threat model on XML (X01 to X26), and what it costs."""

import io
import socket
import time
import tracemalloc

import pytest

from resourcesync.documents.reader import read as read_document
from resourcesync.errors import MalformedDocumentError
from tests.support.documents.hostile_documents import ROWS, Hostile, read
from tests.support.documents.text import RESOURCE_LIST, URI, document, url

HEAVY = {"X01", "X02", "X08", "X09", "X10", "X11", "X13", "X25"}
"""Rows about size, whose memory is measured."""
CASES = [
    pytest.param(row, hostile, id=f"{row}-{number}")
    for row, found in ROWS.items()
    for number, hostile in enumerate(found)
]


@pytest.mark.parametrize(("row", "hostile"), CASES)
def test_a_hostile_document_is_answered_soon_and_in_little_memory(
    row: str, hostile: Hostile
) -> None:
    expected = (hostile.outcome, hostile.entries, list(hostile.refused))
    begin = time.process_time()

    assert read(hostile) == expected

    assert time.process_time() - begin <= hostile.seconds
    if row in HEAVY:
        tracemalloc.start()
        read(hostile)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= 3 * 2**20


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
                read_document(io.BytesIO(data), uri=URI)
        assert len(list(read_document(io.BytesIO(hostile[2]), uri=URI).entries())) == 1

        with pytest.raises(BlockingIOError):
            listener.accept()
