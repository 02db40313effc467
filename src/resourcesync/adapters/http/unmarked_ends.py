"""Bodies that end with their connection, whole or cut (RFC 9112 §6.3): what proves them whole."""

import re
from collections.abc import Mapping

import pycurl

from resourcesync.model.digests import FIELD_ALGORITHMS, Digest, agree, new_hashers, served_digests
from resourcesync.ports import Proof

_TLS_LIBRARY = re.search(r"\bOpenSSL/([0-9]+)\.", pycurl.version)
_TLS_MARKS_ENDS = _TLS_LIBRARY is not None and int(_TLS_LIBRARY[1]) > 2  # noqa: PLR2004 - a version
"""OpenSSL 3 fails where a connection ends without the message that ends it."""


class UnmarkedBody:
    """The digests of a body that ends with its connection."""

    def __init__(self) -> None:
        self._hashers = new_hashers(FIELD_ALGORITHMS)

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes."""
        for hasher in self._hashers.values():
            hasher.update(chunk)

    def open_question(self, headers: Mapping[str, str], proof: Proof, *, is_secure: bool) -> bytes:
        """Return the digest with which the body must come twice; empty if it is proven whole.

        It is by what the list says of it, by the end of TLS, or by a digest that came with it.
        """
        found = [Digest(name, hasher.hexdigest()) for name, hasher in self._hashers.items()]
        is_marked = is_secure and _TLS_MARKS_ENDS
        if proof is not Proof.NONE or is_marked or agree(found, served_digests(headers)[0]):
            return b""
        digest: bytes = self._hashers[FIELD_ALGORITHMS[0]].digest()
        return digest
