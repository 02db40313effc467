"""Authorities of one's own, in place of the system's; real sockets on loopback (N29)."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from resourcesync.errors import ConfigurationError
from tests.support.servers.fetching import failure, fetch_one, quick_fetcher
from tests.support.servers.hostile_server import HostileServer


def tls(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def revoked() -> bytes:
    """Return what is good PEM, but holds no certificate: a list of those that are revoked."""
    now = datetime(2026, 11, 21, tzinfo=UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    dates = x509.CertificateRevocationListBuilder().last_update(now)
    made = dates.next_update(now + timedelta(days=1)).issuer_name(name)
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("kind", ["missing", "folder", "text", "empty", "list of revoked"])
def test_a_file_of_authorities_that_cannot_be_used_is_a_mistake(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ca.pem"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        bodies = {"text": b"no certificate", "empty": b"", "list of revoked": revoked()}
        path.write_bytes(bodies[kind])

    with pytest.raises(ConfigurationError) as caught:
        quick_fetcher(ca_file=str(path))

    assert str(path) in caught.value.message
    assert "-o ca_file=FILE" in caught.value.hint


def test_a_file_of_authorities_without_end_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="not a regular file"):
        quick_fetcher(ca_file="/dev/zero")


def test_a_huge_file_of_authorities_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    with path.open("wb") as stream:
        stream.truncate(16 * 1024 * 1024 + 1)

    with pytest.raises(ConfigurationError, match="more than"):
        quick_fetcher(ca_file=str(path))


def test_a_certificate_that_expired_is_called_so(authority: trustme.CA, ca_file: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    past = datetime.now(UTC) - timedelta(days=1)
    expired = authority.issue_cert(
        "127.0.0.1", not_before=past - timedelta(days=90), not_after=past
    )
    expired.configure_cert(context)
    with HostileServer(tls=context) as server:
        refused = failure(
            fetch_one(quick_fetcher(server.origin, ca_file=ca_file), f"{server.origin}/x")
        )

    assert refused.error.code == "tls"
    assert refused.error.message == "the certificate of the server has expired"
    assert "must renew it" in refused.error.hint
