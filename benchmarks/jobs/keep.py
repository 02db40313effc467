"""A mirror that exists: a pull that finds nothing new, its status, an audit of every byte."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import inputs, ours, peers, web
from benchmarks.bench import Bench, Skipped, settle
from benchmarks.results import Contender, JobResult, Sample, interleave


def no_change(bench: Bench) -> Iterator[JobResult]:
    """Measure the pull that finds nothing new, and the status."""
    with _tree(bench) as (tree, folder, port):
        bench.must(ours.publish(tree.root, f"http://127.0.0.1:{port}"))
        log = folder / "requests"
        with web.serve(tree.root, folder / "nginx", port, log=log) as url:
            mirror = folder / "mirror"
            bench.must(ours.pull(url, mirror))
            yield _no_change(bench, url, mirror, log)
            yield _status(bench, mirror)


def audit(bench: Bench) -> Iterator[JobResult]:
    """Measure the audit; both clients read the same list, written by neither."""
    with _tree(bench) as (tree, folder, port), bench.folder(bench.fast) as scratch:
        inputs.offer(tree, f"http://127.0.0.1:{port}")
        with web.serve(tree.root, folder / "nginx", port) as url:
            yield _audit(bench, tree, url, folder, scratch)


def _check_installed() -> None:
    if not web.installed():
        raise Skipped("nginx is not installed")
    if not ours.installed():
        raise Skipped("the resourcesync command is not installed")


@contextmanager
def _tree(bench: Bench) -> Iterator[tuple[inputs.Tree, Path, int]]:
    _check_installed()
    with bench.folder(bench.fast) as folder:
        tree = inputs.make_tree(folder / "tree", bench.size(20_000, 3_000), 1024)
        yield tree, folder, web.free_port()


def _no_change(bench: Bench, url: str, mirror: Path, log: Path) -> JobResult:
    counts: list[int] = []

    def once() -> Sample:
        before = _lines(log)
        settle()
        sample = bench.once(ours.pull(url, mirror))
        counts.append(_lines(log) - before)
        return sample

    contenders = [Contender(name="resourcesync pull", role="ours", items=1, once=once)]
    rows = interleave(contenders, max(bench.runs, 5))
    return JobResult(
        name="no-change",
        title="pull when nothing changed (start of Python included)",
        rows=rows,
        notes=[f"requests seen by nginx in each run: {sorted(set(counts))}"],
    )


def _status(bench: Bench, mirror: Path) -> JobResult:
    once = functools.partial(bench.once, ours.status(mirror))
    contenders = [Contender(name="resourcesync status", role="ours", items=1, once=once)]
    rows = interleave(contenders, max(bench.runs, 5))
    return JobResult(
        name="status", title="show the status of the mirror (start of Python included)", rows=rows
    )


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def _audit(bench: Bench, tree: inputs.Tree, url: str, folder: Path, scratch: Path) -> JobResult:
    mirror, other = folder / "mirror", folder / "mirror-resync"
    bench.must(ours.pull(url, mirror))
    contenders = [_ours(bench, tree, mirror)]
    if peers.script("resync-sync"):
        bench.must(peers.resync_pull(f"{url}/", other))
        contenders.append(
            Contender(
                name="resync-sync --audit",
                role="peer",
                items=tree.files,
                once=lambda: bench.once(peers.resync_audit(f"{url}/", other), cwd=scratch),
                note="compares sizes and times only",
            )
        )
    contenders.append(_floor(bench, tree, mirror))
    rows = interleave(contenders, bench.runs)
    return JobResult(name="audit", title=f"audit {tree.files:,} copies of 1 KiB", rows=rows)


def _ours(bench: Bench, tree: inputs.Tree, mirror: Path) -> Contender:
    return Contender(
        name="resourcesync audit",
        role="ours",
        items=tree.files,
        once=lambda: bench.once(ours.audit(mirror)),
        note="reads and hashes every copy",
    )


def _floor(bench: Bench, tree: inputs.Tree, mirror: Path) -> Contender:
    command = f"find '{mirror}' -type f -print0 | xargs -0 sha256sum > /dev/null"
    return Contender(
        name="find + sha256sum",
        role="floor",
        items=tree.files,
        once=lambda: bench.once(["sh", "-c", command]),
    )
