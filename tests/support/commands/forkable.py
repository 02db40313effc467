"""Runs Python programs in children of its own: no test has to wait for an interpreter to start.

What they import is imported once, here; a child starts within some milliseconds, and is a process
like any other: it has its own arguments, folder, environment and streams, and ends by itself.

Usage: ``python forkable.py SOCKET PACKAGE``. Each connection to the socket asks for one run: its
streams as three descriptors with ``CWD NUL PROGRAM NUL WORD ... NUL NUL NAME=VALUE NUL ...``. The
child's pid comes back, and its exit code when it has ended. It all ends with stdin.
"""

import importlib
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
from contextlib import suppress

MOST = 1 << 20
_LATER = ("encodings.utf_8_sig", "protego")
"""What is imported only when it is used, by almost each child."""


def import_all(package: str) -> None:
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, f"{package}.", onerror=lambda _: None):
        with suppress(Exception):  # who needs it will say so
            importlib.import_module(module.name)
    for name in _LATER:
        with suppress(ImportError):
            importlib.import_module(name)


def _take_on(asked: bytes, streams: list[int]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    words, _, environment = os.fsdecode(asked).partition("\0\0")
    folder, *sys.argv = words.split("\0")
    os.chdir(folder)
    os.environ.clear()
    for name, _, value in (line.partition("=") for line in environment.split("\0") if line):
        os.environ[name] = value
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it lives as long as the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - the same
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115


def _reap(asking: dict[int, socket.socket]) -> None:
    while asking:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        with asking.pop(child) as who:
            who.send(b"%d\n" % os.waitstatus_to_exitcode(status))


def serve(path: str) -> bool:
    asking: dict[int, socket.socket] = {}
    back, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(socket.AF_UNIX) as door, selectors.DefaultSelector() as waiting:
        door.bind(path)
        door.listen()
        for stream in (0, back, door.fileno()):
            waiting.register(stream, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            ready = {key.fd for key, _ in waiting.select()}
            if 0 in ready:
                return False
            if back in ready:
                os.read(back, 512)
                _reap(asking)
            if door.fileno() in ready:
                who, _ = door.accept()
                asked, streams, _, _ = socket.recv_fds(who, MOST, 3)
                child = os.fork()
                if child == 0:
                    who.close()
                    for other in asking.values():
                        other.close()
                    os.close(back)
                    os.close(wake)
                    _take_on(asked, streams)
                    return True
                for stream in streams:
                    os.close(stream)
                who.send(b"%d\n" % child)
                asking[child] = who


def end(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    import_all(sys.argv[2])
    if serve(sys.argv[1]):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as ended:
            end(int(ended.code or 0))
        end(0)
