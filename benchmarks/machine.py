"""What the figures were taken on; nothing that names the machine."""

import os
import platform
import sqlite3
from collections.abc import Mapping


def describe() -> Mapping[str, object]:
    """Return the cores, versions and load that a reader needs to judge the figures."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "load": round(os.getloadavg()[0], 1),
    }
