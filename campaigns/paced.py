"""A Source of real files, published by us and served by nginx, and mirrors that pull from it.

Time is virtual where nothing is transferred: a day passes at once. nginx writes down each answer,
so what a mirror costs is counted by the server, not by the mirror.
"""

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from benchmarks.web import can_delay, free_port, installed
from resourcesync.adapters.system import SystemClock
from resourcesync.app.mirrors import opening
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import RunReport
from resourcesync.ports.cancellation import CancelToken
from resourcesync.source.dumps.dump_publication import DumpRequest
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_options import PublishRequest

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ECHO: Final = "/usr/lib/nginx/modules/ngx_http_echo_module.so"
_CONFIG: Final = """\
{modules}
{user}
worker_processes 1;
daemon off;
pid {run}/nginx.pid;
error_log {run}/error.log crit;
events {{ worker_connections 4096; }}
http {{
  log_format counted '$msec $connection $status $bytes_sent $request_length $uri';
  access_log {log} counted;
  sendfile on;
  tcp_nodelay on;
  keepalive_requests 100000000;
  default_type application/octet-stream;
  types {{ text/plain txt; application/xml xml; application/zip zip; }}
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxy;
  fastcgi_temp_path {run}/fastcgi;
  uwsgi_temp_path {run}/uwsgi;
  scgi_temp_path {run}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {root};
    location / {{ {delay} }}
    location = /.well-known/resourcesync {{ default_type application/xml; {delay} }}
    location /.resourcesync {{ return 404; }}
    location @file {{ }}
  }}
}}
"""


class StepClock:
    """A ``Clock`` on which any time can pass at once; besides, time passes as it does."""

    def __init__(self) -> None:
        self._began, self._ahead, self._system = time.monotonic(), 0.0, SystemClock()

    def now(self) -> datetime:
        """Return the present moment, UTC."""
        return _START + timedelta(seconds=self.monotonic() - self._began)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._system.sleep(seconds)

    def step(self, seconds: float) -> None:
        """Let some seconds pass at once."""
        self._ahead += seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What nginx answered.

    Attributes:
        requests: The number of requests.
        received: Their bytes with header fields, as the client receives them.
        sent: The bytes of the requests themselves.
        failed: The number of answers from 400 on.
        documents: The number of requests for lists, dumps and packages.
        peak: The most requests that were answered within one second.
        connections: The number of connections.
        seconds: From the first answer to the last.
    """

    requests: int = 0
    received: int = 0
    sent: int = 0
    failed: int = 0
    documents: int = 0
    peak: int = 0
    connections: int = 0
    seconds: float = 0.0


def traffic_of(lines: list[str]) -> Traffic:
    """Return the totals of lines of nginx's log."""
    rows = [line.split(maxsplit=5) for line in lines]
    moments = sorted(float(row[0]) for row in rows)
    first = 0
    peak = 0
    for last, moment in enumerate(moments):
        while moment - moments[first] >= 1.0:
            first += 1
        peak = max(peak, last - first + 1)
    return Traffic(
        requests=len(rows),
        received=sum(int(row[3]) for row in rows),
        sent=sum(int(row[4]) for row in rows),
        failed=sum(row[2] >= "400" for row in rows),
        documents=sum(not row[5].startswith("/r/") for row in rows),
        peak=peak,
        connections=len({row[1] for row in rows}),
        seconds=moments[-1] - moments[0] if moments else 0.0,
    )


class PacedSource:
    """A tree of equal files at ``root/r``, and its publication.

    Args:
        root: An empty folder.
        url: Its address.
        resources: Number of files.
        length: Bytes of each.
        clock: The time of the Source.
        seed: What the changes follow from.
    """

    def __init__(
        self, root: Path, url: str, resources: int, length: int, clock: StepClock, seed: int
    ) -> None:
        self._root, self._url, self._length, self._clock = root, url, length, clock
        self._luck = random.Random(seed)
        self._names: list[str] = []
        self._next = self._version = 0
        (root / "robots.txt").write_text("User-agent: *\nDisallow:\n")
        for _ in range(resources):
            self._create()

    def publish(
        self,
        chosen: dict[str, object] | None = None,
        *,
        rebase: bool = False,
        dumps: DumpRequest | None = None,
    ) -> None:
        """Publish what changed."""
        step = PublicationStep.REBASE if rebase else PublicationStep.DUE
        publish_tree(
            self._root,
            {"url": self._url, "exclude": ("robots.txt",), **(chosen or {})},
            clock=self._clock,
            asked=PublishRequest(step=step, dumps=dumps),
        )
        self._age_documents()

    def change(self, count: int) -> Counter[str]:
        """Change some files: of 20, 17 are updated, two are created and one is deleted."""
        done = Counter[str]()
        for place in sorted(self._luck.sample(range(len(self._names)), count), reverse=True):
            kind = self._luck.choices(("updated", "created", "deleted"), (17, 2, 1))[0]
            done[kind] += 1
            if kind == "created":
                self._create()
            elif kind == "updated":
                self._write(self._names[place])
            else:
                (self._root / self._names[place]).unlink()
                self._names[place] = self._names[-1]
                self._names.pop()
        return done

    def _age_documents(self) -> None:
        """Give new documents the Source's time: nginx tells it, and what is new by the real one
        cannot be requested conditionally (RFC 9110, §8.8.2.2).
        """
        moment, recent = self._clock.now().timestamp(), time.time() - 3_600
        for path in (
            *self._root.glob("*.xml"),
            *self._root.glob("*/*.xml"),
            *self._root.glob(".well-known/*"),
        ):
            if path.stat().st_mtime > recent:
                os.utime(path, (moment, moment))

    def _create(self) -> None:
        name = f"r/{self._next // 1_000:04d}/i{self._next:07d}.txt"
        self._next += 1
        self._names.append(name)
        self._write(name)

    def _write(self, name: str) -> None:
        path = self._root / name
        if name.endswith("000.txt"):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._version += 1
        line = f"{name} {self._version} ".encode()
        noise = random.Random(self._version).randbytes(self._length)
        path.write_bytes((line + noise)[: self._length])
        moment = self._clock.now().timestamp()
        os.utime(path, (moment, moment))


class PacedMirror:
    """A mirror of it.

    Args:
        folder: Its folder.
        source: The address that it follows.
        log: nginx's log.
        clock: The time of the mirror.
    """

    def __init__(self, folder: Path, source: str, log: Path, clock: StepClock) -> None:
        self._folder, self._source, self._log, self._clock = folder, source, log, clock

    def pull(self, options: PullOptions) -> tuple[Traffic, RunReport]:
        """Pull; return what nginx counted, and the report."""
        self._log.write_bytes(b"")  # nginx appends
        with opening.open_destination(
            self._folder,
            source=self._source,
            report=lambda *_: None,
            cancel=CancelToken(self._clock),
        ) as destination:
            report = destination.pull(options)
        lines = _whole_log(self._log, report.requests)
        return traffic_of(lines), report

    def remove(self) -> None:
        """Delete it."""
        shutil.rmtree(self._folder)


def _whole_log(log: Path, requests: int) -> list[str]:
    """Return the log once nginx has written down the last answer, which the client has already."""
    lines = log.read_text().splitlines()
    for _ in range(100):
        if len(lines) >= requests:
            break
        time.sleep(0.02)
        lines = log.read_text().splitlines()
    return lines


@contextlib.contextmanager
def serve_counted(root: Path, run: Path, *, delay: float = 0.0) -> Iterator[tuple[str, Path]]:
    """Serve ``root`` while the block runs; yield its address and the log.

    Args:
        root: The tree.
        run: A new folder for nginx's own files.
        delay: Seconds before each answer.
    """
    run.mkdir(parents=True)
    port, config, log = free_port(), run / "nginx.conf", run / "requests.log"
    config.write_text(
        _CONFIG.format(
            modules=f"load_module {_ECHO};" if delay else "",
            user="user root;" if os.geteuid() == 0 else "",
            run=run,
            log=log,
            port=port,
            root=root,
            delay=f"echo_sleep {delay}; echo_exec @file;" if delay else "",
        )
    )
    with subprocess.Popen(["nginx", "-p", run, "-c", config], stdin=subprocess.DEVNULL) as nginx:
        try:
            while not log.exists():
                time.sleep(0.02)
            time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/", log
        finally:
            nginx.terminate()


__all__ = [
    "PacedMirror",
    "PacedSource",
    "StepClock",
    "Traffic",
    "can_delay",
    "installed",
    "serve_counted",
    "traffic_of",
]
