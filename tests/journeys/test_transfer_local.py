"""The same bytes are copied, not fetched again, when they are here already; raw sockets."""

import random
from pathlib import Path

import pytest

from resourcesync.mirror_state.rows import LARGE
from tests.support.sources.scripted_source import ScriptedSource

BODY = random.Random(9).randbytes(LARGE)
OTHER = random.Random(10).randbytes(LARGE)
LATER = "2026-01-02T00:00:00Z"


def asked(source: ScriptedSource) -> list[str]:
    return [target for target in source.server.targets() if target.endswith(".bin")]


def test_a_copy_that_somebody_changed_is_not_spread(source: ScriptedSource) -> None:
    source.put("/a.bin", BODY)
    source.pull()
    (source.folder / "a.bin").write_bytes(OTHER)
    source.put("/b.bin", BODY)
    source.publish(LATER)

    report = source.pull()

    assert asked(source) == ["/b.bin"]
    assert source.file("/b.bin") == BODY
    assert report.fetched.verified == 1


@pytest.mark.parametrize("how", ["gone", "folder", "link", "no folder"])
def test_a_copy_that_cannot_be_read_is_no_hindrance(
    source: ScriptedSource, how: str, tmp_path: Path
) -> None:
    source.put("/d/a.bin", BODY)
    source.pull()
    there = source.folder / "d/a.bin"
    there.unlink()
    if how == "folder":
        there.mkdir()
    elif how == "link":
        (tmp_path / "canary").write_bytes(BODY)
        there.symlink_to(tmp_path / "canary")
    elif how == "no folder":
        there.parent.rmdir()
        there.parent.write_bytes(b"in the way")
    source.put("/b.bin", BODY)
    source.publish(LATER)

    source.pull()

    assert source.file("/b.bin") == BODY
    assert asked(source) == ["/b.bin"]


@pytest.mark.parametrize(
    "more", [{"digest": ""}, {"digest": "md5:00000000000000000000000000000000"}, {"length": False}]
)
def test_without_a_strong_digest_and_a_length_nothing_is_copied(
    source: ScriptedSource, more: dict[str, object]
) -> None:
    source.put("/a.bin", BODY)
    source.pull()
    source.put("/b.bin", BODY, **more)  # type: ignore[arg-type]
    source.publish(LATER)

    source.pull()

    assert "/b.bin" in asked(source)
    assert not any(fields.get("local") for name, fields in source.events if name == "item")
