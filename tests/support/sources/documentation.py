"""A real site: an installed documentation package, or one that Python writes of itself."""

import importlib
import os
import pydoc
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote
from xml.sax.saxutils import escape

_INSTALLED: Final = ("/usr/share/doc/sqlite3", "/usr/share/doc/python3.11-doc/html")
_FEWEST: Final = 60
_OLD: Final = 1_700_000_000
_MODULES: Final = (
    *("abc", "ast", "bisect", "calendar", "cmath", "cmd", "codecs", "collections", "configparser"),
    *("contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "dis", "enum"),
    *("filecmp", "fnmatch", "fractions", "functools", "getopt", "glob", "gzip", "hashlib", "heapq"),
    *("hmac", "html", "io", "ipaddress", "itertools", "json", "keyword", "linecache", "locale"),
    *("math", "mimetypes", "numbers", "operator", "os", "pathlib", "pickle", "pprint", "queue"),
    *("random", "re", "sched", "secrets", "select", "shlex", "shutil", "signal", "socket", "ssl"),
    *("stat", "statistics", "string", "struct", "subprocess", "tarfile", "tempfile", "textwrap"),
    *("threading", "token", "tokenize", "traceback", "types", "uuid", "weakref", "zipfile", "zlib"),
)


class Site:
    """Pages below ``root`` and the sitemap that lists them.

    Args:
        root: An empty folder; the pages are copied there.
        most: How many pages at most.
    """

    def __init__(self, root: Path, most: int) -> None:
        self.root = root
        for name in _INSTALLED:
            found = sorted(Path(name).rglob("*.html"))
            if len(found) >= _FEWEST:
                for path in found[:most]:
                    place = root / path.relative_to(name)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, place)
                break
        else:
            _write_pages(root)
        for path in self.pages():
            os.utime(path, (_OLD, _OLD))

    def pages(self) -> list[Path]:
        return sorted(self.root.rglob("*.html"))

    def files(self) -> dict[str, bytes]:
        """Return the pages by their relative paths."""
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in self.pages()}

    def write_sitemap(self, url: str, *, lastmod: bool) -> None:
        """List the pages as a plain sitemap does."""
        rows = []
        for path in self.pages():
            place = quote(path.relative_to(self.root).as_posix())
            moment = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            told = f"<lastmod>{moment:%Y-%m-%dT%H:%M:%SZ}</lastmod>" if lastmod else ""
            rows.append(f"<url><loc>{escape(f'{url}/{place}')}</loc>{told}</url>\n")
        sitemap = self.root / "sitemap.xml"
        before = sitemap.stat().st_mtime if sitemap.exists() else _OLD
        sitemap.write_text(
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
            f"{''.join(rows)}</urlset>\n"
        )
        os.utime(sitemap, (before + 60, before + 60))  # no two within a second, nor just now


def _write_pages(root: Path) -> None:
    for name in _MODULES:
        html = pydoc.HTMLDoc()
        page = html.page(name, html.document(importlib.import_module(name)))
        (root / f"{name}.html").write_text(page, "utf-8")
