"""Machines of our own: namespaces of this one, joined by a bridge, which end with this process.

A machine is a namespace of network and of processes: killing its first process kills all of them,
as a power cut does. So is the place of the bridge and of all that is not on a machine (`ALONE`).
First processes are killed when those that started them end, in whatever way, and an empty
namespace ends with its interfaces: so there is nothing to clean up, and nothing that a killed run
can leave. The addresses are of documentation (RFC 5737), without a route to anywhere else.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = "192.0.2.1"
"""The address at which the machines reach the servers beside them."""
ALONE: Final = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--net", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child"),
)
"""Before a command: it is the first process of namespaces of its own."""
_TOOLS: Final = ("ip", "unshare", "nsenter", "setpriv")


def missing() -> str:
    """Return why this system cannot have machines of our own; empty if it can."""
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)}: not installed"
    probe = (*ALONE, "ip", "link", "add", "probe", "type", "bridge")
    tried = subprocess.run(
        probe, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else f"no rights: {tried.stderr.strip()[:200]}"


def wrong_clock(folder: Path) -> Path:
    """Build the library that makes the time of day wrong by the seconds in ``WRONG_CLOCK``."""
    library, code = folder / "wrong_clock.so", Path(__file__).with_name("wrong_clock.c")
    _run("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(code))
    return library


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine with an address, a link to the bridge, and processes of its own.

    Attributes:
        address: Its address.
        link: The name of our end of its link.
        pid: Its first process, as we see it.
        holder: The process that started it, and ends with it.
    """

    address: str
    link: str
    pid: int
    holder: "subprocess.Popen[bytes]"

    def start(
        self, *words: str | Path, log: Path, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        """Start a command on it, which lives no longer than the machine; it is seen from here."""
        enter = ("nsenter", "--target", f"{self.pid}", "--net", "--pid", "--mount")
        with log.open("ab") as stream:
            return subprocess.Popen(
                [*enter, *words],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environment,
            )

    def kill(self) -> None:
        """Kill all its processes at once."""
        if self.holder.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.holder.wait()

    def cut(self) -> None:
        """Take its link down: what is sent is lost, and nobody is told."""
        _ip("link", "set", self.link, "down")

    def mend(self) -> None:
        """Take its link up again."""
        _ip("link", "set", self.link, "up")


@contextlib.contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    """Have machines while the block runs; the caller is in a network of its own, see `ALONE`.

    Args:
        count: Their number, at most 200.
    """
    _ip("link", "set", "lo", "up")
    _ip("link", "add", "bridge", "type", "bridge")
    _ip("address", "add", f"{HERE}/24", "dev", "bridge")
    _ip("link", "set", "bridge", "up")
    with contextlib.ExitStack() as ending:
        yield [ending.enter_context(_machine(number)) for number in range(1, count + 1)]


@contextlib.contextmanager
def _machine(number: int) -> Iterator[Machine]:
    address, link = f"192.0.2.{10 + number}", f"link{number}"
    with subprocess.Popen(
        [*ALONE, "sleep", "infinity"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as holder:
        pid = _first_process(holder)
        machine = Machine(address=address, link=link, pid=pid, holder=holder)
        try:
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", f"{pid}")
            _ip("link", "set", link, "master", "bridge", "up")
            inside = ("nsenter", "--target", f"{pid}", "--net", "ip")
            _run(*inside, "address", "add", f"{address}/24", "dev", "eth0")
            _run(*inside, "link", "set", "eth0", "up")
            _run(*inside, "link", "set", "lo", "up")
            yield machine
        finally:
            machine.kill()


def _first_process(holder: "subprocess.Popen[bytes]") -> int:
    children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
    for _ in range(500):
        pids = children.read_text().split()
        if pids and Path(f"/proc/{pids[0]}/comm").read_text().strip() == "sleep":
            return int(pids[0])
        time.sleep(0.02)
    holder.kill()
    raise AssertionError("a machine did not start")


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
