"""Runs one command and writes what it cost: a small process of its own, one per measurement.

The kernel's peak-memory counter of a child starts at the size of the process that started it, so
the starter has to be small. Run as a script, isolated and without site packages.
"""

import json
import os
import sys
import time


def main() -> int:
    """Run ``REPORT STDOUT STDERR COMMAND...``; write wall time, CPU time and peak memory."""
    report, stdout, stderr, *command = sys.argv[1:]
    new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    began = time.perf_counter()
    pid = os.posix_spawnp(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, stdout, new, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, stderr, new, 0o600),
        ],
    )
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - began
    with open(report, "w", encoding="utf-8") as out:  # noqa: PTH123 - pathlib would double its size
        json.dump(
            {
                "exit": os.waitstatus_to_exitcode(status),
                "seconds": seconds,
                "cpu": usage.ru_utime + usage.ru_stime,
                "peak_kib": usage.ru_maxrss,
            },
            out,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
