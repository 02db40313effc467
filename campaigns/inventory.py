"""A large table, published in four ways, and pulled by lists into a mirror with such a table.

Publications are killed on the way. The mirror has a table of all copies but for a few, which are
missing or outdated; what it must fetch is recorded, and no body is requested.
"""

import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec

from benchmarks.web import installed, serve
from campaigns.measured import Measured, command
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.mirror.state import TABLES_NOTE
from resourcesync.app.mirrors.mirror_state import open_table_state, parts_folder
from resourcesync.cluster.tables.table_merge import Cutter
from resourcesync.ports.mirror import StateTransaction

PEAK_MIB: Final = 1_536.0
"""What the coordinator may hold, and each of its workers."""
_EVERY: Final = 2_500
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
    """Publish a table in four ways, look at every document, and pull by lists."""
    outcome, folder = Outcome(), asked.folder
    if not installed():
        outcome.missing = "nginx is not here"
        return outcome
    site, port = folder / "site", _port()
    url = f"http://localhost:{port}"
    place = (f"file://{folder}/store", "--state", folder / "home")
    pull = ("pull", url, *place, "--engine", "processes:2", "--lists-only", "--json")
    with serve(site, folder / "nginx", port):
        _begin(outcome, folder, f"{url}/", pull)
        _publish(outcome, folder, f"{url}/", asked.size)
        site.unlink()
        site.symlink_to(folder / "out")
        _remember(folder)
        _pull(outcome, folder, pull)
    return outcome


def _port() -> int:
    """Return a free port of four digits: a plain URI has no longer one."""
    for port in random.Random().sample(range(2_000, 10_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no such port is free")


def _begin(outcome: Outcome, folder: Path, base: str, pull: tuple[str | Path, ...]) -> None:
    """Let a mirror follow the Source while there is one resource."""
    table, out = folder / "early-table", folder / "early"
    (folder / "store").mkdir()
    table.mkdir()
    _write(table, "0", base, start=0, stop=1)
    first = command(*_words(table, out, base), home=folder)
    (folder / "site").symlink_to(out)
    pulled = command(*pull, home=folder)
    ended = (first.code, pulled.code)
    outcome.require(ended == (0, _LISTED), f"{ended}: {first.said[-500:]}{pulled.said[-500:]}")


def _words(table: Path, out: Path, base: str) -> tuple[str | Path, ...]:
    return ("publish", f"tables:{table}", "--url", base, "--out", out, "--quiet")


def _publish(outcome: Outcome, folder: Path, base: str, size: int) -> None:
    table, out = folder / "table", folder / "out"
    table.mkdir()
    _write(table, "0", base, start=0, stop=size)
    outcome.add("table, MiB", sum(path.stat().st_size for path in table.iterdir()) / 2**20)
    words = _words(table, out, base)
    first = command(*words, home=folder)
    _add(outcome, "first publication", first)
    outcome.add("first publication, MiB of lists", _bytes(out) / 2**20)
    before = _signatures(out)
    again = command(*words, home=folder)
    _add(outcome, "unchanged table", again)
    outcome.require(_signatures(out) == before, "an unchanged table changed a document")
    _change(table, base, size)
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


_KILLED: Final = 20
"""Fewer lists may be written before anybody is killed."""


def _write(table: Path, name: str, base: str, *, start: int, stop: int, some: str = "true") -> None:
    duckdb.connect(config={"threads": 1}).execute(
        _ROWS.format(
            base=base,
            start=start,
            stop=stop,
            some=some,
            version=f"'{name}'",
            path=table / f"{name}.parquet",
        )
    )


def _change(table: Path, base: str, size: int) -> None:
    """Take one in 300 away, alter one, and add one."""
    part = size // 300
    _write(table, "1", base, start=0, stop=size, some="i % 300 = 1")
    _write(table, "2", base, start=size, stop=size + part)
    connection = duckdb.connect(config={"threads": 1})
    kept = f"SELECT * FROM '{table}/0.parquet' WHERE CAST(regexp_extract(uri, 'item-([0-9]+)', 1)"
    kept += " AS BIGINT) % 300 > 1"
    connection.execute(f"COPY ({kept}) TO '{table}/3.parquet' (FORMAT parquet, COMPRESSION zstd)")
    (table / "0.parquet").unlink()


def _add(outcome: Outcome, what: str, measured: Measured) -> None:
    outcome.add(f"{what}, seconds", measured.seconds)
    outcome.add(f"{what}, seconds of processor time", measured.cpu)
    outcome.add(f"{what}, peak MiB of the coordinator", measured.peak_mib)
    if measured.worker_mib:
        outcome.add(f"{what}, peak MiB of a worker", measured.worker_mib)
    most = max(measured.peak_mib, measured.worker_mib)
    outcome.require(most < PEAK_MIB, f"{what}: a process held {most:,.0f} MiB")


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


_LISTED: Final = 3
"""The exit code of a pull by lists with something to fetch."""
_NUMBERED: Final = """
SELECT *, CAST(regexp_extract(uri, 'item-([0-9]+)', 1) AS BIGINT) % {every} AS turn
FROM read_parquet('{table}/*.parquet')
"""
_COPIES: Final = """
SELECT uri, regexp_extract(uri, '^[^/]*//[^/]*/(.*)$', 1) AS path, length,
    'sha-256:' || CASE WHEN turn = 2 THEN sha256('outdated') ELSE sha256 END AS digests,
    digests AS listed, make_timestamptz(lastmod) AS lastmod, '' AS etag, '' AS last_modified,
    '1:2:3' AS signature, 'verified' AS fixity, make_timestamptz(lastmod) AS installed
FROM ({numbered}) WHERE turn <> 1 ORDER BY uri
"""


def _numbered(folder: Path) -> str:
    return _NUMBERED.format(every=_EVERY, table=folder / "table")


def _duckdb(folder: Path) -> Any:
    connection = duckdb.connect(config={"memory_limit": "1GB", "threads": 2})
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"SET temp_directory = '{folder / 'spill'}'")
    return connection


def _remember(folder: Path) -> None:
    """Let the mirror have a table of copies that were never fetched, with few differences."""
    own = folder / "home/.resourcesync"
    parts_folder(own).mkdir(exist_ok=True)
    cut = Cutter(parts_folder(own), "remembered", 1_000_000)
    query = _COPIES.format(numbered=_numbered(folder))
    for batch in _duckdb(folder).sql(query).to_arrow_reader(1 << 16):
        cut.write(batch)
    parts = msgspec.json.encode([part for part, _ in cut.end()]).decode()
    with open_table_state(own / "state.db") as state:
        state.commit(StateTransaction(notes={TABLES_NOTE: parts}))


def _pull(outcome: Outcome, folder: Path, pull: tuple[str | Path, ...]) -> None:
    """Pull by lists; what is to be fetched must be what was left out and altered."""
    turns = f"SELECT turn = 1, turn = 2, count(*) FROM ({_numbered(folder)}) GROUP BY ALL"
    rows = _duckdb(folder).execute(turns).fetchall()
    missing, outdated = (sum(row[2] for row in rows if row[place]) for place in (0, 1))
    size = sum(row[2] for row in rows)
    pulled = command(*pull, home=folder)
    _add(outcome, "pull by lists", pulled)
    outcome.add("pull by lists, to fetch", missing + outdated)
    outcome.require(pulled.code == _LISTED, f"pull: {pulled.code}: {pulled.said[-500:]}")
    events = {event["type"]: event for event in map(json.loads, pulled.said.splitlines())}
    plan, end = events.get("plan", {}), events.get("run.end", {})
    told = (*map(plan.get, ("same", "create", "update")), *map(end.get, ("listed", "pending")))
    right = (size - missing - outdated, missing, outdated, size, missing + outdated)
    outcome.require(told == right, f"the pull counted {told}, not {right}")


CAMPAIGN: Final = Campaign(run=run, size=1_000_000, unit="resources")
