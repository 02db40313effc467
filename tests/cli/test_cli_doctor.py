"""``doctor``: what it looks at, in a real mirror and at a real server."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.commands.settings_file import AUTH, museum, put
from tests.support.servers.hostile_server import HostileServer
from tests.support.servers.tiny_source import TinySource, dead_address


def verdicts(said: Said) -> dict[str, dict[str, Any]]:
    return {row["check"]: row for row in rows(said) if row["type"] == "verdict"}


def files_in(mirror: str) -> list[str]:
    # SQLite's own two files beside the memory come and go with whoever reads it.
    return sorted(str(path) for path in Path(mirror).rglob("*") if "state.db-" not in path.name)


@pytest.fixture
def mirror(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def test_where_no_folder_can_be_made_is_a_problem(said: Said) -> None:
    Path("file").write_text("in the way")

    assert run(["doctor", "file/museum", "--json"]) == 1
    assert "Not a directory" in verdicts(said)["writing"]["text"]


def test_a_source_that_does_not_answer_is_a_problem(said: Said) -> None:
    with dead_address() as address:
        assert run(["doctor", address, "--json"]) == 1

    assert "does not answer" in verdicts(said)["clock"]["text"]


def test_a_configured_mirror_is_looked_at_by_its_name(source: TinySource, said: Said) -> None:
    put(museum(source, 'auth = "key"') + AUTH)  # the secret is not there, nor needed

    assert run(["doctor", "museum", "--json"]) == 0

    found = verdicts(said)
    assert "will be created, can be written" in found["writing"]["text"]
    assert "tls" in found
    assert {asked.target for asked in source.asked} == {"/robots.txt"}


def test_nothing_to_look_at_is_a_matter_of_usage(said: Said) -> None:
    assert run(["doctor"]) == 2
    assert "name a mirror or a Source" in said.readouterr().err


# --- TLS ---


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with HostileServer(tls=context) as server:
        yield server.origin


def test_a_certificate_is_read_and_its_days_are_counted(
    secure: str, authority: trustme.CA, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path("ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")

    assert run(["doctor", secure, "--json"]) == 0

    tls = verdicts(said)["tls"]
    assert tls["level"] == "ok"
    assert tls["text"].startswith("TLSv1.3, the certificate expires in ")


def test_no_renewal_is_advised_for_a_certificate_of_another_name(
    authority: trustme.CA, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path("ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.example").configure_cert(context)
    with HostileServer(tls=context) as server:
        assert run(["doctor", server.origin, "--json"]) == 1

    tls = verdicts(said)["tls"]
    assert "for another name (IP address mismatch, " in tls["text"]
    assert "certificate with this name" in tls["next"]


def test_a_certificate_that_nobody_vouches_for_is_a_problem(secure: str, said: Said) -> None:
    assert run(["doctor", secure, "--json"]) == 1

    tls = verdicts(said)["tls"]
    assert (tls["level"], "self-signed" in tls["text"] or "issuer" in tls["text"]) == (
        "problem",
        True,
    )
