"""Peak memory of publish and pull: 500,000 entries against 50,000."""

from collections.abc import Iterator

from benchmarks import inputs, ours, web
from benchmarks.bench import Bench, Skipped
from benchmarks.results import JobResult, Row

_SIZE = 64


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure each size once: memory repeats well, and half a million files take their time."""
    if not web.installed():
        raise Skipped("nginx is not installed")
    if not ours.installed():
        raise Skipped("the resourcesync command is not installed")
    small, large = bench.size(50_000, 5_000), bench.size(500_000, 50_000)
    rows = [row for files in (small, large) for row in _measure(bench, files)]
    yield JobResult(
        name="memory",
        title=f"peak memory of publish and pull, {small:,} and {large:,} files",
        rows=rows,
        notes=[f"files of {_SIZE} bytes; the time is of one run"],
    )


def _measure(bench: Bench, files: int) -> Iterator[Row]:
    with bench.folder(bench.fast) as folder:
        port = web.free_port()
        tree = inputs.make_tree(folder / "tree", files, _SIZE)
        url = f"http://127.0.0.1:{port}"
        mirror = folder / "mirror"
        for verb in ("publish", "publish again"):
            sample = bench.once(ours.publish(tree.root, url))
            yield Row(name=f"{verb}, {files:,}", role="ours", items=files, samples=[sample])
        with web.serve(tree.root, folder / "nginx", port):
            for verb in ("pull", "pull again"):
                sample = bench.once(ours.pull(url, mirror))
                yield Row(name=f"{verb}, {files:,}", role="ours", items=files, samples=[sample])
