"""The stream of an object: all its bytes in any pieces, or an error."""

from contextlib import nullcontext
from io import BufferedReader

import pytest

from resourcesync.errors import StorageError
from resourcesync_s3.bucket import ObjectReader


def test_fewer_bytes_than_were_told_are_no_end() -> None:
    stream = BufferedReader(ObjectReader(iter([b"abc"]), 4, nullcontext))
    assert stream.read(3) == b"abc"
    with pytest.raises(StorageError, match="1 bytes before its end"):
        stream.read(1)
