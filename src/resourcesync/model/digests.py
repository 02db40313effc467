"""Digests: ``rs:md/@hash``, parsed, ranked and compared (§7)."""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

ALGORITHMS: Final = {
    "sha-512": 128,
    "sha-384": 96,
    "sha-256": 64,
    "sha-224": 56,
    "sha-1": 40,
    "md5": 32,
}
"""Algorithms we can compute, strongest first, with the length of the digest in hex digits."""

STRONG: Final = frozenset({"sha-512", "sha-384", "sha-256", "sha-224"})
"""Algorithms for which a match proves the bytes; md5 and sha-1 only detect accidents."""

_SPELLINGS: Final = {name.replace("-", ""): name for name in ALGORITHMS}
_RANKS: Final = {name: rank for rank, name in enumerate(ALGORITHMS)}
_MAX_TOKENS: Final = 16
_PREFIX: Final = "sha-256:"
_SHA256_LENGTH: Final = len(_PREFIX) + ALGORITHMS["sha-256"]
_HEX: Final = re.compile(r"[0-9a-f]+")
is_sha256: Final = re.compile(_PREFIX + "[0-9a-f]{64}").fullmatch
"""Matches one SHA-256 as we write it, and nothing else."""


def new_hashers(algorithms: Iterable[str]) -> dict[str, Any]:
    """Return a running digest for each algorithm; its type is private to ``hashlib``."""
    import hashlib  # noqa: PLC0415 - who only reads documents needs none

    return {
        name: getattr(hashlib, name.replace("-", ""))(usedforsecurity=False) for name in algorithms
    }


def digest_chunks(
    chunks: Iterable[bytes], algorithms: Iterable[str]
) -> tuple[int, tuple["Digest", ...]]:
    """Return the length and the digests of bytes."""
    hashers, length = new_hashers(algorithms), 0
    for chunk in chunks:
        length += len(chunk)
        for hasher in hashers.values():
            hasher.update(chunk)
    return length, tuple(Digest(name, hasher.hexdigest()) for name, hasher in hashers.items())


class Digest(NamedTuple):
    """One algorithm and the digest of a representation in lower-case hex."""

    algorithm: str
    value: str

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.value}"

    @property
    def is_usable(self) -> bool:
        """True if we can compute this algorithm and the value has its form.

        Anything else is unverifiable, never a mismatch.
        """
        length = ALGORITHMS.get(self.algorithm)
        return length == len(self.value) and _HEX.fullmatch(self.value) is not None

    @property
    def is_malformed(self) -> bool:
        """True if it has no algorithm or value, or not the form of its known algorithm (§7)."""
        is_known = self.algorithm in ALGORITHMS
        return not (self.algorithm and self.value) or (is_known and not self.is_usable)


def parse_digests(text: str) -> tuple[Digest, ...]:
    """Return the digests in a ``hash`` attribute, in the order written (§7).

    Unknown algorithms are preserved, with any value, to be written back. Only the first 16 tokens
    count.
    """
    return tuple(_parse_one(token) for token in text.split()[:_MAX_TOKENS])


def many_digests(texts: Sequence[str]) -> Iterable[tuple[Digest, ...]]:
    """Return what `parse_digests` returns for each text; faster if each is one SHA-256."""
    if not are_sha256(texts):
        return map(parse_digests, texts)
    values = [text[len(_PREFIX) :] for text in texts]
    made = map(partial(tuple.__new__, Digest), zip(repeat("sha-256"), values, strict=False))
    return zip(made, strict=True)  # each in a tuple of one


def are_sha256(texts: Sequence[str]) -> bool:
    """True if there are texts, and each is one SHA-256 as we write it."""
    joined = "".join(texts)
    return (
        set(map(len, texts)) == {_SHA256_LENGTH}
        and joined.isascii()
        and joined.lower() == joined
        and joined.isprintable()
        and " " not in joined  # so that each is one digest
        # A text between two with the same prefix has that prefix, too.
        and min(texts).startswith(_PREFIX)
        and max(texts).startswith(_PREFIX)
        and _is_hex(joined.replace(_PREFIX, ""))
    )


def _is_hex(text: str) -> bool:
    try:
        bytes.fromhex(text)
    except ValueError:
        return False
    return True


def _parse_one(token: str) -> Digest:
    name, _, value = token.partition(":")
    algorithm = name.lower()
    algorithm = _SPELLINGS.get(algorithm.replace("-", ""), algorithm)
    if algorithm in ALGORITHMS and len(value) == ALGORITHMS[algorithm]:
        value = value.lower()
    return Digest(algorithm, value)


def format_digests(digests: Sequence[Digest]) -> str:
    """Return a ``hash`` attribute: one blank between the tokens."""
    match digests:
        case [(algorithm, value)]:  # as most
            return f"{algorithm}:{value}"
        case _:
            return " ".join(f"{algorithm}:{value}" for algorithm, value in digests)


def has_strong(digests: Iterable[Digest]) -> bool:
    """True if one of the digests proves bytes from any location."""
    return any(digest.algorithm in STRONG and digest.is_usable for digest in digests)


def usable(digests: Iterable[Digest]) -> tuple[Digest, ...]:
    """Return the digests that can be checked, strongest first."""
    found = [digest for digest in digests if digest.is_usable]
    return tuple(sorted(found, key=lambda digest: _RANKS[digest.algorithm]))


def contradiction(
    iterable: Iterable[Digest], other: Iterable[Digest]
) -> tuple[Digest, Digest] | None:
    """Return the first two digests of one algorithm that both can check, with different values."""
    known = {digest.algorithm: digest for digest in iterable if digest.is_usable}
    for digest in other:
        if digest.is_usable and known.get(digest.algorithm, digest).value != digest.value:
            return known[digest.algorithm], digest
    return None


def disagree(iterable: Iterable[Digest], other: Iterable[Digest]) -> bool:
    """True if the two listings give different values for an algorithm that both can check."""
    return contradiction(iterable, other) is not None


def agree(iterable: Iterable[Digest], other: Iterable[Digest]) -> bool:
    """True if the two accounts share an algorithm and agree on every one they share."""
    left, right = tuple(iterable), tuple(other)
    shared = {d.algorithm for d in left if d.is_usable} & {
        d.algorithm for d in right if d.is_usable
    }
    return bool(shared) and not disagree(left, right)


REPRESENTATION: Final = "repr-digest"
"""Field of the digests of a whole representation, in its content coding (RFC 9530 §3)."""
CONTENT: Final = "content-digest"
"""Field of the digests of the bytes of one message (RFC 9530 §2)."""
FORMER: Final = "digest"
"""Field with the meaning of ``Repr-Digest`` in the RFC before (RFC 3230 §4.3.2)."""
WANTED: Final = "want-repr-digest"
"""Field of a request: the algorithms that its sender wants (RFC 9530 §4)."""

FIELD_ALGORITHMS: Final = ("sha-256", "sha-512")
"""The algorithms that are sent and checked: those that are active (RFC 9530 §5)."""

_MAX_LENGTH: Final = 4_096
_MAX_MEMBERS: Final = 32
_MAX_WEIGHT: Final = 10


def parse_digest_field(text: str) -> tuple[Digest, ...] | None:
    """Return the digests of a ``Repr-Digest`` or ``Content-Digest``; ``None`` if it is malformed.

    Other algorithms are left out. A digest of a wrong length is there, and is not usable.
    """
    members = _members(text)
    if members is None:
        return None
    found: list[Digest] = []
    for name in FIELD_ALGORITHMS:
        value = members.get(name)
        if isinstance(value, bytes):
            found.append(Digest(name, value.hex()))
        elif value is not None:
            return None
    return tuple(found)


def _parse_rfc_3230(text: str) -> tuple[Digest, ...] | None:
    found: list[Digest] = []
    for item in text[:_MAX_LENGTH].split(","):
        name, _, value = item.strip().partition("=")
        if name.lower() in FIELD_ALGORITHMS:
            try:
                found.append(Digest(name.lower(), b64decode(value, validate=True).hex()))
            except ValueError:
                return None
    return tuple(found)


def served_digests(headers: Mapping[str, str]) -> tuple[tuple[Digest, ...], bool]:
    """Return the digests of an answer that are of its whole body as sent; True: some are malformed.

    ``Content-Digest`` is of the bytes of one message: of a part, if the body came in parts.
    """
    fields = [(parse_digest_field, REPRESENTATION), (_parse_rfc_3230, FORMER)]
    if not headers.get("content-range", ""):
        fields.append((parse_digest_field, CONTENT))
    texts = [(parse, headers.get(name, "")) for parse, name in fields]
    read = [parse(text) for parse, text in texts if text]
    digests = [digest for item in read if item is not None for digest in item]
    good = usable(digests)
    return good, None in read or len(good) < len(digests)


def format_digest_field(digests: Sequence[Digest]) -> str:
    """Return the value of a ``Repr-Digest``; empty if none of the digests can be sent."""
    return ", ".join(
        f"{digest.algorithm}=:{b64encode(bytes.fromhex(digest.value)).decode('ascii')}:"
        for digest in digests
        if digest.algorithm in FIELD_ALGORITHMS and digest.is_usable
    )


def format_wanted(algorithm: str) -> str:
    """Return the value of a ``Want-Repr-Digest`` that wants one algorithm most."""
    return f"{algorithm}={_MAX_WEIGHT}"


def choose_digests(wanted: str, digests: Sequence[Digest]) -> tuple[Digest, ...]:
    """Return the digests to send for a ``Want-Repr-Digest`` (RFC 9530 §4).

    The one that is wanted most; all of them if none of these is named, or the field is empty or
    malformed. One with the weight 0 is not acceptable, and is not sent.
    """
    sendable = tuple(digest for digest in digests if digest.algorithm in FIELD_ALGORITHMS)
    weights = _weights(wanted) if wanted else {}
    named = [digest for digest in sendable if weights.get(digest.algorithm, 0) > 0]
    if named:
        return (max(named, key=lambda digest: weights[digest.algorithm]),)
    return tuple(digest for digest in sendable if digest.algorithm not in weights)


def _weights(text: str) -> dict[str, int]:
    members = _members(text) or {}
    found: dict[str, int] = {}
    for name, weight in members.items():
        if type(weight) is not int or not 0 <= weight <= _MAX_WEIGHT:  # true is one, too
            return {}
        found[name] = weight
    return found


def _members(text: str) -> Mapping[str, object] | None:
    from http_sf import parse  # noqa: PLC0415 - such a field is rare

    text = text.strip(" ")
    if len(text) > _MAX_LENGTH:
        return None
    try:
        found = parse(text.encode("ascii"), tltype="dictionary")
    except ValueError:
        return None
    assert isinstance(found, dict)
    members = {name: item[0] if isinstance(item, tuple) else item for name, item in found.items()}
    return members if len(members) <= _MAX_MEMBERS else None
