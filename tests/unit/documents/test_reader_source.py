"""A document is read from bytes or an open file; all else is refused with a sentence."""

from pathlib import Path

import pytest

from resourcesync import read


@pytest.mark.parametrize("other", ["list.xml", Path("list.xml"), bytearray(b"<urlset/>"), None])
def test_what_is_neither_bytes_nor_an_open_file_is_refused_with_what_to_write(
    other: object,
) -> None:
    kind = type(other).__name__
    with pytest.raises(TypeError, match=rf"as of open\(name, 'rb'\), not {kind}$"):
        read(other)  # type: ignore[arg-type]
