"""A large table, published, published again, changed, and killed on the way; documents only."""

import hashlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import duckdb

from campaigns.measured import Measured, command
from campaigns.outcome import Asked, Campaign, Outcome

BASE: Final = "https://data.example/"
_LIST: Final = 50_000
_ROWS: Final = """
COPY (
    SELECT '{base}' || lpad((hash(i) % 1000000007)::VARCHAR, 10, '0') || '/item-' || i || '.xml'
            AS uri,
        1700000000000000 + i * 1000000 AS lastmod, (hash(i * 7) % 1000000)::BIGINT AS length,
        sha256(i::VARCHAR || {version}) AS sha256, 'application/xml' AS type
    FROM range({start}, {stop}) AS numbers(i) WHERE {some}
) TO '{path}' (FORMAT parquet, COMPRESSION zstd)
"""


def run(asked: Asked) -> Outcome:
    """Publish a table in four ways; look at every document in the end."""
    outcome, size, folder = Outcome(), asked.size, asked.folder
    table, out = folder / "table", folder / "out"
    table.mkdir()
    _write(table, "0", start=0, stop=size)
    outcome.add("table, MiB", sum(path.stat().st_size for path in table.iterdir()) / 2**20)
    words = ("publish", f"tables:{table}", "--url", BASE, "--out", out, "--quiet")
    first = command(*words, home=folder)
    _add(outcome, "first publication", first)
    outcome.add("first publication, MiB of lists", _bytes(out) / 2**20)
    before = _signatures(out)
    again = command(*words, home=folder)
    _add(outcome, "unchanged table", again)
    outcome.require(_signatures(out) == before, "an unchanged table changed a document")
    _change(table, size)
    changed = command(*words, home=folder)
    _add(outcome, "1 % changed", changed)
    outcome.require(before.items() <= _signatures(out).items() | _heads(before), "a list changed")
    lists = size // _LIST
    killed = command(*words, "--rebase", home=folder, until=_has(out, len(before), lists // 2))
    ended = command(*words, home=folder)
    _add(outcome, "after a kill in the middle of --rebase", ended)
    outcome.require(killed.code == -signal.SIGKILL or lists < _KILLED, f"{killed.code}: not killed")
    for what, measured in (
        ("first", first),
        ("again", again),
        ("changed", changed),
        ("ended", ended),
    ):
        outcome.require(
            measured.code == 0, f"{what} ended with {measured.code}: {measured.said[-500:]}"
        )
    _look(outcome, out)
    return outcome


_KILLED: Final = 20
"""Fewer lists may be written before anybody is killed."""


def _write(table: Path, name: str, *, start: int, stop: int, some: str = "true") -> None:
    duckdb.connect(config={"threads": 1}).execute(
        _ROWS.format(
            base=BASE,
            start=start,
            stop=stop,
            some=some,
            version=f"'{name}'",
            path=table / f"{name}.parquet",
        )
    )


def _change(table: Path, size: int) -> None:
    """Take one in 300 away, alter one, and add one."""
    part = size // 300
    _write(table, "1", start=0, stop=size, some="i % 300 = 1")
    _write(table, "2", start=size, stop=size + part)
    connection = duckdb.connect(config={"threads": 1})
    kept = f"SELECT * FROM '{table}/0.parquet' WHERE CAST(regexp_extract(uri, 'item-([0-9]+)', 1)"
    kept += " AS BIGINT) % 300 > 1"
    connection.execute(f"COPY ({kept}) TO '{table}/3.parquet' (FORMAT parquet, COMPRESSION zstd)")
    (table / "0.parquet").unlink()


def _add(outcome: Outcome, what: str, measured: Measured) -> None:
    outcome.add(f"{what}, seconds", measured.seconds)
    outcome.add(f"{what}, seconds of processor time", measured.cpu)
    outcome.add(f"{what}, peak MiB of the coordinator", measured.peak_mib)


def _lists(out: Path) -> list[Path]:
    return sorted((out / "resourcesync").glob("*list-sha256-*.xml"))


def _signatures(out: Path) -> dict[str, tuple[int, int]]:
    found = [*(out / "resourcesync").iterdir(), out / ".well-known" / "resourcesync"]
    looked = {path.name: path.stat() for path in found}
    return {name: (result.st_mtime_ns, result.st_size) for name, result in looked.items()}


def _heads(signatures: dict[str, tuple[int, int]]) -> set[tuple[str, tuple[int, int]]]:
    """Return what may be replaced: the Change List's head."""
    return {(name, item) for name, item in signatures.items() if name == "changelist.xml"}


def _bytes(out: Path) -> int:
    return sum(path.stat().st_size for path in _lists(out))


def _has(out: Path, before: int, more: int) -> Callable[[], bool]:
    def enough() -> bool:
        time.sleep(0.02)
        return len(os.listdir(out / "resourcesync")) >= before + more

    return enough


def _look(outcome: Outcome, out: Path) -> None:
    """Look at each list: whether it is what its name says, and is named by one index."""
    index = (out / "resourcesync/resourcelist.xml").read_text()
    named, entries = 0, 0
    for path in _lists(out):
        content = path.read_bytes()
        outcome.require(hashlib.sha256(content).hexdigest()[:32] in path.name, f"{path.name}: no")
        if path.name in index:
            named, entries = named + 1, entries + content.count(b"<loc>")
    outcome.require(named == index.count("<loc>"), "the index names lists that are not there")
    outcome.add("lists of the last Resource List", named)
    outcome.add("entries of the last Resource List", entries)


CAMPAIGN: Final = Campaign(run=run, size=1_000_000, unit="resources")
