"""A tree of small files becomes a Source; then the same again with nothing changed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks import inputs, ours, peers
from benchmarks.bench import Bench, Skipped, settle
from benchmarks.results import Contender, JobResult, Sample, interleave

_URL = "https://museum.example"


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure the first and the unchanged publication."""
    if not ours.installed():
        raise Skipped("the resourcesync command is not installed")
    files = bench.size(50_000, 10_000)
    with bench.folder() as folder:
        tree = inputs.make_tree(folder / "tree", files, 1024)
        pristine = {path.name for path in tree.root.iterdir()}
        bench.once(["sh", "-c", _hash_all(tree.root)])  # warms the page cache for everybody

        def first() -> Sample:
            reset(tree.root, pristine)
            settle()
            return bench.once(ours.publish(tree.root, _URL))

        def unchanged() -> Sample:
            return bench.once(ours.publish(tree.root, _URL))

        def build() -> Sample:
            reset(tree.root, pristine)  # with our documents there would be more than one list
            return bench.once(peers.resync_build(_URL, tree.root, folder / "resourcelist.xml"))

        contenders = [
            Contender(
                name="resourcesync publish, first",
                role="ours",
                items=files,
                once=first,
                note="catalogue included, durable",
            ),
            Contender(
                name="resourcesync publish, unchanged", role="ours", items=files, once=unchanged
            ),
        ]
        if peers.script("resync-build"):
            contenders.append(
                Contender(
                    name="resync-build",
                    role="peer",
                    items=files,
                    once=build,
                    note="first or unchanged: the same work",
                )
            )
        contenders.append(
            Contender(
                name="find + sha256sum",
                role="floor",
                items=files,
                once=lambda: bench.once(["sh", "-c", _hash_all(tree.root)]),
            )
        )
        rows = interleave(contenders, bench.runs)
    yield JobResult(
        name="publish",
        title=f"scan and hash {files:,} files of 1 KiB (warm cache) into a Resource List",
        rows=rows,
    )


def _hash_all(root: Path) -> str:
    return f"find '{root}' -type f -print0 | xargs -0 sha256sum > /dev/null"


def reset(root: Path, pristine: set[str]) -> None:
    """Remove what a publication left, wherever in the root it put it."""
    for path in root.iterdir():
        if path.name not in pristine:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
