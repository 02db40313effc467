"""The digest fields of HTTP, as RFC 9530 and the grammar of structured fields have them."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.model.digests import (
    FIELD_ALGORITHMS,
    Digest,
    choose_digests,
    format_digest_field,
    parse_digest_field,
)

TEXT = b'{"hello": "world"}\n'
BASE64 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
"""The digest that RFC 9530 gives for it (Appendix A)."""
DIGEST = Digest("sha-256", hashlib.sha256(TEXT).hexdigest())
LONG = Digest("sha-512", hashlib.sha512(TEXT).hexdigest())


@pytest.mark.parametrize(
    "field",
    [
        f"sha-256={BASE64}",
        f"SHA-256=:{BASE64}:",
        f"sha-256=:{BASE64}:,",
        f"sha-256=:{BASE64}: x",
        f"sha-256=:{BASE64}",
        "sha-256=:*:",
        "sha-256=:A:",
        "sha-256=:AA=AA:",
        "sha-256",
        "sha-256=5",
        ";",
        "sha-256=:AA==:" + " " * 5_000 + ", b",
        ", ".join(f"a{number}=1" for number in range(100)),
        "sha-256=(:AA==:",
        'a="unended',
        "\x00",
        "é",
    ],
)
def test_a_malformed_field_is_none_at_all(field: str) -> None:
    assert parse_digest_field(field) is None


def test_a_digest_of_a_wrong_length_is_never_usable() -> None:
    [found] = parse_digest_field("sha-256=:AAAA:") or ()

    assert not found.is_usable
    assert format_digest_field((found,)) == ""


NEAR = st.text(alphabet='sha-25612:=+/A, ;()"\\?@%*\t.\x00é', max_size=200)


@given(st.one_of(st.text(), NEAR))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    found = parse_digest_field(text)
    assert found is None or all(digest.algorithm in FIELD_ALGORITHMS for digest in found)
    assert set(choose_digests(text, (DIGEST, LONG))) <= {DIGEST, LONG}
