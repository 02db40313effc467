"""The stream of an object: all its bytes in any pieces, or an error."""

from contextlib import nullcontext
from io import BufferedReader

import pytest

from resourcesync.backends.s3.bucket import ObjectReader
from resourcesync.errors import StorageError


def test_bytes_come_as_they_are_asked_for() -> None:
    stream = BufferedReader(ObjectReader(iter([b"ab", b"cdefg", b"h"]), 8, nullcontext), 4)
    assert (stream.read(3), stream.read(), stream.read()) == (b"abc", b"defgh", b"")


def test_fewer_bytes_than_were_told_are_no_end() -> None:
    stream = BufferedReader(ObjectReader(iter([b"abc"]), 4, nullcontext))
    assert stream.read(3) == b"abc"
    with pytest.raises(StorageError, match="1 bytes before its end"):
        stream.read(1)


def test_what_is_closed_asks_for_nothing_more() -> None:
    def chunks() -> "list[bytes]":
        asked.append(True)
        return [b"x" * 10]

    asked: list[bool] = []
    reader = ObjectReader(iter(lambda: chunks().pop(), b""), 1_000, nullcontext)
    with reader:
        assert reader.read(4) == b"xxxx"
    assert len(asked) == 1
    assert reader.closed
