"""The links of a resource's own ``Link`` field that belong into its entry (Signposting)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.model.entries import Link
from resourcesync_oai.signposts import MAX_SIGNPOST_LENGTH, MAX_SIGNPOSTS, SIGNPOSTS, find_signposts

HERE = "https://repo.example/items/1"


def found(field: str) -> list[tuple[str, str, str]]:
    return [(link.rel, link.href, link.media_type) for link in find_signposts(field, HERE)]


@pytest.mark.parametrize(
    "field",
    [
        "",
        "<urn:x>; rel=item",
        "<mailto:a@h.example>; rel=item",
        "<javascript:alert(1)>; rel=item",
        "<file:///etc/passwd>; rel=item",
        "<https:///nothing>; rel=item",
        "<https://h.example:port/>; rel=item",
        "<https://h.example/\xe9>; rel=item",
        "<https://h.example/a b>; rel=item",
        '<https://h.example/"x>; rel=item',
        "<https://h.example/\x01>; rel=item",
        "<>; rel=cite-as",
        f"<{HERE}>; rel=cite-as",
        '<https://h.example/>; rel=item; anchor="https://other.example/"',
        f"<https://h.example/{'x' * MAX_SIGNPOST_LENGTH}>; rel=item",
        "<https://h.example/>; rel=describes",
        "<https://h.example/>",
        "<https://h.example/; rel=item",
    ],
)
def test_other_links_are_left_out(field: str) -> None:
    assert found(field) == []


def test_their_number_is_limited_and_their_order_means_nothing() -> None:
    links = [f"<https://h.example/{number:04}>; rel=item" for number in range(MAX_SIGNPOSTS)]

    assert len(found(", ".join(links * 50))) <= MAX_SIGNPOSTS
    assert found(", ".join(links)) == found(", ".join(reversed(links)))
    assert len(found(", ".join(links))) == MAX_SIGNPOSTS


NEAR = st.text(alphabet='<>;,="\\ /:?#[]%abhtps.relitm\x00\xe9', max_size=200)


@given(st.one_of(st.text(), NEAR), st.one_of(st.just(HERE), st.text(max_size=20)))
def test_no_field_is_too_odd(field: str, base: str) -> None:
    for link in find_signposts(field, base):
        assert isinstance(link, Link)
        assert link.rel in SIGNPOSTS
        assert link.href.lower().startswith(("http://", "https://"))
