"""Judges messages of WebSub and the answers to them (Notification, WebSub).

No command sees them: they pass between a hub and a receiver. A program that stands there, such as
the test of a hub, hands them over.
"""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from resourcesync.validator._telling import without_place
from resourcesync.validator.findings import Finding

_METHODS: Final = frozenset({"sha1", "sha256", "sha384", "sha512"})
_OK: Final = range(200, 300)


def judge_message_links(uri: str, links: Mapping[str, int]) -> Iterator[Finding]:
    """Judge how many ``self`` and ``hub`` links a message carries (WebSub §7).

    Args:
        uri: Where the message was met.
        links: How many links of each relation its Link header has.
    """
    if links.get("self", 0) != 1:
        yield without_place("NT02", f"{links.get('self', 0)} self links instead of one", uri)
    if not links.get("hub", 0):
        yield without_place("NT02", "no hub link", uri)


def judge_signature(uri: str, *, secret: bytes, header: str, body: bytes) -> Iterator[Finding]:
    """Judge the signature of a message for which a secret was agreed (WebSub §7.1).

    Args:
        uri: Where the message was met.
        secret: The agreed secret.
        header: ``X-Hub-Signature`` as received; empty when there was none.
        body: The bytes of the message.
    """
    method, _, digest = header.strip().partition("=")
    if method.lower() not in _METHODS:
        found = f"a signature by {method[:40]!r}" if header else "no signature"
        yield without_place("NT03", f"{found} though a secret was agreed", uri)
        return
    right = hmac.new(secret, body, getattr(hashlib, method.lower())).hexdigest()
    if not hmac.compare_digest(right.encode(), digest.strip().lower().encode()):
        yield without_place("NT03", "the signature is not that of the body", uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """How a receiver answered when a hub asked whether it wants a topic (WebSub §5.3).

    Attributes:
        callback: The receiver's address.
        pending: Whether it had asked for this.
        challenge: What it was to repeat.
        status, body: Its answer.
        lease_seconds: How long the hub will keep the subscription; ``None`` when it did not say.
    """

    callback: str
    pending: bool
    challenge: bytes
    status: int
    body: bytes
    lease_seconds: int | None = None


def judge_verification(it: Verification) -> Iterator[Finding]:
    """Judge the answer of a receiver, and the lease that it was told (WebSub §5.3)."""
    agreed = it.status in _OK and it.body == it.challenge
    if it.pending and not agreed:
        yield without_place("NT04", "it does not repeat the challenge", it.callback)
    if not it.pending and it.status != 404:  # noqa: PLR2004 - WebSub names this status
        message = f"it answers {it.status} to what it did not ask for"
        yield without_place("NT04", message, it.callback)
    if it.pending and not it.lease_seconds:
        yield without_place("NT05", "the hub grants a subscription without an end", it.callback)
