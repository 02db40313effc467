"""``doctor``: what it looks at, in a real mirror and at a real server."""

import ssl
from typing import Any

import pytest
import trustme

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.hostile_server import HostileServer


def verdicts(said: Said) -> dict[str, dict[str, Any]]:
    return {row["check"]: row for row in rows(said) if row["type"] == "verdict"}


def test_a_certificate_is_read_and_its_days_are_counted(
    secure: HostileServer, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")

    assert run(["doctor", secure.origin, "--json"]) == 0

    tls = verdicts(said)["tls"]
    assert tls["level"] == "ok"
    assert tls["text"].startswith("TLSv1.3, the certificate expires in ")


def test_no_renewal_is_advised_for_a_certificate_of_another_name(
    authority: trustme.CA, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.example").configure_cert(context)
    with HostileServer(tls=context) as server:
        assert run(["doctor", server.origin, "--json"]) == 1

    tls = verdicts(said)["tls"]
    assert "for another name (IP address mismatch, " in tls["text"]
    assert "certificate with this name" in tls["next"]


def test_a_certificate_that_nobody_vouches_for_is_a_problem(
    secure: HostileServer, said: Said
) -> None:
    assert run(["doctor", secure.origin, "--json"]) == 1

    tls = verdicts(said)["tls"]
    assert (tls["level"], "self-signed" in tls["text"] or "issuer" in tls["text"]) == (
        "problem",
        True,
    )
