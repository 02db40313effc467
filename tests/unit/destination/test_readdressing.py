"""Where the copies of a mirror have their addresses when it is published again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.mapping.names import published_tail, uri_of_published

BASE = "https://museum.example/data/"
_text = st.text(alphabet="ab!1269/?=:[]%5BD", max_size=12)
_uris = st.one_of(
    _text.map(lambda tail: BASE + tail),
    st.builds(
        lambda scheme, host, rest: f"{scheme}://{host}/{rest}",
        st.sampled_from(["http", "https"]),
        st.sampled_from(["museum.example", "other.example:81", "[::1]:81", "[::1]"]),
        _text,
    ),
)


@pytest.mark.parametrize(
    ("uri", "tail"),
    [
        (BASE, ""),
        (f"{BASE}docs/", "docs/"),
        (f"{BASE}find?q=!6/", "find?q=!6/"),
        (f"{BASE}!x", "!x"),
        (f"{BASE}!6/https/other.example/x", "!216/https/other.example/x"),
        ("https://museum.example/x", "!6/https/museum.example/x"),
        ("http://[::1]:81/x?y", "!6/http/%5B::1%5D:81/x?y"),
    ],
)
def test_what_follows_the_base_stays(uri: str, tail: str) -> None:
    assert published_tail(uri, BASE) == tail
    assert uri_of_published(tail, BASE) == uri


@given(uri=_uris)
def test_each_address_leads_back_to_its_uri(uri: str) -> None:
    assert uri_of_published(published_tail(uri, BASE), BASE) == uri


@given(tail=_text)
def test_a_copy_has_one_address(tail: str) -> None:
    uri = uri_of_published(tail, BASE)

    assert uri is None or published_tail(uri, BASE) == tail
