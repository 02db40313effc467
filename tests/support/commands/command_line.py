"""What the tests of the commands share: files, JSON lines, damage."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

FILES = {f"/objects/{number:04d}.txt": b"object %d\n" % number for number in range(12)}
MIRRORED = {target.removeprefix("/"): body for target, body in FILES.items()}
CERTIFICATE_END = datetime(2031, 5, 17, 12, 30, 1, tzinfo=UTC)
LATER = "2026-01-02T00:00:00Z"
Said = pytest.CaptureFixture[str]


def rows(said: Said) -> list[dict[str, Any]]:
    captured = said.readouterr()
    found = [json.loads(line) for line in captured.out.splitlines()]
    assert captured.err == ""
    assert found[0]["type"] == "run.start"
    assert found[-1]["type"] == "run.end"
    assert {(row["v"], row["run"]) for row in found} == {(1, found[0]["run"])}
    return found


def options_of(command: click.Command) -> set[str]:
    found = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    within = command.commands.values() if isinstance(command, click.Group) else ()
    return found.union(*map(options_of, within))


def spoil(mirror: str) -> None:
    Path(mirror, "objects/0003.txt").unlink()
    Path(mirror, "objects/0005.txt").write_bytes(b"objecT 5\n")
    Path(mirror, "mine.txt").write_bytes(b"mine")
