"""One timed piece of work in a process of its own: ``workers.py NAME LIST`` prints its cost.

Imports and preparation are not timed. The garbage collector stays as the programs leave it.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.parsers import expat

_URI = "https://museum.example/resourcelist.xml"

Work = Callable[[], object]


def _read(path: Path) -> Work:
    reading = importlib.import_module("resourcesync.documents.reader")

    def work() -> int:
        with path.open("rb") as stream:
            return len(list(reading.read(stream, uri=_URI).entries()))

    return work


def _rows(path: Path) -> Work:
    reading = importlib.import_module("resourcesync.documents.reader")

    def work() -> int:
        with path.open("rb") as stream:
            return len(list(reading.read(stream, uri=_URI).rows()))

    return work


def _write(path: Path) -> Work:
    reading = importlib.import_module("resourcesync.documents.reader")
    writing = importlib.import_module("resourcesync.documents.writer")
    with path.open("rb") as stream:
        document = reading.read(stream, uri=_URI)
        entries = list(document.entries())
    header = document.header
    return lambda: sum(len(chunk) for chunk in writing.write(header, entries))


def _resync_list(path: Path) -> Any:
    resource_list = importlib.import_module("resync.resource_list").ResourceList()
    resource_list.read(uri=str(path))
    return resource_list


def _resync_read(path: Path) -> Work:
    importlib.import_module("resync.resource_list")
    return lambda: len(_resync_list(path))


def _resync_write(path: Path) -> Work:
    resource_list = _resync_list(path)
    return lambda: len(resource_list.as_xml())


def _expat(path: Path) -> Work:
    def work() -> int:
        with path.open("rb") as stream:
            return expat.ParserCreate(namespace_separator=" ").ParseFile(stream)

    return work


_WORK: dict[str, Callable[[Path], Work]] = {
    "read": _read,
    "rows": _rows,
    "write": _write,
    "resync-read": _resync_read,
    "resync-write": _resync_write,
    "expat": _expat,
}


def main() -> int:
    """Do the work and print seconds, CPU seconds and what came of it."""
    work = _WORK[sys.argv[1]](Path(sys.argv[2]))
    cpu, began = time.process_time(), time.perf_counter()
    result = work()
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu": used, "result": result}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
