"""The demonstration: it proves what it says, and leaves nothing behind."""

import json
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.main import run
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.destination import Destination
from tests.support.commands.command_line import Said
from tests.support.commands.run import environment
from tests.support.commands.started import Started


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for number in range(30):
        path = folder / f"d{number % 3}" / f"file {number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\n" % number * number)
    (folder / "README").write_text("no extension")
    (folder / ".hidden").write_text("hidden")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_text("compiled")
    (folder / "link").symlink_to("README")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_it_shows_every_step_and_ends_in_sync(source: Path, temporary: Path, said: Said) -> None:
    before = contents(source)

    assert run(["demo", str(source)]) == 0

    lines = said.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("Copied", "Published", "Pulled", "Changed", "Published", "Pulled", "Audited", "In")
    ]
    assert "3 created, 5 updated, 5 deleted" in lines[3]
    assert lines[5].startswith("Pulled    incremental: in sync, 29 resources (3 created")
    assert lines[6].startswith("Audited   in sync, ")
    assert lines[7].startswith(
        "In sync   29 files as the Source lists them; all files of the demo were removed"
    )
    assert contents(source) == before
    assert list(temporary.iterdir()) == []


def test_a_copy_that_is_not_as_listed_is_told_and_exits_1(
    source: Path, tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, audit = tmp_path / "kept", Destination.audit

    def spoiled(destination: Destination, **options: Any) -> AuditReport:
        (kept / "mirror/README").write_text("spoiled")
        return audit(destination, **options)

    monkeypatch.setattr(Destination, "audit", spoiled)

    assert run(["demo", str(source), "--keep", str(kept)]) == 1

    lines = said.readouterr().out.splitlines()
    assert lines[-2].startswith("Not in sync   29 files not as the Source lists them; ")
    assert lines[-1] == "exit 1"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_at_any_moment_leaves_nothing_behind(
    source: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    for attempt, delay in enumerate((0.2, 0.8)):
        scratch = tmp_path / f"scratch{attempt}"
        scratch.mkdir()
        with Started(
            "demo",
            source,
            "--json",
            cwd=tmp_path,
            env={**environment(tmp_path), "TMPDIR": str(scratch)},
        ) as process:
            process.stdout.readline()  # it has begun
            time.sleep(delay)
            process.send_signal(number)
            out, err = process.communicate(timeout=30)

        assert list(scratch.iterdir()) == []
        assert process.returncode in {0, code}, (out[-300:], err)
        assert json.loads(out.splitlines()[-1])["exit"] == process.returncode
        assert err == ""
