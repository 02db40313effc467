"""The end of a body: marked, proven, or read twice; raw sockets on loopback (B2)."""

import base64
import hashlib
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from resourcesync.ports import FetchRequest, Purpose
from resourcesync.ports.validators_and_dates import validators_of
from tests.support.servers.fetching import (
    failure,
    fetch_one,
    kept,
    quick_fetcher,
    request,
    response,
)
from tests.support.servers.hostile_server import CLEAN_CLOSE, CLOSE, HostileServer, Step, answer

BODY = bytes(range(256)) * 200
CUT = BODY[:20_000]
DATED = {
    "ETag": '"v1"',
    "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT",
    "Date": "Sat, 21 Nov 2026 00:00:00 GMT",
}


def unmarked(body: bytes, **fields: str) -> list[Step]:
    """Answer without a length and without chunks; the end of the connection ends the body."""
    return [*answer(body=body, length=None, **DATED, **fields), CLOSE]


def digest(body: bytes) -> str:
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def fetched(server: HostileServer, asked: FetchRequest | str, **settings: Any) -> bytes:
    return kept(response(fetch_one(quick_fetcher(server.origin, **settings), asked)))


@pytest.mark.parametrize("purpose", [Purpose.RESOURCE, Purpose.DOCUMENT])
def test_a_body_whose_end_is_not_marked_is_whole_if_two_readings_are_equal(
    server: HostileServer, purpose: Purpose
) -> None:
    uri = server.on("/x", unmarked(CUT), unmarked(BODY), unmarked(BODY))

    outcome = response(fetch_one(quick_fetcher(server.origin), request(uri, purpose)))

    assert (kept(outcome), outcome.received, len(server.asked)) == (BODY, len(BODY), 3)
    assert validators_of(outcome.headers) == ("", ""), "it may still be a cut one"


def test_readings_that_are_never_equal_are_a_failure_that_may_pass(server: HostileServer) -> None:
    uri = server.on("/x", *(unmarked(BODY[:at]) for at in range(1_000, 1_020)))

    outcome = failure(fetch_one(quick_fetcher(server.origin), uri))

    assert (outcome.error.code, outcome.error.transient) == ("unmarked-end", True)
    assert len(server.asked) == 4, "two readings, and the retries"


@pytest.mark.parametrize(
    "fields",
    [
        {"Repr_Digest": f"sha-256=:{digest(BODY)}:"},
        {"Content_Digest": f"sha-256=:{digest(BODY)}:"},
        {"Digest": f"md5=HUXZLQLMuI/KZ5KDcJPcOA==,SHA-256={digest(BODY)}"},
    ],
)
def test_the_digest_of_an_answer_tells_whether_it_is_whole(
    server: HostileServer, fields: dict[str, str]
) -> None:
    uri = server.on("/x", unmarked(CUT, **fields), unmarked(BODY, **fields))

    assert (fetched(server, uri), len(server.asked)) == (BODY, 2)


@pytest.mark.parametrize(("end", "times"), [(CLEAN_CLOSE, 1), (CLOSE, 2)])
def test_a_connection_that_tls_ends_cleanly_ends_the_body(
    tmp_path: Path, end: str, times: int
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with HostileServer(tls=context) as server:
        uri = server.on("/x", [*answer(body=BODY, length=None), end], answer(body=BODY))

        body = fetched(server, uri, ca_file=str(tmp_path / "ca.pem"))

    assert (body, len(server.asked)) == (BODY, times)
