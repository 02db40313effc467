"""A table of a million rows in PostgreSQL becomes a Source; then a thousand rows change."""

import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks import ours, processes
from benchmarks.bench import Bench, Skipped, settle
from benchmarks.results import JobResult, Row, Sample, at_most
from tests.support.servers.postgres_server import NoServerError, Server, own

_URL = "https://museum.example/"
_CHANGES = 1_000
_COMMITS = 2_000
_LIMIT = 1_800
_TICKS = os.sysconf("SC_CLK_TCK")
_TABLE = (
    "CREATE TABLE record (id bigint PRIMARY KEY, title text, size bigint, digest text,"
    " changed timestamptz)"
)
_FILL = (
    "INSERT INTO record SELECT i, 'object ' || i, i % 100000,"
    " encode(sha256(i::text::bytea), 'hex'), '2026-01-01Z'::timestamptz + i * interval '1 s'"
    " FROM generate_series(1, {}) i"
)
_ASKED = "SELECT id, changed, size, digest FROM record"
_WITH = ("table=record", "uri=objects/{id}", "lastmod=changed", "length=size", "sha-256=digest")


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure each step, with what it costs the server."""
    if not ours.installed() or find_spec("psycopg") is None:
        raise Skipped("the resourcesync command, or psycopg, is not installed")
    resources = bench.size(1_000_000, 50_000)
    with bench.folder(bench.fast) as folder:
        try:
            with own() as server:
                job = _Job(bench, server, folder / "out", resources)
                rows, notes = list(job.rows()), job.notes
        except NoServerError as error:
            raise Skipped(str(error)) from None
    named = {row.name: row for row in rows}
    first, update = named["publish, first"], named[f"publish, {_CHANGES:,} changed"]
    peak = max(row.peak_mib or 0 for row in rows if row.role == "ours")
    share = update.cpu / first.cpu if update.cpu and first.cpu else None
    yield JobResult(
        name="postgresql",
        title=f"publish a table of {resources:,} rows; {_CHANGES:,} of them change",
        rows=rows,
        targets=[
            at_most(peak, 300, "MiB", "memory: < 300 MiB"),
            at_most(share, 0.05, "x", f"{_CHANGES:,} changes: <= 0.05 x of the first"),
        ],
        notes=notes,
    )


class _Job:
    """The steps.

    Args:
        bench: How to measure.
        server: The database server, which is ours.
        out: Where it is published.
        resources: How many rows there are.
    """

    def __init__(self, bench: Bench, server: Server, out: Path, resources: int) -> None:
        import psycopg  # noqa: PLC0415 - it may not be installed

        self._bench, self._server, self._out, self._resources = bench, server, out, resources
        self._address = server.address()
        self._connection = psycopg.connect(self._address, autocommit=True)
        version = self._one("SHOW server_version")
        self.notes = [f"PostgreSQL {version}, fsync=off, in memory; its CPU is beside each row"]

    def rows(self) -> Iterator[Row]:
        self._do(_TABLE)
        self._do(_FILL.format(self._resources))
        self._do("VACUUM ANALYZE record")
        plain = self._commits()
        told = [word for pair in _WITH for word in ("--with", pair)]
        self._do(self._bench.run(ours.log_of_postgres(*told)).stdout)
        logged = self._commits()
        self.notes.append(
            f"{_COMMITS:,} UPDATEs of a row, each committed: {_COMMITS / plain:,.0f}/s without the"
            f" log, {_COMMITS / logged:,.0f}/s with it"
        )
        self._do("VACUUM ANALYZE record")
        psql = f"{self._server.programs}/psql"
        copied = [psql, "-q", "-o", "/dev/null", "-c", f"COPY ({_ASKED}) TO STDOUT", self._address]
        yield self._row("psql, COPY TO STDOUT", "floor", self._resources, copied)
        publish = ours.publish_account(self._address, _URL, self._out, *told)
        yield self._row("publish, first", "ours", self._resources, publish)
        yield self._row("publish, nothing changed", "ours", self._resources, publish)
        step = self._resources // _CHANGES
        self._do(f"UPDATE record SET size = size + 1 WHERE id % {step} = 0")
        yield self._row(f"publish, {_CHANGES:,} changed", "ours", _CHANGES, publish)
        yield self._row(
            "publish --rescan 0s", "ours", self._resources, [*publish, "--rescan", "0s"]
        )
        self._connection.close()

    def _row(self, name: str, role: str, items: int, command: list[str | Path]) -> Row:
        settle()
        before = self._server_cpu()
        sample: Sample = processes.run(
            command, cwd=self._bench.disk, env=self._bench.environment(), limit=_LIMIT
        ).sample
        time.sleep(0.2)  # until the server has counted the process that answered
        cost = self._server_cpu() - before
        note = f"server: {cost:.2f} s, {cost / items * 1e6:.1f} us each"
        return Row(name=name, role=role, items=items, note=note, samples=[sample])  # type: ignore[arg-type]

    def _server_cpu(self) -> float:
        """Return the seconds that the server and its processes that ended have used."""
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS

    def _commits(self) -> float:
        began = time.perf_counter()
        for number in range(_COMMITS):
            self._do(f"UPDATE record SET size = size + 1 WHERE id = {1 + number * 7}")
        return time.perf_counter() - began

    def _do(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def _one(self, statement: str) -> object:
        row = self._connection.execute(statement.encode()).fetchone()
        return row and row[0]
