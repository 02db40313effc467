"""What is sent by POST, and what is asked for in the manner of messages."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.adapters.system import SystemClock
from resourcesync.errors import BadResponseError, SourceRefusedError
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Message, Purpose
from tests.support.servers.fetching import KeepingSink, kept, quick_fetcher
from tests.support.servers.hostile_server import HostileServer, answer

FIELDS = (("Content-Type", "application/xml"), ("X-Hub-Signature", "sha256=00"))


def message(uri: str, body: bytes = b"<x/>") -> FetchRequest:
    said = Message(body=body, fields=FIELDS)
    return FetchRequest(uri=uri, sink=KeepingSink(), purpose=Purpose.MESSAGE, message=said)


def sent(asked: FetchRequest, **settings: Any) -> FetchResponse | FetchFailure:
    fetcher = quick_fetcher(asked.uri.rsplit("/", 1)[0], **settings)
    [outcome] = fetcher.fetch([asked])
    fetcher.close()
    return outcome


def test_a_message_is_posted_once_with_its_fields_and_nothing_is_asked_before() -> None:
    with HostileServer() as server:
        server.on("/hub", answer("204 No Content", length=None))
        outcome = sent(message(f"{server.origin}/hub"), robots="obey")

    assert isinstance(outcome, FetchResponse)
    assert outcome.status == 204
    [asked] = server.asked
    assert asked.text.startswith("POST /hub HTTP/1.1\r\n")
    assert asked.fields["content-type"] == "application/xml"
    assert asked.fields["x-hub-signature"] == "sha256=00"
    assert asked.fields["content-length"] == "4"
    assert "expect" not in asked.fields


@pytest.mark.parametrize("status", [200, 202, 301, 307, 308, 400, 404, 410, 429, 500, 503])
def test_every_answer_to_a_message_ends_it_however_long_and_none_is_followed(status: int) -> None:
    with HostileServer() as server:
        body = b"x" * (1_000_000 if status == 200 else 4)
        server.on("/hub", answer(f"{status} It", body, Location="/elsewhere"))
        outcome = sent(message(f"{server.origin}/hub"))

    assert isinstance(outcome, FetchResponse)
    assert (outcome.status, outcome.tries) == (status, 1)
    assert outcome.headers.get("location") == "/elsewhere"
    assert kept(outcome) == b""
    assert len(server.asked) == 1


def test_an_answer_to_a_question_is_at_most_as_long_as_asked() -> None:
    with HostileServer() as server:
        server.on("/me", answer("200 OK", b"x" * 101))
        uri, to = f"{server.origin}/me", Purpose.MESSAGE
        outcome = sent(FetchRequest(uri=uri, sink=KeepingSink(), purpose=to, limit=100))

    assert isinstance(outcome, FetchFailure)
    assert isinstance(outcome.error, BadResponseError)


def test_a_message_does_not_reach_a_private_address_unless_it_may() -> None:
    fetcher = CurlFetcher(FetchSettings(allow_private="never"), SystemClock(), Random(1))
    with HostileServer() as server:
        port = server.origin.rpartition(":")[2]
        asked = [message(f"{server.origin}/x"), message(f"http://localhost:{port}/x")]
        outcomes = list(fetcher.fetch(asked))
    fetcher.close()

    assert not server.asked
    for outcome in outcomes:
        assert isinstance(outcome, FetchFailure)
        assert isinstance(outcome.error, SourceRefusedError)
        assert outcome.error.code == "egress"


def test_none_among_the_requests_is_asked_again_while_others_are_in_flight() -> None:
    asked: list[FetchRequest | None] = []

    def requests(origin: str) -> Iterator[FetchRequest | None]:
        yield message(f"{origin}/slow")
        for _ in range(3):
            asked.append(None)
            yield None
        yield message(f"{origin}/quick")

    with HostileServer() as server:
        server.on("/slow", [0.4, *answer("200 OK")])
        server.on("/quick", answer("200 OK"))
        fetcher = quick_fetcher(server.origin, timeout=5.0)
        outcomes = list(fetcher.fetch(requests(server.origin)))
        fetcher.close()

    assert [outcome.request.uri.rpartition("/")[2] for outcome in outcomes] == ["quick", "slow"]
    assert len(asked) == 3
