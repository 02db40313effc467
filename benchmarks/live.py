"""A Source whose resources change all the time, for a while of simulated time: what it costs.

``live.py FOLDER COUNT MINUTES``: COUNT resources change twice a second and are published every two
seconds; the open Change List is nearly full when it begins, and is rotated on the way. Prints the
CPU share of a process that does so all day.
"""

import hashlib
import json
import random
import sys
import time
from pathlib import Path

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.model.digests import Digest
from resourcesync.model.resources import Resource
from resourcesync.source.plan import Policy
from resourcesync.source.publisher import ListPublisher
from tests.support.in_memory import ManualClock

_BASE = "https://live.example/"
_EVERY = 2
_AT_ONCE = 4
_FILLED = 49_800
_DAY = 24 * 3_600_000_000


def resource(number: int, version: int) -> Resource:
    """Return one version of a resource."""
    digest = hashlib.sha256(b"%d %d" % (number, version)).hexdigest()
    return Resource(
        uri=f"{_BASE}page/{number:07}",
        length=1_000 + version % 7,
        digests=(Digest("sha-256", digest),),
        media_type="text/html",
    )


def main() -> None:
    """Live, and print what it cost."""
    folder, count, minutes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    clock, luck = ManualClock(), random.Random(1)
    with FileCatalogue(folder / ".resourcesync" / "catalogue.db", clock) as catalogue:
        publisher = ListPublisher(
            catalogue,
            FolderDocuments(folder),
            base_uri=_BASE,
            clock=clock,
            policy=Policy(rotate=_DAY, keep=7 * _DAY, rebase=_DAY),
        )
        with catalogue.record(clock.now()) as recording:
            for number in range(count):
                recording.created(resource(number, 0), "0")
        publisher.publish()
        versions = 0

        def change(many: int) -> None:
            nonlocal versions
            with catalogue.record(clock.now()) as recording:
                for _ in range(many):
                    versions += 1
                    recording.updated(resource(luck.randrange(count), versions), str(versions))

        clock.advance(seconds=60)
        change(_FILLED)
        publisher.publish()
        began, wall, written = time.process_time(), time.perf_counter(), 0
        slowest = 0.0
        runs = minutes * 60 // _EVERY
        for _ in range(runs):
            clock.advance(seconds=_EVERY)
            change(_AT_ONCE)
            at = time.perf_counter()
            written += sum(item.bytes for item in publisher.publish().written)
            slowest = max(slowest, time.perf_counter() - at)
        cpu = time.process_time() - began
        names = sorted(path.name for path in (folder / "resourcesync").iterdir())
        print(
            json.dumps(
                {
                    "runs": runs,
                    "changes": runs * _AT_ONCE,
                    "cpu": cpu,
                    "seconds": time.perf_counter() - wall,
                    "share": cpu / (minutes * 60),
                    "written": written,
                    "slowest": slowest,
                    "lists": sum(name.startswith("changelist-") for name in names),
                }
            )
        )


if __name__ == "__main__":
    main()
