"""What the operator's settings become in the fetcher."""

import pytest

from resourcesync.app.options import fetch_settings
from resourcesync.settings.network import Network


@pytest.mark.parametrize(
    ("source", "allowed", "host"),
    [
        ("https://museum.example/a", (), "museum.example"),
        ("https://museum.example/a", ("https://other.example",), "museum.example"),
        ("https://museum.example/a", ("https://museum.example",), ""),
        ("http://10.0.0.1:8080/", (), ""),
        ("http://[::1]:8080/", (), ""),
        ("", (), ""),
    ],
)
def test_the_sources_name_is_held_to_a_public_address_unless_it_is_allowed(
    source: str, allowed: tuple[str, ...], host: str
) -> None:
    assert fetch_settings(Network(allow_origins=allowed), source).source_host == host
