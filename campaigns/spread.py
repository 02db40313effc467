"""One pull of lists of 1,000 resources each, by every engine: equal copies, each fetched once.

The plain pull of one process is what the engines are compared with. What waits on its way is on
the same disk for all of them (``TMPDIR`` is below ``--disk``). With at most 50 lists, each
engine does it once more while a worker is killed. nginx is the Source.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from campaigns.measured import descendants
from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.commands.run import free_port
from tests.support.servers.nginx import Nginx, repeating

_EACH: Final = 1_000
_BODY: Final = bytes(range(256)) * 16
_PATIENCE: Final = 3_600
_WITH_KILLS: Final = 50
"""The most lists with which workers are killed, too."""
_COMMAND: Final = (sys.executable, "-m", "resourcesync")


class Pulled(NamedTuple):
    """One pull: what its copies are, how long it took, and what it cost."""

    copies: str
    rows: int
    seconds: float
    processor: float
    code: int


def _publish(site: Path, url: str, lists: int) -> None:
    """Write the lists of a Source whose resources all have the same bytes."""
    site.mkdir()
    (site / "body.bin").write_bytes(_BODY)
    digest = sha256(_BODY).hexdigest()
    rows = site.parent / "rows.ndjson"
    with rows.open("w") as stream:
        for number in range(lists * _EACH):
            uri = f"{url}/r/{number // _EACH:05}/{number:08}.bin"
            stream.write(
                f'{{"uri": "{uri}", "length": {len(_BODY)}, "hash": "sha-256:{digest}",'
                ' "lastmod": "2026-01-01T00:00:00Z"}\n'
            )
    catalogue = site.parent / "catalogue.db"
    _run("catalogue", "import", str(catalogue), str(rows))
    _run(
        *("publish", f"catalogue:{catalogue}", "--url", url, "--out", str(site)),
        *("--max-entries", str(_EACH)),
    )


def _run(*words: str) -> None:
    subprocess.run([*_COMMAND, *words], check=True, stdout=subprocess.DEVNULL)


class _Bench:
    """The Source, and a folder for each pull."""

    def __init__(self, folder: Path, nginx: Nginx) -> None:
        self._folder = folder
        self._nginx = nginx
        self._pulls = 0

    def pull(self, engine: str, cluster: "Cluster | None", *, killing: bool) -> Pulled:
        """Pull into a new mirror; kill a worker on the way."""
        self._pulls += 1
        place = self._folder / f"pull-{self._pulls}"
        words = [self._nginx.url, str(place), "-q"]
        chosen = [] if engine == "plain" else ["--engine", engine]
        began, before = time.monotonic(), _processor(cluster)
        with subprocess.Popen([*_COMMAND, "pull", *words, *chosen]) as process:
            if killing:
                _kill_one(process.pid, cluster, place, began)
            code = process.wait(_PATIENCE)
        seconds, processor = time.monotonic() - began, _processor(cluster) - before
        copies, rows = _copies(place)
        shutil.rmtree(place)
        return Pulled(copies, rows, seconds, processor, code)

    def asked(self) -> Counter[str]:
        """Return how often each resource was asked for since the last call."""
        return Counter(
            asked.target for asked in self._nginx.take() if asked.target.startswith("/r/")
        )


def _copies(mirror: Path) -> tuple[str, int]:
    """Return a digest over all copies that a mirror knows, and how many they are."""
    from resourcesync.mirror_state.database import SqliteMirrorState  # noqa: PLC0415 - an extra

    known, rows = sha256(), 0
    with SqliteMirrorState(mirror / ".resourcesync" / "state.db", read_only=True) as state:
        for copy in state.copies():
            known.update(f"{copy.uri}\t{copy.path}\t{copy.length}\t{copy.digests}\n".encode())
            rows += 1
    return known.hexdigest(), rows


# --- clusters and processes ---


class Cluster(NamedTuple):
    """Daemons that run beside the pull: the scheduler's address, and their processes."""

    address: str
    processes: tuple[int, ...]


@contextmanager
def _dask(folder: Path) -> Iterator[Cluster]:
    """Run a scheduler and two workers."""
    port = free_port()
    tool = str(Path(sys.executable).parent / "dask")
    alone = ("--no-dashboard",)
    with ExitStack() as held:

        def start(*words: str) -> int:
            process = subprocess.Popen([tool, *words, *alone], stderr=subprocess.DEVNULL)
            held.callback(process.wait)
            held.callback(process.terminate)
            return process.pid

        pids = [start("scheduler", "--host", "127.0.0.1", "--port", str(port))]
        for number in range(2):
            local = ("--local-directory", str(folder / f"worker-{number}"))
            address = f"tcp://127.0.0.1:{port}"
            pids.append(start("worker", address, "--nthreads", "1", *local))
        yield Cluster(f"dask://127.0.0.1:{port}", tuple(pids))


def _kill_one(process: int, cluster: Cluster | None, mirror: Path, began: float) -> None:
    """Kill a worker as soon as copies are in the mirror."""
    while not (mirror / "r").is_dir() and time.monotonic() - began < _PATIENCE:
        time.sleep(0.05)
    time.sleep(1)
    for root in (process, *(() if cluster is None else reversed(cluster.processes))):
        workers = [number for number in descendants(root) if _is_worker(number)]
        if workers:
            os.kill(max(workers), signal.SIGKILL)
            return
    raise AssertionError("no worker was found")


def _is_worker(process: int) -> bool:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return any(chunk in words for chunk in (b"spawn_main", b"forkserver", b"pyspark", b"nanny"))


def _processor(cluster: Cluster | None) -> float:
    """Return the seconds of processor time of all that ended here, and of the daemons."""
    times = os.times()
    ticks = 0
    for root in () if cluster is None else cluster.processes:
        for process in (root, *descendants(root)):
            try:
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += sum(map(int, fields[11:15]))
    return times.children_user + times.children_system + ticks / os.sysconf("SC_CLK_TCK")


def run(asked: Asked) -> Outcome:
    """Pull by each engine, undisturbed and with a worker killed."""
    outcome, folder = Outcome(), asked.folder
    site, run_folder = folder / "site", folder / "nginx"
    waiting = folder / "tmp"
    waiting.mkdir()
    os.environ["TMPDIR"] = str(waiting)  # for workers and daemons too
    with repeating(site, run_folder, under="/r/", file="/body.bin") as nginx:
        _publish(site, nginx.url, asked.size)
        bench = _Bench(folder, nginx)
        with ExitStack() as held:
            cluster = held.enter_context(_dask(folder))
            plain = bench.pull("plain", None, killing=False)
            _judge(outcome, "plain", plain, plain, bench.asked(), killed=False)
            for engine in ("processes:1", "processes:2", cluster.address, "spark:local[2]"):
                beside = cluster if engine == cluster.address else None
                name = "dask" if beside else engine
                for killing in (False, True)[: 1 + (asked.size <= _WITH_KILLS)]:
                    pulled = bench.pull(engine, beside, killing=killing)
                    label = f"{name}, a worker killed" if killing else name
                    _judge(outcome, label, pulled, plain, bench.asked(), killed=killing)
    return outcome


def _judge(
    outcome: Outcome,
    label: str,
    pulled: Pulled,
    plain: Pulled,
    asked: Counter[str],
    *,
    killed: bool,
) -> None:
    more = 100 * (pulled.processor / plain.processor - 1)
    told = f"{pulled.seconds:.0f} s, {pulled.processor:.0f} s of processor ({more:+.0f} %)"
    outcome.add(label, f"{told}, {pulled.rows:,} copies, {asked.total():,} requests")
    outcome.require(pulled.code == 0, f"{label}: exit {pulled.code}")
    outcome.require(pulled.copies == plain.copies, f"{label}: other copies than the plain pull")
    outcome.require(len(asked) == plain.rows, f"{label}: {len(asked)} of the resources were asked")
    once = killed or max(asked.values(), default=0) == 1
    outcome.require(once, f"{label}: some resources were asked for more than once")


CAMPAIGN: Final = Campaign(run=run, size=200, unit="lists of 1,000 resources")
