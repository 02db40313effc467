"""``doctor``: what it looks at, in a real mirror and at a real server."""

import re
import ssl

import pytest
import trustme

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.hostile_server import HostileServer


@pytest.mark.parametrize(
    ("name", "is_trusted", "level", "words"),
    [
        ("127.0.0.1", True, "ok", "^TLSv1.3, the certificate expires in "),
        ("other.example", True, "problem", r"for another name \(IP address mismatch, "),
        ("127.0.0.1", False, "problem", "self-signed|issuer"),
    ],
    ids=["right", "of another name", "of an unknown authority"],
)
def test_a_certificate_is_judged_and_a_renewal_is_advised_only_where_it_helps(
    name: str,
    level: str,
    words: str,
    authority: trustme.CA,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_trusted: bool,
) -> None:
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    with HostileServer(tls=context) as server:
        assert run(["doctor", server.origin, "--json"]) == 1, "it has no lists"

    (tls,) = [row for row in rows(said) if row["type"] == "verdict" and row["check"] == "tls"]
    assert tls["level"] == level
    assert re.search(words, tls["text"])
    assert ("certificate with this name" in tls["next"]) is (name == "other.example")
