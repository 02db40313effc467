"""Bodies in doubt: cut, in parts of two, without an end, in a coding (B1-B3, B5); raw sockets."""

import gzip
import random
import zlib

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.servers.hostile_server import CLOSE, answer
from tests.support.sources.scripted_source import ScriptedSource

BODY = random.Random(1).randbytes(70_000)


def test_lenient_never_keeps_half_a_body_without_a_marked_end(source: ScriptedSource) -> None:
    source.put("/a", BODY)
    cut = ([*answer(body=BODY[:at], length=None), CLOSE] for at in (20_000, 30_000))
    source.server.on("/a", *cut)

    assert source.pull(verify="lenient").state is MirrorState.BEHIND
    assert source.file("/a") is None


CODED = gzip.compress(BODY, mtime=0)


@pytest.mark.parametrize(
    "coding", ["x-gzip", "gzip", "br", "zstd", "aws-chunked", "UTF-8", "none", "gzip, gzip"]
)
def test_what_a_listed_hash_proves_is_installed_whatever_coding_its_server_names(
    source: ScriptedSource, coding: str
) -> None:
    source.put("/a.tar.gz", CODED)
    source.server.on("/a.tar.gz", answer(body=CODED, Content_Encoding=coding))

    report = source.pull()

    assert (report.state, report.fetched.verified) == (MirrorState.IN_SYNC, 1)
    assert source.file("/a.tar.gz") == CODED
    assert source.ranges("/a.tar.gz") == [None]


@pytest.mark.parametrize("facts", [{}, {"length": False}, {"digest": ""}], ids=str)
@pytest.mark.parametrize(
    ("coding", "sent"),
    [("gzip", CODED), ("x-gzip", CODED), ("deflate", zlib.compress(BODY)), ("UTF-8, gzip", CODED)],
)
def test_a_server_that_always_compresses_gives_what_is_listed(
    source: ScriptedSource, coding: str, sent: bytes, facts: dict[str, object]
) -> None:
    source.put("/a", BODY, **facts)  # type: ignore[arg-type]  # see the parameters
    source.server.on("/a", answer(body=sent, Content_Encoding=coding))

    assert source.pull().state is MirrorState.IN_SYNC
    assert source.file("/a") == BODY
    assert source.ranges("/a") == [None]
    assert source.temporary() == []


@pytest.mark.parametrize(
    ("sent", "coding"),
    [
        (BODY, "gzip"),
        (CODED[:-4], "gzip"),
        (BODY, "br"),
        (gzip.compress(bytes(1 << 20)) * 64, "gzip"),
    ],
    ids=["damaged", "cut", "unknown", "bomb"],
)
def test_a_coding_that_cannot_be_removed_is_a_failure_that_names_it(
    source: ScriptedSource, sent: bytes, coding: str
) -> None:
    source.put("/a", BODY, digest="", length=False)
    source.server.on("/a", answer(body=sent, Content_Encoding=coding))

    report = source.pull()

    assert (report.state, report.failures[0].code) == (MirrorState.BEHIND, "encoding")
    assert f"Content-Encoding: {coding}" in report.failures[0].reason
    assert (source.file("/a"), source.temporary()) == (None, [])


def test_an_audit_of_the_server_knows_a_copy_in_any_coding(source: ScriptedSource) -> None:
    source.put("/a", BODY)
    source.server.on("/a", answer(body=CODED, Content_Encoding="gzip"))
    source.put("/b.gz", CODED)
    source.server.on("/b.gz", answer(body=CODED, Content_Encoding="gzip"))
    source.pull()

    assert source.audit(method="remote").in_sync
