"""A document is read from bytes or an open file; a name of a file is refused with a sentence."""

from pathlib import Path

import pytest

from resourcesync import read


@pytest.mark.parametrize("name", ["list.xml", Path("list.xml")])
def test_a_name_of_a_file_is_refused_with_what_to_write_instead(name: object) -> None:
    with pytest.raises(TypeError, match=r"an open binary file: read\(open\('list.xml', 'rb'\)\)"):
        read(name)  # type: ignore[arg-type]
