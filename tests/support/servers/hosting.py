"""A folder on loopback, as a host of static files serves it."""

import functools
import http.server
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.listening import serving


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        pass


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """Serve what is in a folder, as a host of static files does."""
    folder.mkdir(parents=True, exist_ok=True)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    with serving(server) as origin:
        yield origin
