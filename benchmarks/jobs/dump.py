"""A tree of small files becomes a Resource Dump; then again after a few changes."""

import shutil
from collections.abc import Iterator

from benchmarks import inputs, ours, peers
from benchmarks.bench import Bench, Skipped, settle
from benchmarks.jobs.publish import reset
from benchmarks.results import Contender, JobResult, Sample, interleave, times_as_fast

_URL = "https://museum.example"
_CHANGED = 100


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure the first dump, and one after a hundred changes."""
    if not ours.installed():
        raise Skipped("the resourcesync command is not installed")
    files = bench.size(20_000, 5_000)
    with bench.folder() as folder:
        tree = inputs.make_tree(folder / "tree", files, 1024)
        pristine = {path.name for path in tree.root.iterdir()}
        some = sorted(path for path in tree.root.rglob("*") if path.is_file())[:_CHANGED]
        turn = iter(range(1_000_000))

        def first() -> Sample:
            reset(tree.root, pristine)
            settle()
            return bench.once(ours.dump(tree.root, _URL))

        def again() -> Sample:
            body = f"{next(turn):01024}".encode()
            for path in some:
                path.write_bytes(body)
            return bench.once(ours.dump(tree.root, _URL))

        def build() -> Sample:
            reset(tree.root, pristine)
            for old in folder.glob("resourcedump*"):
                old.unlink()
            return bench.once(peers.resync_dump(_URL, tree.root, folder / "resourcedump.xml"))

        def pack() -> Sample:
            reset(tree.root, pristine)
            (folder / "info.zip").unlink(missing_ok=True)
            return bench.once(["zip", "-q", "-r", folder / "info.zip", tree.root])

        contenders = [
            Contender(
                name="resourcesync publish --dumps, first",
                role="ours",
                items=files,
                once=first,
                note="lists and catalogue included, hashed, read back, durable",
            ),
            Contender(
                name=f"resourcesync publish --dumps, {_CHANGED} files changed",
                role="ours",
                items=files,
                once=again,
            ),
        ]
        if peers.script("resync-build"):
            contenders.append(
                Contender(
                    name="resync-build --write-resourcedump",
                    role="peer",
                    items=files,
                    once=build,
                    note="no hashes, nothing synced",
                )
            )
        if shutil.which("zip"):
            contenders.append(Contender(name="zip -r", role="floor", items=files, once=pack))
        rows = interleave(contenders, bench.runs)
    peer = "resync-build --write-resourcedump"
    yield JobResult(
        name="dump",
        title=f"pack {files:,} files of 1 KiB (warm cache) into a Resource Dump",
        rows=rows,
        targets=[times_as_fast(rows, rows[0].name, peer, 2, "first: >= 2 x resync")],
    )
