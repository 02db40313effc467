"""The digest fields of HTTP (RFC 9530): ``Repr-Digest``, ``Content-Digest``, ``Want-Repr-Digest``.

Each is a Dictionary of structured fields (RFC 9651 §3.2). A field that breaks the grammar is
malformed as a whole, as the RFC has it. Only ``sha-256`` and ``sha-512`` count: all others that are
registered are deprecated, or no proof of anything (RFC 9530 §5). All functions take linear time.
The ``Digest`` that they replace (RFC 3230) is read, and not written.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from resourcesync.model.digests import Digest, usable

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


def _parse_former_field(text: str) -> tuple[Digest, ...] | None:
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
    fields = [(parse_digest_field, REPRESENTATION), (_parse_former_field, FORMER)]
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
    """Return the weight of each algorithm; nothing of a field that is malformed."""
    members = _members(text) or {}
    found: dict[str, int] = {}
    for name, weight in members.items():
        if type(weight) is not int or not 0 <= weight <= _MAX_WEIGHT:  # true is one, too
            return {}
        found[name] = weight
    return found


def _members(text: str) -> Mapping[str, object] | None:
    """Return the members of a Dictionary without parameters; ``None`` if it is malformed."""
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
