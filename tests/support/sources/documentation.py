"""A site of plain pages with a sitemap."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.support.worlds.site_maps import urlset

_OLD: Final = 1_700_000_000


class Site:
    def __init__(self, root: Path, count: int) -> None:
        self.root = root
        for number in range(count):
            place = root / (
                "index.html" if number == 0 else f"part-{number % 7}/page-{number}.html"
            )
            place.parent.mkdir(exist_ok=True)
            place.write_text(f"<html><title>Page {number}</title>{number * 'text '}</html>")
        for path in self.pages():
            os.utime(path, (_OLD, _OLD))

    def pages(self) -> list[Path]:
        return sorted(self.root.rglob("*.html"))

    def files(self) -> dict[str, bytes]:
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in self.pages()}

    def write_sitemap(self, url: str, *, lastmod: bool) -> None:
        entries = []
        for path in self.pages():
            moment = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            place = quote(path.relative_to(self.root).as_posix())
            entries.append((f"{url}/{place}", f"{moment:%Y-%m-%dT%H:%M:%SZ}" if lastmod else ""))
        sitemap = self.root / "sitemap.xml"
        before = sitemap.stat().st_mtime if sitemap.exists() else _OLD
        sitemap.write_bytes(urlset(*entries))
        os.utime(sitemap, (before + 60, before + 60))  # no two within a second, nor just now
