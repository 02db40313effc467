"""What a hub allows, and whom it serves."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from resourcesync.errors import ConfigurationError
from resourcesync.websub import leases, signatures
from resourcesync.websub.messages import is_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRules:
    """What a hub allows.

    Attributes:
        address: The hub's own URI.
        topics: The only topics it serves.
        key: Signs what publishers submit; empty takes no signed submission.
        takes_unsigned: Whether anybody may submit, as in LANL's prototype; for closed networks.
        method: How deliveries are signed.
        plain_secrets: Whether a secret may come over plain HTTP from another machine.
        shortest, longest: Bounds of a lease, in seconds.
        most_subscriptions, most_intents: Subscriptions, and wishes that wait to be confirmed.
        per_peer: Requests to subscribe that one address may send in a minute.
        per_origin: Wishes in a minute for callbacks of one origin.
        pings: Plain pings in a minute, and submissions in a second.
        at_once: Deliveries at a time to those whose last one arrived; half as many more go to the
            others.
        per_host: Deliveries at a time to one origin.
    """

    address: str
    topics: frozenset[str]
    key: bytes = field(default=b"", repr=False)
    accepts_unsigned: bool = False
    method: str = signatures.DEFAULT_METHOD
    plain_secrets: bool = False
    shortest: int = leases.SHORTEST_LEASE
    longest: int = leases.LONGEST_LEASE
    most_subscriptions: int = 100_000
    most_intents: int = 1_000
    per_peer: int = 120
    per_origin: int = 120
    pings: int = 30
    at_once: int = 64
    per_host: int = 8

    def __post_init__(self) -> None:
        for uri in (self.address, *self.topics):
            if not uri.startswith(("http://", "https://")) or not is_plain(uri) or "<" in uri:
                raise ConfigurationError(f"{uri!r} cannot be the address of a hub or of a topic")
        if self.method not in signatures.METHODS:
            known = ", ".join(signatures.METHODS)
            raise ConfigurationError(f"deliveries are signed by one of {known}")

    @property
    def accepts_secrets(self) -> bool:
        """Whether a secret that is sent to this hub stays one."""
        parts = urlsplit(self.address)
        is_here = parts.hostname in {"127.0.0.1", "::1", "localhost"}
        return self.plain_secrets or is_here or parts.scheme == "https"
