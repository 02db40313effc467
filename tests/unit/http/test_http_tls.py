"""TLS of the fetcher, on loopback (N29)."""

import os
import socket
import ssl
import threading
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from resourcesync.adapters.http.transfer import parse_certificate_time
from resourcesync.errors import ConfigurationError, SourceRefusedError, SourceUnavailableError
from resourcesync.ports import Purpose
from tests.support.servers.fetching import (
    failure,
    fetch_all,
    fetch_one,
    kept,
    quick_fetcher,
    request,
    response,
)
from tests.support.servers.hostile_server import HostileServer, answer


def tls_context(
    authority: trustme.CA, name: str, not_after: datetime | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, not_after=not_after).configure_cert(context)
    return context


def test_a_trusted_server_is_fetched_over_tls(authority: trustme.CA, ca_file: str) -> None:
    with HostileServer(tls=tls_context(authority, "127.0.0.1")) as server:
        server.on("*", answer(body=b"x"))
        fetcher = quick_fetcher(server.origin, ca_file=ca_file)

        outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(10)])

    assert all(kept(response(outcome)) == b"x" for outcome in outcomes)


def test_the_first_end_of_a_certificate_of_the_servers_of_lists_is_known(
    authority: trustme.CA, ca_file: str
) -> None:
    def until(year: int) -> datetime:
        return datetime(year, 3, 9, 23, 59, 58, tzinfo=UTC)

    home = tls_context(authority, "127.0.0.1", until(2031))
    copies = tls_context(authority, "127.0.0.2", until(2029))
    with HostileServer(tls=home) as lists, HostileServer("127.0.0.2", tls=copies) as other:
        for server in (lists, other):
            server.on("*", answer(body=b""))
        fetcher = quick_fetcher(lists.origin, other.origin, ca_file=ca_file, robots="obey")
        found = [fetcher.stats.certificate_until]
        requests = [
            (other, Purpose.RESOURCE),
            (lists, Purpose.RESOURCE),  # this opens the connection, by which the list comes, too
            (lists, Purpose.DOCUMENT),
            (lists, Purpose.DOCUMENT),
            (other, Purpose.DOCUMENT),
        ]
        for server, purpose in requests:
            response(fetch_one(fetcher, request(f"{server.origin}/x", purpose)))
            found.append(fetcher.stats.certificate_until)

    assert found == [None, None, None, until(2031), until(2031), until(2029)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"Jan  5 09:34:43 2038 GMT", datetime(2038, 1, 5, 9, 34, 43, tzinfo=UTC)),
        (b"Dec 31 23:59:59 9999 GMT", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b"Jan  5 09:34:43 2038 CET", None),
        (b"Foo  5 09:34:43 2038 GMT", None),
        (b"Feb 30 09:34:43 2038 GMT", None),
        (b"20380105093443Z", None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_a_time_of_a_certificate_is_read_or_unknown(text: bytes, found: datetime | None) -> None:
    assert parse_certificate_time(text) == found


SAID = {
    "wrong host": (
        "for another name (SSL: no alternative certificate",
        "certificate with this name",
    ),
    "expired": ("the certificate of the server has expired", "must renew it"),
    "unknown authority": ("no trusted TLS connection is possible (", "-o ca_file=FILE"),
    "old version": ("no trusted TLS connection is possible (", ""),
}


@pytest.mark.parametrize("fault", SAID)
def test_a_server_that_cannot_be_trusted_is_refused(
    authority: trustme.CA, ca_file: str, fault: str
) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    name = "example.org" if fault == "wrong host" else "127.0.0.1"
    issuer = trustme.CA() if fault == "unknown authority" else authority
    context = tls_context(issuer, name, past if fault == "expired" else None)
    if fault == "old version":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.maximum_version = ssl.TLSVersion.TLSv1_1

    with HostileServer(tls=context) as server:
        server.on("/x", answer(body=b"x"))
        fetcher = quick_fetcher(server.origin, ca_file=ca_file)
        outcome = failure(fetch_one(fetcher, server.origin + "/x"))

    assert isinstance(outcome.error, SourceRefusedError)
    assert (outcome.error.code, outcome.tries) == ("tls", 1)
    assert not server.asked
    said, step = SAID[fault]
    assert said in outcome.error.cause
    assert step in outcome.error.hint
    assert ("renew" in outcome.error.hint) == (fault == "expired")


def test_a_tls_handshake_that_does_not_come_is_given_up() -> None:
    with HostileServer() as mute:
        origin = mute.origin.replace("http:", "https:")
        fetcher = quick_fetcher(origin, connect_timeout=0.2, retries=0, timeout=5.0)

        outcome = failure(fetch_one(fetcher, origin + "/x"))

    assert isinstance(outcome.error, SourceUnavailableError)
    assert outcome.error.code == "timeout"


def hang_up_on_the_first(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    connection.close()


def test_a_tls_handshake_that_is_cut_short_may_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closer = threading.Thread(target=hang_up_on_the_first, args=(listener,))
        closer.start()
        origin = f"https://127.0.0.1:{listener.getsockname()[1]}"

        outcome = failure(fetch_one(quick_fetcher(origin, retries=0), origin + "/x"))
        closer.join()

    assert isinstance(outcome.error, SourceUnavailableError)
    assert outcome.error.code == "reset"


# --- authorities of one's own, in place of the system's; real sockets on loopback (N29) ---------


def revoked() -> bytes:
    """Return what is good PEM, but holds no certificate: a list of those that are revoked."""
    now = datetime(2026, 11, 21, tzinfo=UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    dates = x509.CertificateRevocationListBuilder().last_update(now)
    made = dates.next_update(now + timedelta(days=1)).issuer_name(name)
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize(
    "kind", ["missing", "folder", "text", "empty", "list of revoked", "huge", "without end"]
)
def test_a_file_of_authorities_that_cannot_be_used_is_a_mistake(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ca.pem"
    bodies = {"text": b"no certificate", "empty": b"", "list of revoked": revoked(), "huge": b""}
    if kind == "folder":
        path.mkdir()
    elif kind == "without end":
        path = Path("/dev/zero")
    elif kind != "missing":
        path.write_bytes(bodies[kind])
    if kind == "huge":
        os.truncate(path, 16 * 1024 * 1024 + 1)
    reason = {"huge": "more than", "without end": "not a regular file"}.get(kind, ".")

    with pytest.raises(ConfigurationError, match=reason) as caught:
        quick_fetcher(ca_file=str(path))

    assert str(path) in caught.value.message
    assert "-o ca_file=FILE" in caught.value.hint
