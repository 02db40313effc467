"""nginx on loopback: as fast as it goes, or with a delay before each answer."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_ECHO = Path("/usr/lib/nginx/modules/ngx_http_echo_module.so")

_CONFIG = """\
{modules}
{user}
worker_processes 1;
daemon off;
pid {run}/nginx.pid;
error_log {run}/error.log crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_requests 100000000;
  default_type application/octet-stream;
  types {{ text/plain txt; application/xml xml; }}
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxy;
  fastcgi_temp_path {run}/fastcgi;
  uwsgi_temp_path {run}/uwsgi;
  scgi_temp_path {run}/scgi;
  log_format short '$request_method $status $request_uri';
  server {{
    listen 127.0.0.1:{port} reuseport;
    root {root};
    {log}
    location / {{ {delay} }}
    location = /.well-known/resourcesync {{ default_type application/xml; {delay} }}
    location @file {{ }}
  }}
}}
"""


def installed() -> bool:
    """Whether nginx is here."""
    return shutil.which("nginx") is not None


def can_delay() -> bool:
    """Whether nginx has the module that waits before it answers."""
    return installed() and _ECHO.exists()


def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serve(
    root: Path, run: Path, port: int, *, delay: float = 0.0, log: Path | None = None
) -> Iterator[str]:
    """Serve ``root`` while the block runs; yield its address."""
    run.mkdir(parents=True, exist_ok=True)
    config = run / "nginx.conf"
    config.write_text(
        _CONFIG.format(
            modules=f"load_module {_ECHO};" if delay else "",
            user="user root;" if os.geteuid() == 0 else "",
            run=run,
            port=port,
            root=root,
            delay=f"echo_sleep {delay}; echo_exec @file;" if delay else "",
            log=f"access_log {log} short;" if log else "",
        )
    )
    with subprocess.Popen(["nginx", "-p", run, "-c", config], stdin=subprocess.DEVNULL) as nginx:
        try:
            _wait(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            nginx.terminate()


def _wait(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("nginx did not start")
