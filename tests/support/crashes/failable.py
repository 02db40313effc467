"""Runs our command in children of its own in which the nth operation on some files fails.

It must be started with the library of ``failing.c`` preloaded. Usage: lines of JSON
``[[WORD...], ROOT, NTH, ERRNO, MASK, PERSISTENT]`` on stdin, for each a line ``CODE HITS SEEN`` on
stdout. What the command says goes to the file that is named as the first argument, the library is
the second.
"""

import ctypes
import json
import os
import struct
import sys

from tests.support.commands.forkable import import_all


def main() -> None:
    import_all("resourcesync")
    from resourcesync.cli.main import run

    library = ctypes.CDLL(sys.argv[2])
    library.hits.restype = library.seen.restype = ctypes.c_long
    for line in sys.stdin:
        words, root, nth, number, mask, persistent = json.loads(line)
        back, told = os.pipe()
        child = os.fork()
        if child == 0:
            said = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            for stream in (0, 1, 2):
                os.dup2(said, stream)
            library.arm(root.encode(), ctypes.c_long(nth), number, mask, persistent)
            code = run(words)
            os.write(told, struct.pack("ll", library.hits(), library.seen()))
            os._exit(code)
        os.close(told)
        counts = os.read(back, 16)
        os.close(back)
        _, status = os.waitpid(child, 0)
        hits, seen = struct.unpack("ll", counts) if counts else (-1, -1)
        print(os.waitstatus_to_exitcode(status), hits, seen, flush=True)


if __name__ == "__main__":
    main()
