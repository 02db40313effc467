"""The digest fields of HTTP, as RFC 9530 and the grammar of structured fields have them."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.model.digest_fields import (
    FIELD_ALGORITHMS,
    choose_digests,
    format_digest_field,
    parse_digest_field,
)
from resourcesync.model.digests import Digest

TEXT = b'{"hello": "world"}\n'
BASE64 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
"""The digest that RFC 9530 gives for it (Appendix A)."""
DIGEST = Digest("sha-256", hashlib.sha256(TEXT).hexdigest())
LONG = Digest("sha-512", hashlib.sha512(TEXT).hexdigest())


def test_the_example_of_the_standard_is_read_and_written() -> None:
    field = f"sha-256=:{BASE64}:"

    assert parse_digest_field(field) == (DIGEST,)
    assert format_digest_field((DIGEST,)) == field


@pytest.mark.parametrize(
    "field",
    [
        f"md5=:AAAA:, sha-256=:{BASE64}:",
        f'sha-256=:{BASE64}:;x=1; y="a\\"b",unixsum=1',
        f"  sha-256=:{BASE64.rstrip('=')}:  ",
        f"sha-256=:AAAA:, sha-256=:{BASE64}:",
        f'a=(1 "x";q :AA==:), b, c=?0, d=tok/en, e=1.5, f=@12, sha-256=:{BASE64}:',
        f"sha-512=5;q, sha-256=:{BASE64}:, sha-512=:{'A' * 86}==:"[12:],
    ],
)
def test_other_members_and_parameters_do_not_matter(field: str) -> None:
    assert (parse_digest_field(field) or ())[:1] == (DIGEST,)


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


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ("", (DIGEST, LONG)),
        ("sha-256=10", (DIGEST,)),
        ("sha-512=10", (LONG,)),
        ("sha-256=1, sha-512=9", (LONG,)),
        ("sha-512=9, sha-256=1", (LONG,)),
        ("sha-512=0", (DIGEST,)),
        ("sha-512=0, sha-256=0", ()),
        ("sha-512=0, sha-256=3", (DIGEST,)),
        ("md5=10", (DIGEST, LONG)),
        ("md5=10, sha-256=0", (LONG,)),
        ("sha-256=11", (DIGEST, LONG)),
        ("sha-256=-1", (DIGEST, LONG)),
        ("sha-256", (DIGEST, LONG)),
        ("sha-256=1.0", (DIGEST, LONG)),
        ("nonsense;;", (DIGEST, LONG)),
    ],
)
def test_the_client_gets_the_digest_that_it_wants_most(
    wanted: str, sent: tuple[Digest, ...]
) -> None:
    assert choose_digests(wanted, (DIGEST, LONG, Digest("md5", "0" * 32))) == sent


NEAR = st.text(alphabet='sha-25612:=+/A, ;()"\\?@%*\t.\x00é', max_size=200)


@given(st.one_of(st.text(), NEAR))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    found = parse_digest_field(text)
    assert found is None or all(digest.algorithm in FIELD_ALGORITHMS for digest in found)
    assert set(choose_digests(text, (DIGEST, LONG))) <= {DIGEST, LONG}
