"""A Source on loopback is mirrored: into memory, onto disk, and over slow lines."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import inputs, ours, peers, web
from benchmarks.bench import Bench, Skipped, count_files, settle
from benchmarks.processes import Outcome
from benchmarks.results import Contender, JobResult, Role, Sample, interleave

_OURS = "resourcesync pull"
_RESYNC = "resync-sync"
_CURL = "curl, 50 parallel"
_RCLONE = "rclone copy, 50 transfers"
_BY_DUMP = "resourcesync pull, from a dump"
_BY_LARGE_DUMP = "resourcesync pull, large dump"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where copies go, and over which server they come."""

    bench: Bench
    tree: inputs.Tree
    url: str
    into: Path
    scratch: Path

    def sample(self, build: Callable[[Path], Sequence[str | Path]], expected: int) -> Sample:
        """Pull once into an empty folder and check that everything came."""
        folder = Path(tempfile.mkdtemp(dir=self.into))
        into = folder / "mirror"
        command = build(into)
        settle()
        outcome = self.bench.run(command, cwd=self.scratch)
        sample = _checked(outcome, into, expected)
        # ext4 searches past each inode that was deleted in the last minutes before it makes a file.
        # So copies on a disk are deleted after the last run of a job, never between two runs.
        if self.bench.memory and self.into.is_relative_to(self.bench.memory):
            shutil.rmtree(folder, ignore_errors=True)
        return sample


def _checked(outcome: Outcome, into: Path, expected: int) -> Sample:
    if outcome.sample.problem:
        return outcome.sample
    found = count_files(into)
    if found != expected:
        return Sample(seconds=0.0, problem=f"{found} of {expected} files came")
    return outcome.sample


def into_memory(bench: Bench) -> Iterator[JobResult]:
    """Measure the first pull into tmpfs: the engine."""
    if not bench.memory:
        raise Skipped("there is no tmpfs")
    yield _fast(bench, bench.memory)


def onto_disk(bench: Bench) -> Iterator[JobResult]:
    """Measure the first pull onto a disk: what a user gets."""
    yield _fast(bench, bench.disk)


def over_distant_line(bench: Bench) -> Iterator[JobResult]:
    """Measure the first pull of 2,000 small records when each answer takes 250 ms."""
    if not web.can_delay():
        raise Skipped("the slow line needs nginx and its echo module")
    yield _distant(bench)


def _fast(bench: Bench, where: Path) -> JobResult:
    if not web.installed():
        raise Skipped("nginx is not installed")
    files = bench.size(20_000, 3_000)
    with bench.folder(bench.fast) as folder:
        port = web.free_port()
        tree = inputs.make_tree(folder / "tree", files, 1024)
        inputs.offer(tree, f"http://127.0.0.1:{port}")
        with web.serve(tree.root, folder / "nginx", port) as url:
            return _into(bench, tree, url, where)


def _into(bench: Bench, tree: inputs.Tree, url: str, where: Path) -> JobResult:
    in_memory = where is bench.memory
    with bench.folder(where) as into, bench.folder(bench.fast) as scratch:
        place = _Place(bench=bench, tree=tree, url=url, into=into, scratch=scratch)
        contenders = _contenders(place, tree.files)
        rows = interleave(contenders, bench.runs)
    place_of = "into memory (tmpfs)" if in_memory else "onto disk"
    return JobResult(
        name="pull-memory" if in_memory else "pull-disk",
        title=f"pull {tree.files:,} files of 1 KiB from nginx on loopback {place_of}",
        rows=rows,
        notes=["only resourcesync verifies hashes and syncs to disk"],
    )


def _contenders(place: _Place, expected: int) -> list[Contender]:
    def contender(
        name: str, role: Role, build: Callable[[Path], Sequence[str | Path]]
    ) -> Contender:
        return Contender(
            name=name, role=role, items=expected, once=lambda: place.sample(build, expected)
        )

    url, names, scratch = place.url, list(place.tree.names()), place.scratch
    found = []
    if ours.installed():
        found.append(contender(_OURS, "ours", lambda to: ours.pull(url, to)))
    if peers.script("resync-sync"):
        found.append(contender(_RESYNC, "peer", lambda to: peers.resync_pull(f"{url}/", to)))
    if shutil.which("curl"):
        found.append(
            contender(_CURL, "peer", lambda to: peers.curl(url, names, to, scratch / "curl"))
        )
    if shutil.which("rclone"):
        found.append(
            contender(_RCLONE, "peer", lambda to: peers.rclone(url, names, to, scratch / "rclone"))
        )
    return found


def _distant(bench: Bench) -> JobResult:
    files = bench.size(2_000, 500)
    with ExitStack() as stack:
        folder, into, scratch = (stack.enter_context(bench.folder(bench.fast)) for _ in range(3))
        tree = inputs.make_tree(folder / "tree", files, 1024)
        port = web.free_port()
        inputs.offer(tree, f"http://127.0.0.1:{port}")
        url = stack.enter_context(web.serve(tree.root, folder / "nginx", port, delay=0.25))
        place = _Place(bench=bench, tree=tree, url=url, into=into, scratch=scratch)
        contenders = [c for c in _contenders(place, files) if c.name != _RESYNC]
        if ours.installed():
            for name, count in ((_BY_DUMP, files), (_BY_LARGE_DUMP, 10 * files)):
                packed = folder / f"packed-{count}"
                packed.mkdir()
                contenders.append(stack.enter_context(_by_dump(place, packed, name, count)))
        rows = interleave(contenders, bench.runs)
    return JobResult(
        name="pull-250ms",
        title=f"pull {files:,} records of 1 KiB, 250 ms before each answer, into memory",
        rows=rows,
    )


@contextmanager
def _by_dump(place: _Place, folder: Path, name: str, files: int) -> Iterator[Contender]:
    """Serve records in a Resource Dump while the block runs."""
    port = web.free_port()
    tree = inputs.make_tree(folder / "tree", files, 1024)
    place.bench.must(ours.dump(tree.root, f"http://127.0.0.1:{port}"))
    with web.serve(tree.root, folder / "nginx", port, delay=0.25) as url:
        yield Contender(
            name=name,
            role="ours",
            items=files,
            once=lambda: place.sample(lambda to: ours.pull(url, to), files),
            note=f"{files:,} records in a Resource Dump",
        )
