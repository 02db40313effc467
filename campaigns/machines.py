"""One pull by Dask on several machines, which die and lose their links: equal copies each time.

The machines are namespaces of this one. The scheduler, the coordinator, a bucket of SeaweedFS and
the Source (nginx) are on ours. A machine that comes back must not write over newer copies. Without
the rights to have namespaces nothing is done, and the reason is printed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from campaigns.bucket import contents
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.backends.s3.store import open_store
from tests.support.cluster.machines import ALONE, HERE, Machine, machines, missing, wrong_clock
from tests.support.commands.run import environment, files_of, free_port, script
from tests.support.crashes.preloaded import has_compiler
from tests.support.servers.nginx import Nginx, installed, serving
from tests.support.servers.object_server import BUCKET, program, running

_PER_MACHINE: Final = 2
_PATIENCE: Final = 900.0
_BACK: Final = 120.0
_POLL: Final = 0.5
_OUTAGE: Final = 5.0
_RATE: Final = 300
_LIST: Final = 1_000
_SKEW: Final = 600
_FEW: Final = 1_000
"""Resources below which a machine is killed once, and nothing else is tried."""
_COMMAND: Final = (sys.executable, "-m", "resourcesync")
_Fault = Callable[["_Cluster"], None]


class _Cluster(NamedTuple):
    """A scheduler here, and the daemon of some workers on each of two machines."""

    address: str
    machines: tuple[Machine, Machine]
    daemons: "list[subprocess.Popen[bytes]]"


class _Pull(NamedTuple):
    """A pull: its place in the bucket, its home, how it ended, and what it cost."""

    place: str
    home: Path
    code: int
    seconds: float
    requests: Counter[str]
    said: str


class _Bench:
    """The Source, the bucket, and machines that are used two by two."""

    def __init__(self, asked: Asked, nginx: Nginx, spare: list[Machine], outcome: Outcome) -> None:
        self.folder, self.size = asked.folder, asked.size
        self.outcome = outcome
        self.nginx = nginx
        self._spare = spare
        self._dice = random.Random(asked.seed)
        self._pulls = 0
        self.expected: dict[str, dict[str, bytes]] = {}

    def publish(self) -> None:
        """Write all resources anew, and the lists."""
        tree = self.folder / "tree"
        for number in range(self.size):
            place = tree / f"r/{number // _LIST:03}"
            place.mkdir(parents=True, exist_ok=True)
            body = self._dice.randbytes(self._dice.randint(200, 4_000))
            (place / f"{number:06}.bin").write_bytes(body)
        words = ("--url", f"{self.nginx.url}/", "--max-entries", f"{_LIST}")
        subprocess.run(
            [*_COMMAND, "publish", str(tree), *words], check=True, stdout=subprocess.DEVNULL
        )

    @contextmanager
    def cluster(self, variables: Mapping[str, str] | None = None) -> Iterator[_Cluster]:
        """Run the scheduler and workers; ``variables`` are of the second machine only."""
        pair = (self._spare.pop(), self._spare.pop())
        port, log = free_port(), self.folder / "dask.log"
        own = {**environment(self.folder), **_bucket_variables()}
        own["PYTHONPATH"] = os.pathsep.join(sys.path)  # a machine has another current folder
        dask, quiet = (sys.executable, script("dask")), ("--no-dashboard",)
        with log.open("ab") as stream:
            scheduler = subprocess.Popen(
                [*dask, "scheduler", "--host", HERE, "--port", str(port), *quiet],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=own,
            )
        cluster = _Cluster(f"dask://{HERE}:{port}", pair, [])
        try:
            for machine, more in zip(pair, ({}, variables or {}), strict=True):
                local = ("--local-directory", self.folder / f"local-{machine.address}")
                size = ("--nworkers", f"{_PER_MACHINE}", "--nthreads", "1", "--memory-limit", "0")
                words = (f"tcp://{HERE}:{port}", "--host", machine.address, *size, *quiet, *local)
                started = machine.start(
                    *dask, "worker", *words, log=log, environment={**own, **more}
                )
                cluster.daemons.append(started)
            _wait(lambda: _workers(cluster) == 2 * _PER_MACHINE, "the workers did not start")
            yield cluster
        finally:
            scheduler.kill()
            scheduler.wait()
            for machine, daemon in zip(pair, cluster.daemons, strict=False):
                machine.kill()
                daemon.wait()

    def pull(
        self, cluster: _Cluster | None = None, fault: _Fault | None = None, again: str = ""
    ) -> _Pull:
        """Pull into a new place, or ``again`` into another one; let a fault happen on the way."""
        self._pulls += 0 if again else 1
        place = again or f"s3://{BUCKET}/pull-{self._pulls}"
        home = self.folder / f"home-{place.rpartition('-')[2]}"
        self.nginx.take()
        log, began = self.folder / "pull.log", time.monotonic()
        words = [self.nginx.url, place, "--state", str(home), "--json"]
        words += ["--mode", "baseline"] if again else []  # else few changes are fetched here
        words += ["--engine", cluster.address, "--rate", f"{_RATE}/s"] if cluster else []
        variables = {**environment(self.folder), **_bucket_variables()}
        with (
            log.open("wb") as out,
            subprocess.Popen(
                [*_COMMAND, "pull", *words], stdout=out, stderr=out, env=variables
            ) as process,
        ):
            if cluster is not None and fault is not None:
                third = self.size // 3
                _wait(
                    lambda: process.poll() is not None or self.fetched() > third,
                    "the pull does not begin",
                )
                fault(cluster)
                if fault is _lose_both:
                    process.send_signal(signal.SIGKILL)
            code = process.wait(_PATIENCE)
        requests = Counter(one.target for one in self.nginx.take() if one.target.startswith("/r/"))
        return _Pull(place, home, code, time.monotonic() - began, requests, log.read_text())

    def fetched(self) -> int:
        """Return how many resources were requested in the present pull."""
        return self.nginx.log.read_text().count(" /r/")

    def judge(
        self, label: str, pull: _Pull, *, undisturbed: bool = False, goes_on: bool = False
    ) -> None:
        """Compare the copies with the Source, now and at the end of the campaign."""
        expected = self.expected[pull.place] = files_of(self.folder / "tree")
        twice = sum(many > 1 for many in pull.requests.values())
        found = f"{pull.seconds:.0f} s, {pull.requests.total():,} requests, {twice} twice or more"
        self.outcome.add(label, found)
        self.outcome.require(pull.code == 0, f"{label}: exit {pull.code}: {pull.said[-300:]!r}")
        self.outcome.require(_held(pull.place) == expected, f"{label}: the copies are not equal")
        missing = 0 if goes_on else len(expected) - len(pull.requests)
        self.outcome.require(not missing, f"{label}: {missing} resources were not requested")
        self.outcome.require(not (undisturbed and twice), f"{label}: {twice} were requested twice")


def _bucket_variables() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name.startswith("AWS_")}


def _held(place: str) -> dict[str, bytes]:
    return contents(open_store(place))


def _workers(cluster: _Cluster) -> int:
    from distributed import Client  # noqa: PLC0415 - an extra

    with Client(cluster.address.replace("dask", "tcp"), timeout=30, set_as_default=False) as client:
        return len(client.scheduler_info(n_workers=-1)["workers"])


def _wait(happened: Callable[[], bool], otherwise: str, seconds: float = _BACK) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, otherwise
        time.sleep(_POLL)


# --- faults: each in the middle of a pull ---


def _kill(cluster: _Cluster) -> None:
    cluster.machines[0].kill()


def _cut(cluster: _Cluster) -> None:
    cluster.machines[0].cut()


def _cut_and_kill(cluster: _Cluster) -> None:
    """Take a machine away as a power cut does: its connections are not even closed."""
    cluster.machines[0].cut()
    cluster.machines[0].kill()


def _cut_shortly(cluster: _Cluster) -> None:
    cluster.machines[0].cut()
    time.sleep(_OUTAGE)
    cluster.machines[0].mend()


def _lose_both(cluster: _Cluster) -> None:
    """Cut a machine; the caller kills the coordinator, too."""
    cluster.machines[0].cut()


# --- scenarios ---


def _simple(label: str, fault: _Fault | None) -> Callable[[_Bench], None]:
    def scenario(bench: _Bench) -> None:
        with bench.cluster() as cluster:
            bench.judge(label, bench.pull(cluster, fault), undisturbed=fault is None)

    return scenario


def _partition(bench: _Bench) -> None:
    """Cut a machine for good; after another pull of newer resources, it comes back."""
    with bench.cluster() as cluster:
        first = bench.pull(cluster, _cut)
        bench.judge("a machine's link down", first)
        bench.publish()
        bench.judge("all changed, its link still down", bench.pull(cluster, again=first.place))
        daemon = cluster.daemons[0]
        cluster.machines[0].mend()
        # Workers that lost their scheduler end; an operator's supervisor starts others.
        _wait(
            lambda: daemon.poll() is not None or _workers(cluster) > _PER_MACHINE,
            "the workers behind the link neither ended nor came back",
        )
        fate = "had ended" if daemon.poll() is not None else "came back"
        bench.outcome.add("its link up again, its workers", fate)
        newest = _held(first.place) == bench.expected[first.place]
        bench.outcome.require(newest, "an old worker wrote over newer copies")


def _wrong_secret(bench: _Bench) -> None:
    """Let one machine have a wrong secret: the pull says so, and the next one goes on."""
    with bench.cluster({"AWS_SECRET_ACCESS_KEY": "wrong"}) as cluster:
        failed = bench.pull(cluster)
    told = f"exit {failed.code}, {failed.requests.total():,} requests"
    bench.outcome.add("a machine with a wrong secret", told)
    is_told = failed.code not in {0, -signal.SIGKILL} and "store-refused" in failed.said
    bench.outcome.require(is_told, f"a wrong secret: {told}: {failed.said[-300:]!r}")
    with bench.cluster() as cluster:
        rest = bench.pull(cluster, again=failed.place)
    bench.judge("the next pull, the secret corrected", rest, goes_on=True)


def _cut_before(bench: _Bench) -> None:
    """Pull while Dask has not noticed yet that a machine is gone."""
    with bench.cluster() as cluster:
        cluster.machines[0].cut()
        bench.judge("a link down before the pull", bench.pull(cluster))


def _old_worker(bench: _Bench) -> None:
    """Let a worker of a killed pull come back in the middle of the next one."""
    with bench.cluster() as cluster:
        killed = bench.pull(cluster, _lose_both)
        bench.outcome.require(killed.code == -signal.SIGKILL, "the pull was over before the kill")
        bench.publish()
        again = bench.pull(cluster, lambda cut: cut.machines[0].mend(), again=killed.place)
        bench.judge("coordinator killed, an old worker comes back", again)


def _clocks(bench: _Bench) -> None:
    """Let the clocks of one machine's workers be wrong, by less than S3 tolerates."""
    if not has_compiler():
        bench.outcome.add("clocks", "not tried: no C compiler is installed")
        return
    library = wrong_clock(bench.folder)
    for seconds in (-_SKEW, _SKEW):
        wrong = {"LD_PRELOAD": str(library), "WRONG_CLOCK": f"{seconds}"}
        with bench.cluster(wrong) as cluster:
            began = datetime.now(UTC)
            pull = bench.pull(cluster)
            ended = datetime.now(UTC)
            bench.judge(f"a machine's clock {seconds:+d} s", pull, undisturbed=True)
            wrong_times = _installed_outside(pull.home, began, ended)
            told = f"clock {seconds:+d} s: {wrong_times} copies have a time outside of the run"
            bench.outcome.require(not wrong_times, told)


def _installed_outside(home: Path, began: datetime, ended: datetime) -> int:
    """Return how many copies were installed at a time at which the pull did not run."""
    from resourcesync.adapters.mirror.state import SqliteMirrorState  # noqa: PLC0415 - an extra

    first, last = (int(moment.timestamp() * 1_000_000) for moment in (began, ended))
    with SqliteMirrorState(home / ".resourcesync" / "state.db", read_only=True) as state:
        return sum(not first <= copy.installed <= last for copy in state.copies())


_SCENARIOS: Final = (
    _simple("Dask on two machines", None),
    _simple("a machine killed", _kill),
    _simple("a machine's power cut", _cut_and_kill),
    _simple(f"a link down for {_OUTAGE:.0f} s", _cut_shortly),
    _cut_before,
    _wrong_secret,
    _partition,
    _old_worker,
    _clocks,
)


def run(asked: Asked) -> Outcome:
    """Run all of it in namespaces of its own, which end with this process."""
    outcome = Outcome()
    reason = missing() or ("" if program() else "SeaweedFS: not installed")
    reason = reason or ("" if installed() else "nginx: not installed")
    if reason:
        outcome.add("nothing was done", reason)
        return outcome
    told = asked.folder / "outcome.json"
    words = (f"{asked.size}", f"{asked.seed}", str(asked.folder))
    subprocess.run([*ALONE, sys.executable, "-m", __name__, *words], check=True)
    outcome.rows, outcome.violations = json.loads(told.read_text())
    return outcome


def _run_inside(asked: Asked) -> Outcome:
    """Pull without an engine, then by machines with each fault; compare all at the end again."""
    outcome, tree, waiting = Outcome(), asked.folder / "tree", asked.folder / "tmp"
    tree.mkdir()
    waiting.mkdir()
    os.environ["TMPDIR"] = str(waiting)  # killed workers leave their files
    scenarios = _SCENARIOS[1:2] if asked.size < _FEW else _SCENARIOS
    with ExitStack() as held:
        spare = held.enter_context(machines(2 * (len(scenarios) + 2)))
        server = held.enter_context(running(asked.folder / "server", HERE))
        server.make_bucket(BUCKET)
        os.environ.update(server.environment())
        nginx = held.enter_context(serving(tree, asked.folder / "nginx", address=HERE))
        bench = _Bench(asked, nginx, spare, outcome)
        bench.publish()
        bench.judge("plain, one process", bench.pull(), undisturbed=True)
        for scenario in scenarios:
            try:
                scenario(bench)
            except AssertionError as error:
                outcome.require(0, f"{error}")
        late = [place for place, expected in bench.expected.items() if _held(place) != expected]
        outcome.require(not late, f"written to after the pull: {late}")
    return outcome


def _main() -> None:
    size, seed, folder = sys.argv[1:]
    asked = Asked(size=int(size), seed=int(seed), folder=Path(folder))
    outcome = _run_inside(asked)
    told = json.dumps([outcome.rows, outcome.violations])
    (asked.folder / "outcome.json").write_text(told)


CAMPAIGN: Final = Campaign(run=run, size=6_000, unit="resources by machines of our own")

if __name__ == "__main__":
    _main()
