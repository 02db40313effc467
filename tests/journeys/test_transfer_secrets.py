"""Secrets reach their own origin, and nobody and nothing else (N05); raw sockets."""

import logging
from pathlib import Path

import msgspec
import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ResourceSyncError, SourceRefusedError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.settings.mirror import Credentials, Network
from tests.support.servers.hostile_server import CLOSE, HostileServer, Step, answer
from tests.support.sources.scripted_source import ScriptedSource, duplicate, serve

OWN, OTHER = "own-s3cret", "other-s3cret"


def network(far: HostileServer) -> Network:
    return Network(
        retries=0,
        timeout=2.0,
        allow_origins=(far.origin,),
        credentials=(
            Credentials(fields=(("Authorization", f"Bearer {OWN}"), ("X-Key", OWN))),
            Credentials(origin=far.origin, fields=(("Authorization", f"Bearer {OTHER}"),)),
        ),
    )


def test_secrets_are_in_no_log_event_error_or_file_of_a_bad_day(
    source: ScriptedSource, far: HostileServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bad: dict[str, list[Step]] = {
        "/denied.txt": answer("401 Unauthorized"),
        "/forbidden.txt": answer("403 Forbidden"),
        "/gone.txt": answer("404 Not Found"),
        "/cut.txt": [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", CLOSE],
        "/wrong.txt": answer("200 OK", b"wrong"),
        "/away.txt": answer("302 Found", Location=f"{far.origin}/y?token={OTHER}"),
        "/loop.txt": answer("302 Found", Location="/loop.txt"),
        "/evil.txt": answer("302 Found", Location="ftp://evil/"),
    }
    for target, steps in bad.items():
        source.put(target, b"right", serving=False)
        source.server.on(target, steps)
    source.put("/good.txt", b"good", links=duplicate(far.on("/d", answer("500 No"))))

    report = source.pull(network(far))

    assert report.failed == len(bad)
    told = [repr(report), repr(source.events), caplog.text, repr(network(far))]
    files = [path.read_bytes() for path in source.folder.rglob("*") if path.is_file()]
    for secret in (OWN, OTHER):
        assert secret not in "".join(told)
        assert secret.encode() not in b"".join(files)
    assert any(
        asked.fields.get("authorization") == f"Bearer {OWN}" for asked in source.server.asked
    )


def test_an_error_that_ends_a_run_has_no_secret_either(
    source: ScriptedSource, far: HostileServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for bad in ("401 Unauthorized", "500 No"):
        source.server.on("*", answer(bad))
        with pytest.raises(ResourceSyncError) as caught:
            source.pull(network(far))
        told = f"{caught.value} {caught.value!r} {vars(caught.value)} {caught.getrepr()}"
        assert OWN not in told + caplog.text


def test_each_origin_gets_its_own_secret_when_it_is_asked_and_none_when_sent_there(
    source: ScriptedSource, far: HostileServer
) -> None:
    source.put("/a.txt", b"a", links=duplicate(far.on("/direct", serve(b"a"))))
    source.put("/b.txt", b"b", serving=False)
    source.server.on("/b.txt", answer("302 Found", Location=f"{far.origin}/redirected"))
    far.on("/redirected", serve(b"b"))

    source.pull(network(far))

    sent = {asked.target: asked.fields for asked in far.asked}
    assert sent["/direct"]["authorization"] == f"Bearer {OTHER}"
    assert "authorization" not in sent["/redirected"]
    assert OWN not in "".join(asked.text for asked in far.asked)
    assert OTHER not in "".join(asked.text for asked in source.server.asked)


def test_a_sources_name_may_stay_private_and_may_not_turn_private(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    with ScriptedSource(mirror) as source:
        source.server.origin = f"http://localhost:{source.server.port}"
        source.put("/a.txt", b"a")
        assert source.pull().state is MirrorState.IN_SYNC
        source.put("/b.txt", b"b")
        assert source.pull().created == 1

        with SqliteMirrorState(str(mirror / ".resourcesync/state.db")) as state:
            assert msgspec.json.decode(state.note("reach") or "") == {"localhost": False}
            state.commit(StateTransaction(notes={"reach": '{"localhost":true}'}))
        before = source.server.connections
        with pytest.raises(SourceRefusedError) as refused:
            source.pull()
        assert refused.value.code == "egress"
        assert source.server.connections == before

        source.put("/c.txt", b"c")
        assert source.pull(Network(allow_origins=(source.server.origin,), retries=0)).created == 1
