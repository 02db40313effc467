"""Runs our command in a child of its own for each line of arguments, so that it can be killed.

Everything is imported once, here; a child starts within a millisecond. Usage: a line of NDJSON
``["pull", ...]`` on stdin; the child's pid comes back on stdout, and ``end CODE`` when it ended.
What it says goes to the file that is named as the first argument.
"""

import json
import os
import sys

from tests.support.commands.forkable import import_all


def main() -> None:
    import_all("resourcesync")
    from resourcesync.cli.main import run

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            said = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            for stream in (0, 1, 2):
                os.dup2(said, stream)
            os._exit(run(json.loads(line)))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print("end", os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
