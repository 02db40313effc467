"""Requests answered in a second: ours beside nginx, on the same files, one after the other."""

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks import inputs, ours, web
from benchmarks.bench import Bench, Skipped
from benchmarks.results import Contender, JobResult, Sample, interleave, times_as_fast

_REQUESTS = 10_000
"""What a run is said to take; ``wrk`` runs for a time, and the rest is a rule of three."""
_CONNECTIONS = 16
_LIST = "resourcesync/resourcelist.xml"
_SCRIPT = """\
local paths, n = {}, 0
for line in io.lines("%s") do paths[#paths + 1] = line end
request = function()
  n = n %% #paths + 1
  return wrk.format("GET", "/" .. paths[n])
end
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """A published tree, and where the servers listen."""

    bench: Bench
    tree: inputs.Tree
    folder: Path
    ports: tuple[int, int]
    seconds: int

    @contextlib.contextmanager
    def nginx(self) -> Iterator[list[int]]:
        run = self.folder / "nginx"
        with web.serve(self.tree.root, run, self.ports[0]):
            master = int((run / "nginx.pid").read_text())
            yield [master, *_children(master)]

    @contextlib.contextmanager
    def ours(self, *more: str) -> Iterator[list[int]]:
        bind = f"127.0.0.1:{self.ports[1]}"
        with serving(self.bench.environment(), self.tree.root, bind, *more) as process:
            yield [process.pid]

    def once(self, which: int, *wrk: str | Path) -> Sample:
        """Ask one of the servers for some seconds."""
        url = f"http://127.0.0.1:{self.ports[which]}/{_LIST}"
        with (self.nginx, self.ours)[which]() as pids:
            before = _cpu(pids)
            told = subprocess.run(
                ["wrk", "-t1", f"-c{_CONNECTIONS}", f"-d{self.seconds}", *wrk, url],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
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
    """Measure small resources, a list, the list in gzip, and lists beside idle followers."""
    if shutil.which("wrk") is None or not web.installed():
        raise Skipped("wrk or nginx is not installed (Debian packages)")
    with bench.folder(bench.fast) as folder:
        tree = inputs.make_tree(folder / "tree", 2_000, 1024)
        ports = web.free_port(), web.free_port()
        bench.must(ours.publish(tree.root, f"http://127.0.0.1:{ports[1]}/"))
        paths = folder / "paths"
        paths.write_text("".join(f"{name}\n" for name in tree.names()))
        script = folder / "paths.lua"
        script.write_text(_SCRIPT % paths)
        world = _World(bench=bench, tree=tree, folder=folder, ports=ports, seconds=bench.size(5, 2))
        yield _compare(world, "serve-resources", "resources of 1 KB, 16 connections", "-s", script)
        size = (tree.root / _LIST).stat().st_size // 1000
        yield _compare(world, "serve-list", f"a Resource List of {size} kB, 16 connections")
        yield _packed(world)
        yield _followed(world, bench.size(5_000, 500))


def _ours(name: str, once: Callable[[], Sample]) -> Contender:
    return Contender(name=name, role="ours", items=_REQUESTS, once=once)


def _compare(world: _World, name: str, title: str, *wrk: str | Path) -> JobResult:
    contenders = [
        Contender(name="nginx", role="floor", items=_REQUESTS, once=lambda: world.once(0, *wrk)),
        Contender(
            name="resourcesync", role="ours", items=_REQUESTS, once=lambda: world.once(1, *wrk)
        ),
    ]
    rows = interleave(contenders, world.bench.runs)
    target = times_as_fast(rows, "resourcesync", "nginx", 0.1, "a tenth of nginx")
    return JobResult(name=name, title=title, rows=rows, targets=[target])


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


def _followed(world: _World, followers: int) -> JobResult:
    """Measure lists beside idle followers, and how soon all of them are told of a change."""
    took: list[float] = []

    def once(number: int) -> Sample:
        connections = str(followers * 3 // 2 + 100)
        with world.ours("--events", "--connections", connections) as pids:
            told = asyncio.run(_follow(world, number, pids[0]))
        took.extend(told.delays)
        return told.sample

    contenders = [
        _ours("nobody follows", lambda: once(0)),
        _ours(f"{followers:,} follow", lambda: once(followers)),
    ]
    rows = interleave(contenders, world.bench.runs)
    slowest = f"{max(took):.2f} s" if took else "not measured"
    return JobResult(
        name="serve-events",
        title="small documents beside idle followers of the stream of changes",
        rows=rows,
        targets=[
            times_as_fast(
                rows, contenders[1].name, contenders[0].name, 0.7, "followers cost < 30 %"
            )
        ],
        notes=[f"the last follower was told of a change {slowest} after its publication ended"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    sample: Sample
    delays: list[float]


async def _follow(world: _World, followers: int, pid: int) -> _Told:
    """Let so many follow, ask for documents meanwhile, then change a file."""
    port = world.ports[1]
    streams = [await _open(port) for _ in range(followers)]
    before = _cpu([pid])
    wrk = await asyncio.create_subprocess_exec(
        "wrk",
        "-t1",
        f"-c{_CONNECTIONS}",
        f"-d{world.seconds}",
        f"http://127.0.0.1:{port}/resourcesync/capabilitylist.xml",
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await wrk.communicate()
    rate = float(re.findall(rb"Requests/sec:\s+([0-9.]+)", out)[0])
    answered = int(re.findall(rb"(\d+) requests in", out)[0])
    spent = _cpu([pid]) - before
    delays: list[float] = []
    if streams:
        delays.append(await _tell(world, streams))
    for _, writer in streams:
        writer.close()
    problem = "answers that are none" if b"Non-2xx" in out else ""
    cpu = spent / max(answered, 1) * _REQUESTS
    return _Told(sample=Sample(seconds=_REQUESTS / rate, cpu=cpu, problem=problem), delays=delays)


_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _open(port: int) -> _Stream:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /resourcesync/events HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"id: ")
    return reader, writer


async def _tell(world: _World, streams: list[_Stream]) -> float:
    """Publish a change; return the seconds until the last follower has it."""
    (world.tree.root / f"new-{time.monotonic_ns()}.txt").write_text("new")
    url = f"http://127.0.0.1:{world.ports[1]}/"
    publish = await asyncio.create_subprocess_exec(
        *map(str, ours.publish(world.tree.root, url)),
        env=dict(world.bench.environment()),
        stdout=asyncio.subprocess.DEVNULL,
    )
    await publish.wait()
    started = time.monotonic()
    async with asyncio.timeout(60):
        await asyncio.gather(*(reader.readuntil(b"event: ") for reader, _ in streams))
    return time.monotonic() - started


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
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _cpu(pids: list[int]) -> float:
    """Return the seconds of processor time that processes took."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
