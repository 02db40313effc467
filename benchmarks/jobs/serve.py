"""Requests answered in a second: ours beside others, on the same files, one after the other."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks import inputs, ours, peers, web
from benchmarks.bench import Bench, Skipped
from benchmarks.results import Contender, JobResult, Role, Row, Sample, Target, at_most, interleave

_REQUESTS = 10_000
"""What a run is said to take; ``wrk`` runs for a time, and the rest is a rule of three."""
_CONNECTIONS = 16
_LIST = "resourcesync/resourcelist.xml"
_SCRIPT = """\
local paths, n, prefix = {}, 0, os.getenv("PREFIX") or ""
for line in io.lines("%s") do paths[#paths + 1] = line end
request = function()
  n = n %% #paths + 1
  return wrk.format("GET", prefix .. "/" .. paths[n])
end
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """A published tree, and where the servers listen."""

    bench: Bench
    tree: inputs.Tree
    folder: Path
    ports: tuple[int, int, int, int]
    seconds: int

    @contextlib.contextmanager
    def nginx(self) -> Iterator[list[int]]:
        run = self.folder / "nginx"
        with web.serve(self.tree.root, run, self.ports[0]):
            yield _children(int((run / "nginx.pid").read_text()))

    @contextlib.contextmanager
    def ours(self) -> Iterator[list[int]]:
        bind = f"127.0.0.1:{self.ports[1]}"
        with serving(self.bench.environment(), self.tree.root, bind) as process:
            yield [process.pid]

    @contextlib.contextmanager
    def starlette(self) -> Iterator[list[int]]:
        with self._peer(*peers.serve_by_starlette(self.tree.root, self.ports[2]), 2) as pids:
            yield pids

    @contextlib.contextmanager
    def granian(self) -> Iterator[list[int]]:
        with self._peer(*peers.serve_by_granian(self.tree.root, self.ports[3]), 3) as pids:
            yield pids

    @contextlib.contextmanager
    def _peer(
        self, command: list[str | Path], more: Mapping[str, str], which: int
    ) -> Iterator[list[int]]:
        environment = {**self.bench.environment(), **more}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                _wait(f"127.0.0.1:{self.ports[which]}")
                yield [process.pid, *_descendants(process.pid)]
            finally:
                process.terminate()

    def once(self, which: int, *wrk: str | Path) -> Sample:
        """Ask one of the servers for some seconds."""
        prefix = peers.GRANIAN_ROUTE if which == 3 else ""
        url = f"http://127.0.0.1:{self.ports[which]}{prefix}/{_LIST}"
        words = ["wrk", "-t1", f"-c{_CONNECTIONS}", *map(str, wrk), url]

        def ask(seconds: int) -> str:
            return subprocess.run(
                [*words, f"-d{seconds}"],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, "PREFIX": prefix},
            ).stdout

        with (self.nginx, self.ours, self.starlette, self.granian)[which]() as pids:
            ask(1)  # so that caches are filled, which fill once in the life of a server
            before = _cpu(pids)
            told = ask(self.seconds)
            spent = _cpu(pids) - before
        rate = float(re.findall(r"Requests/sec:\s+([0-9.]+)", told)[0])
        answered = int(re.findall(r"(\d+) requests in", told)[0])
        problem = re.search(r"Non-2xx.*|Socket errors.*", told)
        return Sample(
            seconds=_REQUESTS / rate if rate else 0.0,
            cpu=spent / max(answered, 1) * _REQUESTS,
            problem=problem[0] if problem else "" if rate else "no answer",
        )


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure small resources, a list, and the list in gzip."""
    if shutil.which("wrk") is None or not web.installed():
        raise Skipped("wrk or nginx is not installed (Debian packages)")
    with bench.folder(bench.fast) as folder:
        tree = inputs.make_tree(folder / "tree", 2_000, 1024)
        ports = web.free_port(), web.free_port(), web.free_port(), web.free_port()
        bench.must(ours.publish(tree.root, f"http://127.0.0.1:{ports[1]}/"))
        paths = folder / "paths"
        paths.write_text("".join(f"{name}\n" for name in tree.names()))
        script = folder / "paths.lua"
        script.write_text(_SCRIPT % paths)
        world = _World(bench=bench, tree=tree, folder=folder, ports=ports, seconds=bench.size(5, 2))
        small = _compare(
            world, "serve-resources", "resources of 1 KB, 16 connections", "-s", script
        )
        yield replace(small, targets=[_microseconds(small.row("resourcesync"))])
        size = (tree.root / _LIST).stat().st_size // 1000
        listed = _compare(world, "serve-list", f"a Resource List of {size} kB, 16 connections")
        yield replace(listed, targets=[_against_nginx(listed)])
        yield _packed(world)


def _parts() -> str:
    """Say which parts the server is made of: the compiled ones, or not."""
    found = [name for name in ("httptools", "uvloop") if find_spec(name) is not None]
    return " and ".join(found) or "h11 and asyncio"


def _microseconds(row: Row | None) -> Target:
    measured = None if row is None or row.cpu is None else row.cpu / _REQUESTS * 1e6
    return at_most(measured, 45, " us", "a small resource: at most 45 us of processor time")


def _against_nginx(result: JobResult) -> Target:
    own, floor = result.row("resourcesync"), result.row("nginx")
    found = own is not None and floor is not None and own.cpu and floor.cpu
    measured = floor.cpu / own.cpu if found else None
    return Target(
        sentence="a list: 0.6 x nginx by CPU", measured=measured, limit=0.6, at_least=True
    )


def _compare(world: _World, name: str, title: str, *wrk: str | Path) -> JobResult:
    def contender(name: str, role: Role, which: int) -> Contender:
        return Contender(
            name=name, role=role, items=_REQUESTS, once=lambda: world.once(which, *wrk)
        )

    contenders = [
        contender("nginx", "floor", 0),
        contender("resourcesync", "ours", 1),
        contender("uvicorn, StaticFiles", "peer", 2),
    ]
    if peers.granian() is not None:
        contenders.append(contender("granian", "peer", 3))
    rows = interleave(contenders, world.bench.runs)
    return JobResult(name=name, title=title, rows=rows, notes=[f"ours with {_parts()}"])


def _packed(world: _World) -> JobResult:
    gzip = ("-H", "Accept-Encoding: gzip")
    contenders = [
        Contender(name="as it is", role="ours", items=_REQUESTS, once=lambda: world.once(1)),
        Contender(
            name="gzip, kept", role="ours", items=_REQUESTS, once=lambda: world.once(1, *gzip)
        ),
    ]
    rows = interleave(contenders, world.bench.runs)
    return JobResult(name="serve-gzip", title="the same list in gzip", rows=rows)


@contextlib.contextmanager
def serving(
    environment: Mapping[str, str], tree: Path, bind: str, *more: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``resourcesync serve`` while the block runs."""
    command = ours.serve(tree, bind, *more)
    with subprocess.Popen(
        [str(word) for word in command], env=dict(environment), stdout=subprocess.DEVNULL
    ) as process:
        try:
            _wait(bind)
            yield process
        finally:
            process.terminate()


def _wait(bind: str) -> None:
    parts = urlsplit(f"//{bind}")
    for _ in range(200):
        address = (parts.hostname or "", parts.port or 0)
        with contextlib.suppress(OSError), socket.create_connection(address, 1):
            return
        time.sleep(0.05)
    raise Skipped("the server did not start")


def _children(pid: int) -> list[int]:
    """Return the processes that one started, as soon as there are any."""
    for _ in range(200):
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if words:
            return [int(word) for word in words]
        time.sleep(0.02)
    raise Skipped("nginx has no worker")


def _descendants(pid: int) -> list[int]:
    """Return the processes that one started, and those that these started."""
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for word in words for found in (int(word), *_descendants(int(word)))]


def _cpu(pids: list[int]) -> float:
    """Return the seconds of processor time that processes took."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
