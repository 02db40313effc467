"""Recorded messages of WebSub, the answers to them, and their rules.

Messages pass between a hub and a receiver. Either can record one in a file, byte by byte: a
request, and behind it the answer, if there is one (``message/http``, RFC 9112 §10.1).
"""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from resourcesync.discovery.link_header import find_targets
from resourcesync.errors import DocumentError, DocumentLimitError, TruncatedDocumentError
from resourcesync.validator.rule import RuleFinding
from resourcesync.validator.summaries import without_place

LARGEST: Final = 2 * 1024 * 1024
"""Bytes of a recorded message with its answer."""

_LONGEST_HEAD: Final = 64 * 1024
_LONGEST_TARGET: Final = 16 * 1024
_LONGEST_NUMBER: Final = 18
_MOST_FIELDS: Final = 100
_MOST_PARAMETERS: Final = 100
_METHODS: Final = frozenset({"sha1", "sha256", "sha384", "sha512"})
_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404
_REQUEST: Final = re.compile(rb"(GET|POST) ([!-~]+) HTTP/[0-9.]{1,3}\r?\n")
_ANSWER: Final = re.compile(rb"HTTP/[0-9.]{1,3} ([0-9]{3})(?: [^\r\n]*)?\r?\n")
_FIELD: Final = re.compile(rb"([!#-'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*)\r?\n")
_BLANK: Final = re.compile(rb"\r?\n")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded answer to a message.

    Attributes:
        status: Its status.
        body: Its bytes.
    """

    status: int
    body: bytes


class RecordedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded message of a hub to a receiver.

    Attributes:
        method: ``POST`` of a notification, ``GET`` of a verification.
        target: The request target, its query included.
        fields: The header fields, names in small letters, the values of each in their order.
        body: The bytes.
        line: The line of the file on which they begin, from 1.
        answer: The receiver's answer; ``None`` when it was not recorded.
    """

    method: str
    target: str
    fields: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    body: bytes = b""
    line: int = 1
    answer: Answer | None = None

    @property
    def is_notification(self) -> bool:
        """True if it is a notification; else it verifies a subscription."""
        return self.method == "POST"


def is_recorded_message(start: bytes) -> bool:
    """True if a file that begins so is a recorded message."""
    return _REQUEST.match(start[:_LONGEST_TARGET]) is not None


def read_message(data: bytes, uri: str) -> RecordedMessage:
    """Return the message that was recorded.

    Args:
        data: The bytes, those of the answer included.
        uri: Their address, for errors.

    Raises:
        DocumentError: They are no HTTP message, or not a whole one.
    """
    if len(data) > LARGEST:
        raise DocumentLimitError(f"the message has more than {LARGEST:,} bytes", uri=uri)
    request = _REQUEST.match(data, 0, _LONGEST_TARGET)
    if request is None:
        raise DocumentError("no HTTP request begins here", uri=uri)
    fields, at = _read_fields(data, request.end(), uri)
    line = data.count(b"\n", 0, at) + 1
    has_body = request[1] == b"POST" or "content-length" in fields
    body, at = _read_body(data, at, fields, uri) if has_body else (b"", at)
    answer = None
    if started := _ANSWER.match(data, at):
        answer_fields, at = _read_fields(data, started.end(), uri)
        answered, at = _read_body(data, at, answer_fields, uri)
        answer = Answer(status=int(started[1]), body=answered)
    if data[at:].strip():
        raise DocumentError(
            "the message is followed by something that is not its answer",
            uri=uri,
            evidence=(("after", f"{at:,} bytes"),),
            hint="store one message in a file: a request, followed by the answer",
        )
    return RecordedMessage(
        method=request[1].decode(),
        target=request[2].decode(),
        fields=fields,
        body=body,
        line=line,
        answer=answer,
    )


def _read_fields(data: bytes, at: int, uri: str) -> tuple[dict[str, tuple[str, ...]], int]:
    """Return the header fields that begin at a place, and where the body begins."""
    fields: dict[str, tuple[str, ...]] = {}
    end = at + _LONGEST_HEAD
    for _ in range(_MOST_FIELDS + 1):
        if blank := _BLANK.match(data, at):
            return fields, blank.end()
        found = _FIELD.match(data, at, end)
        if found is None:
            break
        name = found[1].decode().lower()
        value = found[2].strip().decode("utf-8", "surrogateescape")
        fields[name] = (*fields.get(name, ()), value)
        at = found.end()
    if data.find(b"\n", at) < 0:
        raise TruncatedDocumentError("the message ends among its header fields", uri=uri)
    line = data.count(b"\n", 0, at) + 1
    raise DocumentError("the header of the message cannot be read", uri=uri, line=line, column=1)


def _read_body(
    data: bytes, at: int, fields: Mapping[str, tuple[str, ...]], uri: str
) -> tuple[bytes, int]:
    """Return a body, and where it ends; without a length it ends with the file."""
    if "transfer-encoding" in fields:
        raise DocumentError(
            "the body of the message is in chunks, which is not supported",
            uri=uri,
            hint="record the request as the receiver got it: the body with its Content-Length",
        )
    told = set(fields.get("content-length", ()))
    if not told:
        return data[at:], len(data)
    text = told.pop()
    if told or not text.isascii() or not text.isdigit() or len(text) > _LONGEST_NUMBER:
        raise DocumentError("the Content-Length of the message is invalid", uri=uri)
    end = at + int(text)
    if end > len(data):
        raise TruncatedDocumentError(
            "the message ends before its body does",
            uri=uri,
            evidence=(("expected", f"{int(text):,} B"), ("actual", f"{len(data) - at:,} B")),
        )
    return data[at:end], end


def judge_message(
    message: RecordedMessage, uri: str, secret: bytes | None = None
) -> Iterator[RuleFinding]:
    """Check a recorded message and its answer, except for the document in it.

    Args:
        message: The message.
        uri: Its address, for the findings.
        secret: The secret agreed with the hub; ``None`` if there is none, or it is unknown.
    """
    if not message.is_notification:
        yield from _judge_question(message, uri)
        return
    field_ = ", ".join(message.fields.get("link", ()))
    yield from judge_message_links(
        uri, {name: len(find_targets(field_, name, "")) for name in ("self", "hub")}
    )
    if secret is not None:
        header = ", ".join(message.fields.get("x-hub-signature", ()))
        yield from judge_signature(uri, secret=secret, header=header, body=message.body)


def _judge_question(message: RecordedMessage, uri: str) -> Iterator[RuleFinding]:
    query = message.target.partition("?")[2]
    try:
        asked = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS))
    except ValueError:
        asked = {}
    if asked.get("hub.mode") not in ("subscribe", "unsubscribe") or "hub.challenge" not in asked:
        return
    lease, answer = asked.get("hub.lease_seconds", ""), message.answer
    is_number = lease.isascii() and lease.isdigit() and len(lease) <= _LONGEST_NUMBER
    refused = answer is not None and answer.status == _NOT_FOUND
    yield from judge_verification(
        IntentVerification(
            callback=uri,
            pending=not refused,
            challenge=asked["hub.challenge"].encode("utf-8", "surrogateescape"),
            status=None if answer is None else answer.status,
            body=b"" if answer is None else answer.body,
            lease_seconds=int(lease) if is_number else None,
            mode=asked["hub.mode"],
        )
    )


def judge_message_links(uri: str, links: Mapping[str, int]) -> Iterator[RuleFinding]:
    """Check the number of ``self`` and ``hub`` links of a message (WebSub §7).

    Args:
        uri: The address or file of the message.
        links: Number of links of each relation its Link header has.
    """
    if links.get("self", 0) != 1:
        yield without_place("NT02", f"{links.get('self', 0)} self links instead of one", uri)
    if not links.get("hub", 0):
        yield without_place("NT02", "no hub link", uri)


def judge_signature(uri: str, *, secret: bytes, header: str, body: bytes) -> Iterator[RuleFinding]:
    """Check the signature of a message for which a secret was agreed (WebSub §7.1).

    Args:
        uri: The address or file of the message.
        secret: The agreed secret.
        header: ``X-Hub-Signature`` as received; empty when there was none.
        body: The bytes of the message.
    """
    method, _, digest = header.strip().partition("=")
    if method.lower() not in _METHODS:
        found = f"a signature by {method[:40]!r}" if header else "no signature"
        yield without_place("NT03", f"{found} though a secret was agreed", uri)
        return
    right = hmac.new(secret, body, getattr(hashlib, method.lower())).hexdigest()
    if not hmac.compare_digest(right.encode(), digest.strip().lower().encode()):
        yield without_place("NT03", "the signature is not that of the body", uri)


class IntentVerification(msgspec.Struct, frozen=True, kw_only=True):
    """The receiver's answer to a verification of intent (WebSub §5.3).

    Attributes:
        callback: The receiver's address.
        pending: True if it had requested this.
        challenge: The challenge to repeat.
        status, body: Its answer; ``None`` for a status that is not known.
        lease_seconds: Seconds of the lease; ``None`` if the hub gave none.
        mode: ``subscribe`` or ``unsubscribe``.
    """

    callback: str
    pending: bool
    challenge: bytes
    status: int | None
    body: bytes
    lease_seconds: int | None = None
    mode: str = "subscribe"


def judge_verification(verification: IntentVerification) -> Iterator[RuleFinding]:
    """Check the answer of a receiver, and the lease that it was given (WebSub §5.3)."""
    agreed = verification.status in _OK and verification.body == verification.challenge
    if verification.pending and verification.status is not None and not agreed:
        yield without_place("NT04", "it does not repeat the challenge", verification.callback)
    if not verification.pending and verification.status not in (None, _NOT_FOUND):
        message = f"it answers {verification.status} to a verification that it did not request"
        yield without_place("NT04", message, verification.callback)
    if verification.pending and verification.mode == "subscribe" and not verification.lease_seconds:
        yield without_place(
            "NT05", "the hub grants a subscription without a lease", verification.callback
        )
