"""A Source of very many small resources: nginx makes their bodies, only their lists are files."""

import contextlib
import hashlib
import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.web import free_port, installed

PER_LIST: Final = 50_000
_CONFIG: Final = """\
{user}
worker_processes 1;
daemon off;
pid {run}/nginx.pid;
error_log {run}/error.log crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  tcp_nodelay on;
  keepalive_requests 100000000;
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxy;
  fastcgi_temp_path {run}/fastcgi;
  uwsgi_temp_path {run}/uwsgi;
  scgi_temp_path {run}/scgi;
  default_type application/xml;
  map $uri $number {{ ~^/r/[0-9]+/(?<digits>[0-9]+)[.]txt$ $digits; }}
  server {{
    listen 127.0.0.1:{port};
    root {root};
    location /r/ {{
      default_type text/plain;
      return 200 "resource $number\\n{filler}";
    }}
  }}
}}
"""
_OPEN: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<{0} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedSource:
    """The Source."""

    url: str
    root: Path
    filler: str = ""

    def uri(self, number: int) -> str:
        """Return the URI of a resource; they rise with their numbers."""
        return f"{self.url}/r/{number // 1_000:05d}/{number:08d}.txt"

    def offer(self, size: int, *, at: str) -> None:
        """Write description, Capability List and a Resource List of ``size`` resources."""
        for name, listed in (
            (".well-known/resourcesync", "capabilitylist"),
            ("capabilitylist.xml", "resourcelist"),
        ):
            kind = "capabilitylist" if listed == "resourcelist" else "description"
            entry = f'<url><loc>{self.url}/{listed}.xml</loc><rs:md capability="{listed}"/></url>'
            self._write(name, f'<rs:md capability="{kind}"/>', [entry])
        stamp = f'capability="resourcelist" at="{at}" completed="{at}"'
        parts = range(0, size, PER_LIST)
        for first in parts:
            last = min(size, first + PER_LIST)
            self._write(
                f"part-{first // PER_LIST:03d}.xml",
                f"<rs:md {stamp}/>",
                map(self._entry, range(first, last)),
            )
        self._write(
            "resourcelist.xml",
            f"<rs:md {stamp}/>",
            (
                f"<sitemap><loc>{self.url}/part-{first // PER_LIST:03d}.xml</loc>"
                f'<rs:md at="{at}" completed="{at}"/></sitemap>'
                for first in parts
            ),
            tag="sitemapindex",
        )

    def _entry(self, number: int) -> str:
        body = body_of(number) + self.filler.encode()
        return (
            f"<url><loc>{self.uri(number)}</loc><lastmod>2026-01-01T00:00:00Z</lastmod>"
            f'<rs:md hash="{hash_of(body)}" length="{len(body)}" type="text/plain"/></url>'
        )

    def _write(self, name: str, head: str, entries: Iterable[str], tag: str = "urlset") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="ascii") as out:
            out.write(_OPEN.format(tag) + head + "\n")
            out.writelines(f"{entry}\n" for entry in entries)
            out.write(f"</{tag}>\n")


def body_of(number: int) -> bytes:
    """Return the bytes of a resource."""
    return b"resource %08d\n" % number


def hash_of(body: bytes) -> str:
    """Return a ``hash`` attribute."""
    return f"sha-256:{hashlib.sha256(body).hexdigest()}"


@contextlib.contextmanager
def generated_source(folder: Path, filler: str = "") -> Iterator[GeneratedSource]:
    """Serve while the block runs; ``filler``: as of the Source, without quotes and backslashes."""
    root, run = folder / "root", folder / "nginx"
    root.mkdir(parents=True)
    run.mkdir()
    port = free_port()
    config, user = run / "nginx.conf", "user root;" if os.geteuid() == 0 else ""
    config.write_text(_CONFIG.format(user=user, run=run, root=root, port=port, filler=filler))
    with subprocess.Popen(["nginx", "-p", run, "-c", config], stdin=subprocess.DEVNULL) as nginx:
        try:
            time.sleep(0.5)
            url = f"http://127.0.0.1:{port}"
            yield GeneratedSource(url=url, root=root, filler=filler)
        finally:
            nginx.terminate()


__all__ = ["GeneratedSource", "body_of", "generated_source", "hash_of", "installed"]
