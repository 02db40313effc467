"""Ten gigabytes become a Resource Dump, and one: memory must not tell them apart."""

import shutil
from collections.abc import Iterator

from benchmarks import inputs, ours
from benchmarks.bench import Bench, Skipped
from benchmarks.results import JobResult, Row, at_most

_URL = "https://museum.example"
_GIB = 2**30
_FILE = 4 * 2**20
_LIMIT = 3_600.0


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure each size once."""
    if not ours.installed():
        raise Skipped("the resourcesync command is not installed")
    large = bench.size(10 * _GIB, _GIB)
    free = shutil.disk_usage(bench.disk).free
    if free < 3 * large:  # the files, their packages, and room for others
        large = max(free // 3, _GIB)
    small = large // 10
    rows = [_measure(bench, size) for size in (small, large)]
    few, many = (row.peak_mib for row in rows)
    ratio = many / few if few and many else None
    yield JobResult(
        name="dump-large",
        title=f"pack {large / _GIB:.1f} GiB in files of 4 MiB into a Resource Dump",
        rows=rows,
        targets=[at_most(ratio, 1.3, "x", "peak memory <= 1.3 x that of a tenth")],
        notes=["every fourth file is text, the others are noise; the time is of one run"],
    )


def _measure(bench: Bench, size: int) -> Row:
    files = max(size // _FILE, 1)
    with bench.folder() as folder:
        tree = inputs.make_large_tree(folder / "tree", files, _FILE)
        sample = bench.run(ours.dump(tree.root, _URL), limit=_LIMIT).sample
    name = f"resourcesync publish --dumps, {files * _FILE / _GIB:.1f} GiB"
    return Row(name=name, role="ours", items=files, samples=[sample])
