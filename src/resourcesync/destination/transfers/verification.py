"""Verification: the length and the digests of received bytes, compared with the listed ones."""

from typing import Final

from resourcesync.destination.planner import ListedEntry
from resourcesync.model.digests import STRONG, agree, disagree, parse_digests, usable
from resourcesync.ports.mirror import Fixity

_ONE_STRONG: Final = "sha-256:"


def verify_bytes(
    listed: ListedEntry, length: int, digests: str
) -> tuple[Fixity, tuple[str, str, str] | None]:
    """Return how well received bytes are proven, and their mismatch if there is one.

    Args:
        listed: The Source's entry.
        length: Bytes received.
        digests: Their digests, as in a ``hash`` attribute.

    Returns:
        The fixity, and ``None`` or ``(code, expected, actual)`` of a mismatch.
    """
    if listed.hash == digests and digests.startswith(_ONE_STRONG) and listed.length == length:
        return Fixity.VERIFIED, None  # the common case, without parsing the digests
    if listed.rivals:
        rivals = (
            listed._replace(hash=rival[0], length=rival[1], rivals=()) for rival in listed.rivals
        )
        judged = [verify_bytes(rival, length, digests) for rival in rivals]
        return next((item for item in judged if item[1] is None), judged[-1])
    if listed.length is not None and listed.length != length:
        return Fixity.UNVERIFIED, ("length-mismatch", f"{listed.length} B", f"{length} B")
    claims = usable(parse_digests(listed.hash))
    found = parse_digests(digests)
    if claims and disagree(found, claims):
        actual = next((str(d) for d in found if d.algorithm == claims[0].algorithm), digests)
        return Fixity.UNVERIFIED, ("hash-mismatch", str(claims[0]), actual)
    if claims and agree(found, claims):
        strong = any(claim.algorithm in STRONG for claim in claims)
        return (Fixity.VERIFIED if strong else Fixity.WEAK), None
    return (Fixity.WEAK if listed.length is not None else Fixity.UNVERIFIED), None


def describe_mismatch(wrong: tuple[str, str, str]) -> str:
    """Return the sentence for a mismatch found by ``verify_bytes``."""
    _, expected, actual = wrong
    return f"the list says {expected}, the Source served {actual}"
