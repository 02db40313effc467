"""A Source whose name leads elsewhere after some time, as with DNS rebinding."""

from pathlib import Path

import msgspec
import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import SourceRefusedError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.settings.mirror import Network
from tests.support.sources.scripted_source import ScriptedSource


def notes_of(mirror: Path) -> SqliteMirrorState:
    return SqliteMirrorState(str(mirror / ".resourcesync/state.db"))


def test_a_sources_name_may_stay_private_and_may_not_turn_private(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    with ScriptedSource(mirror) as source:
        source.server.origin = f"http://localhost:{source.server.port}"
        source.put("/a.txt", b"a")
        assert source.pull().state is MirrorState.IN_SYNC
        source.put("/b.txt", b"b")
        assert source.pull().created == 1

        with notes_of(mirror) as state:
            assert msgspec.json.decode(state.note("reach") or "") == {"localhost": False}
            state.commit(StateTransaction(notes={"reach": '{"localhost":true}'}))
        before = source.server.connections
        with pytest.raises(SourceRefusedError) as refused:
            source.pull()
        assert refused.value.code == "egress"
        assert source.server.connections == before

        source.put("/c.txt", b"c")
        allowed = Network(allow_origins=(source.server.origin,), retries=0)
        assert source.pull(allowed).created == 1
