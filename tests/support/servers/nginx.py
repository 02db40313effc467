"""A real web server on loopback: nginx, with a log of what it was asked."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.servers.second_try import Program, started

_CONFIG: Final = """\
{user}
worker_processes 1;
daemon off;
pid {run}/nginx.pid;
error_log {run}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  log_format asked '$connection $server_protocol $status $request_method $bytes_sent $request_uri';
  access_log {run}/asked.log asked;
  log_format moments '$msec $request_uri';
  access_log {run}/moments.log moments;
  tcp_nodelay on;
  keepalive_requests 100000;
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxy;
  fastcgi_temp_path {run}/fastcgi;
  uwsgi_temp_path {run}/uwsgi;
  scgi_temp_path {run}/scgi;
  default_type application/octet-stream;
  {servers}
}}
"""
_SERVER: Final = """
  types {{ text/html html; text/css css; application/xml xml; text/plain txt; }}
  server {{
    listen 127.0.0.1:{port}{listen};
    {place}
    {tls}
    index index.html;
  }}
"""


class Asked(NamedTuple):
    connection: int  # the number of the connection
    protocol: str
    status: int
    method: str
    sent: int  # bytes of the answer, head included
    target: str  # what was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    chain: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Nginx:
    url: str
    log: Path  # where it writes down what it was asked

    def take(self) -> list[Asked]:
        before, lines = -1, list[str]()
        while len(lines) != before:
            before = len(lines)
            time.sleep(0.1)
            lines = self.log.read_text().splitlines()
        self.log.write_text("")
        split = (line.split(" ", 5) for line in lines)
        return [Asked(int(c), p, int(s), m, int(n), target) for c, p, s, m, n, target in split]

    def moments(self) -> list[tuple[float, str]]:
        lines = self.log.with_name("moments.log").read_text().splitlines()
        return sorted((float(moment), target) for moment, target in map(str.split, lines))


def installed() -> bool:
    return shutil.which("nginx") is not None


@contextlib.contextmanager
def serving(
    root: Path, run: Path, *, certificate: Certificate | None = None, http2: bool = True
) -> Iterator[Nginx]:
    tls, listen = "", ""
    if certificate is not None:
        tls = f"ssl_certificate {certificate.chain}; ssl_certificate_key {certificate.key};"
        listen = " ssl http2" if http2 else " ssl"
    with _running(run, place=f"root {root};", tls=tls, listen=listen) as port:
        scheme = "https" if certificate else "http"
        yield Nginx(url=f"{scheme}://127.0.0.1:{port}", log=run / "asked.log")


@contextlib.contextmanager
def configured(place: str, run: Path) -> Iterator[Nginx]:
    with _running(run, place=place, tls="", listen="") as port:
        yield Nginx(url=f"http://127.0.0.1:{port}", log=run / "asked.log")


@contextlib.contextmanager
def printed(servers: Callable[[str], str], run: Path) -> Iterator[Nginx]:
    def write(port: int) -> str:
        return f"include /etc/nginx/mime.types; gzip on;{servers(f'http://127.0.0.1:{port}')}"

    with _started(run, write) as port:
        yield Nginx(url=f"http://127.0.0.1:{port}", log=run / "asked.log")


@contextlib.contextmanager
def proxying(to: str, run: Path) -> Iterator[str]:
    place = f"""location / {{
      proxy_pass {to.rstrip("/")};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }}"""
    with _running(run, place=place, tls="", listen="") as port:
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def _running(run: Path, **parts: str) -> Iterator[int]:
    def write(port: int) -> str:
        return _SERVER.format(port=port, **parts)

    with _started(run, write) as port:
        yield port


@contextlib.contextmanager
def _started(run: Path, servers: Callable[[int], str]) -> Iterator[int]:
    run.mkdir()
    (run / "asked.log").touch()
    config = run / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""

    def command(ports: Mapping[str, int]) -> list[str | Path]:
        (port,) = ports.values()
        config.write_text(_CONFIG.format(user=user, run=run, servers=servers(port)))
        return ["nginx", "-p", run, "-c", config]

    with started(command, run / "said", ready=lambda found: is_ready(found, run)) as found:
        yield found.port


def is_ready(program: Program, run: Path) -> bool:
    return (run / "nginx.pid").exists() and program.accepts()
