"""The ways in which the torture Source misbehaves, each on a resource or an entry of its own."""

import gzip
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.support.servers.hostile_server import CLOSE, RESET, Answer, Asked, Step, answer
from tests.support.sources.scripted_source import cut_at, serve

SMALL: Final = b"what the list says it is\n"
LARGE: Final = bytes(range(256)) * 6_000
"""Over 1 MiB: large enough that what came of it is kept and gone on from."""

TAG: Final = '"strong"'
HERE: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    name: str  # what it is called; its resource is `/bad/NAME`
    answers: tuple[Answer, ...]  # what the server answers, one after the other
    # the error's code that `why` tells; empty when the resource must be had anyway
    code: str = HERE
    words: str = ""  # what the reason that `why` tells says
    body: bytes = SMALL  # what the list tells of
    has_length: bool = True  # whether the list tells the length


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("latin-1")


def good(body: bytes = SMALL) -> Answer:
    return serve(body, TAG)


def fresh_only(asked: Asked) -> list[Step]:
    """Serve old bytes from a cache unless it is told not to."""
    is_fresh = "no-cache" in asked.fields.get("cache-control", "")
    return answer(body=SMALL if is_fresh else SMALL.upper())


def drip(asked: Asked) -> Iterator[Step]:
    yield head("Content-Length: 100000")
    while True:
        yield b"x"
        yield 0.2


def hang_in_body(asked: Asked) -> Iterator[Step]:
    yield head("Content-Length: 25") + SMALL[:9]
    yield 600.0


def endless(asked: Asked) -> Iterator[Step]:
    yield head("Transfer-Encoding: chunked")
    until = time.monotonic() + 30
    while time.monotonic() < until:
        yield b"4000\r\n" + b"x" * 0x4000 + b"\r\n"


def half_changed(asked: Asked) -> list[Step]:
    """Serve a body that is replaced while it is sent."""
    return [head(f"Content-Length: {len(SMALL)}") + SMALL[:9], 0.05, SMALL[9:].upper()]


def on_range(status: str, body: bytes, **fields: str) -> Callable[[Asked], list[Step]]:
    """Cut a large body once; answer in another way when the rest is asked for; else serve it."""

    def script(asked: Asked) -> list[Step]:
        if "range" not in asked.fields:
            return answer(body=LARGE, ETag=TAG)
        return answer(status, body, **fields)

    return script


def cut(body: bytes = LARGE, at: int = 1_400_000, tag: str = TAG, end: str = CLOSE) -> Answer:
    return cut_at(at, body, tag, end)


def _redirect(location: str) -> Answer:
    return answer("302 Found", Location=location)


def server_errors() -> Iterator[Way]:
    for code, name, status, words in (
        ("missing", "missing", "404 Not Found", "404"),
        ("missing", "gone", "410 Gone", "410"),
        ("refused", "forbidden", "403 Forbidden", "403"),
        ("refused", "unauthorised", "401 Unauthorized", "401"),
        ("refused", "for-legal-reasons", "451 Unavailable For Legal Reasons", "451"),
        ("unavailable", "broken", "500 Internal Server Error", "500"),
        ("bad-response", "no-such-status", "299 Whatever", "299"),
        ("bad-response", "not-modified", "304 Not Modified", "304"),
        ("bad-response", "part-unasked", "206 Partial Content", "206"),
    ):
        yield Way(name=name, answers=(answer(status, SMALL),), code=code, words=words)
    yield Way(name="broken-once", answers=(answer("500 Oh"), good()))
    yield Way(name="busy-once", answers=(answer("503 Busy", Retry_After="1"), good()))
    yield Way(name="hurried-once", answers=(answer("429 Slow", Retry_After="1"), good()))
    yield Way(name="retry-nonsense", answers=(answer("503 Busy", Retry_After="soon"), good()))
    yield Way(
        name="busy", answers=(answer("503 Busy", Retry_After="1"),), code="unavailable", words="503"
    )


def bodies() -> Iterator[Way]:
    short = answer(body=SMALL[:9], length=len(SMALL))
    yield Way(name="cut", answers=([*short, CLOSE],), code="truncated", words="truncated")
    yield Way(name="cut-once", answers=([*short, CLOSE], good()))
    yield Way(name="reset", answers=([RESET],), code="reset", words="connection broke")
    yield Way(name="reset-once", answers=([RESET], good()))
    # Without an answer; or while it is asked again on what seemed to be open, if that comes first.
    yield Way(name="closed", answers=([CLOSE],), code="reset", words="the connection")
    yield Way(name="drip", answers=(drip,), code="too-slow", words="slow", has_length=False)
    yield Way(name="hang", answers=([600.0],), code="too-slow", words="no complete head")
    yield Way(name="hang-in-body", answers=(hang_in_body,), code="too-slow", words="slow")


def contents() -> Iterator[Way]:
    """Bodies that are whole, and not what the list says."""
    yield Way(
        name="too-long",
        answers=(answer(body=SMALL * 9),),
        code="length-mismatch",
        words="the Source served more",
    )
    yield Way(
        name="too-short",
        answers=(answer(body=SMALL[:9]),),
        code="length-mismatch",
        words="served 9 B",
    )
    yield Way(name="empty", answers=(answer(),), code="length-mismatch", words="served 0 B")
    yield Way(
        name="chunks-without-end",
        answers=(endless,),
        code="length-mismatch",
        words="the Source served more",
    )
    for name, script in (
        ("other-bytes", answer(body=SMALL.upper())),
        ("changed-while-sent", half_changed),
        ("login-page", answer(body=b"<!doctype html><html><body>Log in</body></html>")),
    ):
        yield Way(
            name=name,
            answers=(script,),
            code="hash-mismatch" if name != "login-page" else "length-mismatch",
            words="the Source served more" if name == "login-page" else "the Source served sha-256",
        )
    yield Way(
        name="no-length-other-bytes",
        answers=(answer(body=SMALL * 2),),
        code="hash-mismatch",
        words="the list says sha-256",
        has_length=False,
    )
    yield Way(name="stale-cache", answers=(fresh_only,))


def codings() -> Iterator[Way]:
    bomb = gzip.compress(bytes(64 << 20), 9)
    for name, body, coding, words in (
        ("gzip-bomb", bomb, "gzip", "the Source served more"),
        ("coding-twice", gzip.compress(gzip.compress(SMALL)), "gzip, gzip", "the Source served"),
        ("coding-of-others", gzip.compress(SMALL.upper()), "gzip", "the Source served"),
        ("coding-cut", gzip.compress(SMALL)[:-5], "gzip", "the Source served"),
    ):
        served = answer(body=body, Content_Encoding=coding)
        yield Way(name=name, answers=(served,), code="length-mismatch", words=words)
    for name, body, coding in (
        ("gzip-unasked", gzip.compress(SMALL), "gzip"),
        ("coding-unknown", SMALL, "x-foo"),
        ("coding-untrue", SMALL, "br"),
    ):
        yield Way(name=name, answers=(answer(body=body, Content_Encoding=coding),))


def redirects(origin: str, forbidden: str) -> Iterator[Way]:
    for name, location, code, words in (
        ("redirect-loop", f"{origin}/bad/redirect-loop", "location", "redirects too often"),
        ("redirect-private", f"{forbidden}/secret", "redirect", "127.0.0.2"),
        ("redirect-metadata", "http://169.254.169.254/latest", "redirect", "169.254.169.254"),
        ("redirect-file", "file:///etc/passwd", "redirect", "file:///etc"),
        ("redirect-data", "data:text/plain,x", "redirect", "data:"),
        ("redirect-userinfo", "http://a:b@127.0.0.1/", "redirect", "redirect"),
        ("redirect-nowhere", "", "location", "no usable Location"),
    ):
        yield Way(name=name, answers=(_redirect(location),), code=code, words=words)
    yield Way(
        name="redirect-home", answers=(_redirect(f"{origin}/good/elsewhere"),), body=ELSEWHERE
    )


ELSEWHERE: Final = b"content of elsewhere\n"


def ranges() -> Iterator[Way]:
    """Large bodies that are cut once, and ranges that are answered wrongly."""
    rest, total = LARGE[1_400_000:], len(LARGE)
    for name, script in (
        (
            "range-wrong-offset",
            on_range("206 Part", rest, Content_Range=f"bytes 7-135999/{total}", ETag=TAG),
        ),
        (
            "range-wrong-total",
            on_range("206 Part", rest, Content_Range=f"bytes 1400000-{total - 1}/9", ETag=TAG),
        ),
        ("range-ignored", on_range("200 OK", LARGE, ETag=TAG)),
        ("range-refused", on_range("416 No", b"", ETag=TAG)),
        (
            "range-of-another",
            on_range(
                "206 Part",
                rest[::-1],
                Content_Range=f"bytes 1400000-{total - 1}/{total}",
                ETag='"other"',
            ),
        ),
        ("range-multipart", on_range("206 Part", rest, Content_Type="multipart/byteranges")),
    ):
        yield Way(name=name, answers=(cut(), script), body=LARGE)
    yield Way(name="range-good", answers=(cut(), good(LARGE)), body=LARGE)
    yield Way(
        name="changed-between-parts",
        answers=(cut(LARGE[::-1], tag='"old"'), good(LARGE)),
        body=LARGE,
    )


def framing() -> Iterator[Way]:
    """Heads that a lenient client would read in one way and a strict one in another."""
    flood = [f"X-{number}: y" for number in range(200)]
    size = f"Content-Length: {len(SMALL)}"
    for name, lines, code, words in (
        ("header-flood", [size, *flood], "headers", "more than 100 fields"),
        ("header-giant", [size, "X-Big: " + "x" * 90_000], "headers", "bytes of headers"),
        ("header-nul", [size, "X: a\0b"], "protocol", "NUL"),
        ("two-lengths", [size, "Content-Length: 7"], "protocol", "Content-Length"),
        ("length-and-chunks", [size, "Transfer-Encoding: chunked"], "framing", "Transfer-Enc"),
        ("length-negative", ["Content-Length: -1"], "protocol", "Content-Length"),
    ):
        yield Way(name=name, answers=([head(*lines) + SMALL, CLOSE],), code=code, words=words)
    interim = head(status="103 Early Hints") * 50
    yield Way(
        name="interim-flood",
        answers=([interim + head(size) + SMALL],),
        code="interim",
        words="interim responses",
    )
    yield Way(
        name="no-http",
        answers=([b"SSH-2.0-OpenSSH\r\n", CLOSE],),
        code="protocol",
        words="violates the HTTP protocol",
    )


def ways(origin: str, forbidden: str) -> list[Way]:
    return [
        *server_errors(),
        *bodies(),
        *contents(),
        *codings(),
        *redirects(origin, forbidden),
        *ranges(),
        *framing(),
    ]
