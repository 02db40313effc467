"""Recorded messages of a hub are read byte by byte and judged, whatever stands in the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import DocumentError, DocumentLimitError, TruncatedDocumentError
from resourcesync.validator.notifications import (
    LARGEST,
    Answer,
    is_recorded_message,
    judge_message,
    read_message,
)
from resourcesync.websub.messages import link_field, sign

BODY = b"<urlset/>\n"
LINKS = link_field("https://e.example/topic", ["https://e.example/hub"]).encode()
SIGNED = sign(b"secret", BODY).encode()
ASKED = "hub.mode=subscribe&hub.topic=https%3A%2F%2Fe.example%2Ftopic&hub.challenge=abc%20d"


def post(*fields: bytes, body: bytes = BODY) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"POST /me?a=b HTTP/1.1", *fields, length, b"", body])


def asked(query: str, answer: bytes = b"") -> bytes:
    return f"GET /me?{query} HTTP/1.1\r\nHost: e.example\r\n\r\n".encode() + answer


def answered(status: int, body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d Why\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def broken(data: bytes, secret: bytes | None = None) -> list[str]:
    message = read_message(data, "it.http")
    return [finding.rule.id for finding in judge_message(message, "it.http", secret)]


def test_a_message_is_read_with_its_answer() -> None:
    message = read_message(post(b"Link: " + LINKS, b"x-a: 1", b"X-A: 2") + answered(204), "it")

    assert (message.method, message.target, message.body) == ("POST", "/me?a=b", BODY)
    assert message.fields["x-a"] == ("1", "2")
    assert message.line == 7
    assert message.answer == Answer(status=204, body=b"")


def test_a_message_without_a_length_ends_with_its_file_and_its_lines_may_end_as_they_like() -> None:
    message = read_message(b"POST / HTTP/1.1\nLink: <a>\n\n" + BODY, "it.http")

    assert (message.body, message.fields, message.line) == (BODY, {"link": ("<a>",)}, 4)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([b"Link: " + LINKS], []),
        ([b"Link: " + chunk for chunk in LINKS.split(b", ")], []),
        ([], ["NT02", "NT02"]),
        ([b'Link: <https://e.example/hub>; rel="hub"'], ["NT02"]),
        ([b'Link: <https://e.example/topic>; rel="self"'], ["NT02"]),
        ([b"Link: " + LINKS, b'Link: <https://e.example/b>; rel="self"'], ["NT02"]),
    ],
)
def test_a_notification_names_one_topic_and_a_hub(links: list[bytes], expected: list[str]) -> None:
    assert broken(post(*links)) == expected


@pytest.mark.parametrize(
    ("signature", "secret", "expected"),
    [
        (SIGNED, b"secret", []),
        (SIGNED, b"another", ["NT03"]),
        (b"sha256=00", b"secret", ["NT03"]),
        (None, b"secret", ["NT03"]),
        (SIGNED, None, []),
        (None, None, []),
    ],
)
def test_a_signature_is_held_against_the_secret_where_it_is_known(
    signature: bytes | None, secret: bytes | None, expected: list[str]
) -> None:
    fields = [b"Link: " + LINKS]
    fields += [] if signature is None else [b"X-Hub-Signature: " + signature]

    assert broken(post(*fields), secret) == expected


@pytest.mark.parametrize(
    ("query", "answer", "expected"),
    [
        (f"{ASKED}&hub.lease_seconds=60", answered(200, b"abc d"), []),
        (f"{ASKED}&hub.lease_seconds=60", answered(404, b"what?"), []),
        (f"{ASKED}&hub.lease_seconds=60", b"", []),
        (f"{ASKED}&hub.lease_seconds=60", answered(200, b"abc+d"), ["NT04"]),
        (f"{ASKED}&hub.lease_seconds=60", answered(500), ["NT04"]),
        (ASKED, answered(200, b"abc d"), ["NT05"]),
        (f"{ASKED}&hub.lease_seconds=0", b"", ["NT05"]),
        (f"{ASKED}&hub.lease_seconds=ever", b"", ["NT05"]),
        (ASKED, answered(404), []),
        (ASKED.replace("=sub", "=unsub"), answered(200, b"abc d"), []),
        (ASKED.replace("=sub", "=unsub"), answered(200), ["NT04"]),
        ("hub.mode=denied&hub.topic=a", answered(500), []),
        ("&".join("ab"[number % 2] for number in range(999)), b"", []),
    ],
)
def test_a_verification_is_answered_with_its_challenge_and_tells_its_end(
    query: str, answer: bytes, expected: list[str]
) -> None:
    assert broken(asked(query, answer)) == expected


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", DocumentError),
        (b"PUT / HTTP/1.1\r\n\r\n", DocumentError),
        (b"POST / HTTP/1.1\r\nLink: a", TruncatedDocumentError),
        (b"POST / HTTP/1.1\r\nno field\r\n\r\n", DocumentError),
        (b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n", DocumentError),
        (b"POST / HTTP/1.1\r\na: " + b"b" * 70_000 + b"\r\n\r\n", DocumentError),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", DocumentError),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", DocumentError),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", DocumentError),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", DocumentError),
        (b"GET / HTTP/1.1\r\n\r\nmore", DocumentError),
        (post()[:-1], TruncatedDocumentError),
        (post() + b"more", DocumentError),
        (post() + answered(204) + answered(204), DocumentError),
        (post() + b"HTTP/1.1 200 OK\r\n", TruncatedDocumentError),
        (post(body=b"a" * LARGEST), DocumentLimitError),
    ],
)
def test_what_is_no_whole_message_is_an_error_that_says_where(
    data: bytes, kind: type[DocumentError]
) -> None:
    with pytest.raises(DocumentError) as caught:
        read_message(data, "it.http")

    assert type(caught.value) is kind
    assert caught.value.uri == "it.http"


@given(st.binary(max_size=200), st.integers(0, 300))
def test_any_bytes_are_a_message_or_an_error(noise: bytes, at: int) -> None:
    whole = asked(ASKED, answered(200, b"abc d"))
    for data in (noise, whole[:at] + noise + whole[at:], whole[:at], post()[:at] + noise):
        try:
            broken(data, b"secret")
        except DocumentError:
            continue
        assert is_recorded_message(data)


def test_documents_and_packages_do_not_look_like_messages() -> None:
    starts = (b"<?xml version='1.0'?>", b"\x1f\x8b", b"PK\x03\x04", b"", b"POST office", b"GET / ")
    assert not any(map(is_recorded_message, starts))
    assert is_recorded_message(post())
