"""The lines of a BagIt manifest."""

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents.packages.bagit import encode_path, manifest_line


@given(st.text("a%\r\n0D2A5"))
def test_an_encoded_path_is_one_line_and_can_be_decoded(path: str) -> None:
    encoded = encode_path(path)

    assert "\n" not in encoded
    assert "\r" not in encoded
    decoded = encoded.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
    assert decoded == path
    assert manifest_line("00", path) == f"00  {encoded}\n"
