"""Connections to SQLite that a test prepares before the package gets them."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest


def prepared(
    monkeypatch: pytest.MonkeyPatch, prepare: Callable[[sqlite3.Connection], object]
) -> None:
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        prepare(connection)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connected)


def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets each statement from now on, with its values in it."""
    found: list[str] = []
    prepared(monkeypatch, lambda connection: connection.set_trace_callback(found.append))
    return found


def plan_of(path: Path, statement: str) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
