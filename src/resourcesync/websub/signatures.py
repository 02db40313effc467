"""Signatures of deliveries: HMAC over the raw bytes (WebSub §7.1)."""

import hashlib
import hmac
from collections.abc import Collection, Sequence
from typing import Final

METHODS: Final = ("sha1", "sha256", "sha384", "sha512")
"""Allowed methods of ``X-Hub-Signature``."""
DEFAULT_METHOD: Final = "sha256"
STRONG: Final = frozenset(METHODS) - {"sha1"}


def sign(secret: bytes, body: bytes, method: str = DEFAULT_METHOD) -> str:
    """Return the value of ``X-Hub-Signature`` for a body."""
    return f"{method}={hmac.new(secret, body, getattr(hashlib, method)).hexdigest()}"


def is_signed(
    secret: bytes, body: bytes, values: Sequence[str], methods: Collection[str] = STRONG
) -> bool:
    """True if a body has exactly one signature, and that is valid.

    The time of the comparison does not depend on the position of a wrong byte.

    Args:
        secret: The shared secret.
        body: The bytes as they came.
        values: The values of all ``X-Hub-Signature`` fields.
        methods: The accepted methods.
    """
    if len(values) != 1:
        return False
    method = values[0].partition("=")[0]
    if method not in methods or method not in METHODS:
        return False
    right = sign(secret, body, method)
    return hmac.compare_digest(values[0].encode("utf-8", "surrogateescape"), right.encode())
