"""The inputs, generated the same way every time: trees of small files, and lists of them."""

import hashlib
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_HOUR_AGO = 1_767_225_600  # 2026-01-01T00:00:00Z: old enough that no client calls it fresh
_STAMP = "2026-01-01T00:00:00Z"
_PER_FOLDER = 1000
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A generated tree of files and where it is served."""

    root: Path
    files: int
    size: int

    def names(self) -> Iterator[str]:
        """Yield the relative path of each file."""
        return (_name(number) for number in range(self.files))


def make_tree(root: Path, files: int, size: int) -> Tree:
    """Write ``files`` files of ``size`` random bytes, 1,000 to a folder, with an old mtime."""
    source = random.Random(20_170_202)
    for number in range(files):
        path = root / _name(number)
        if number % _PER_FOLDER == 0:
            path.parent.mkdir(parents=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(descriptor, source.randbytes(size))
        os.close(descriptor)
        os.utime(path, (_HOUR_AGO, _HOUR_AGO))
    os.sync()
    return Tree(root=root, files=files, size=size)


def _name(number: int) -> str:
    return f"shelf-{number // _PER_FOLDER:03d}/object-{number:06d}.txt"


def offer(tree: Tree, url: str) -> None:
    """Write the neutral documents that every client is given: description, capabilities, list."""
    entries = (_entry(f"{url}/{name}", tree.root / name) for name in tree.names())
    _write(
        tree.root / "resourcelist.xml",
        "urlset",
        [f'<rs:ln rel="up" href="{url}/capabilitylist.xml"/>', _md("resourcelist", at=True)],
        entries,
    )
    _write(
        tree.root / "capabilitylist.xml",
        "urlset",
        [f'<rs:ln rel="up" href="{url}/.well-known/resourcesync"/>', _md("capabilitylist")],
        [f"<url><loc>{url}/resourcelist.xml</loc>{_md('resourcelist')}</url>"],
    )
    (tree.root / ".well-known").mkdir(exist_ok=True)
    _write(
        tree.root / ".well-known" / "resourcesync",
        "urlset",
        [_md("description")],
        [f"<url><loc>{url}/capabilitylist.xml</loc>{_md('capabilitylist')}</url>"],
    )


def _md(capability: str, *, at: bool = False) -> str:
    when = f' at="{_STAMP}"' if at else ""
    return f'<rs:md capability="{capability}"{when}/>'


def _entry(uri: str, path: Path) -> str:
    content = path.read_bytes()
    return _row(uri, hashlib.sha256(content).hexdigest(), len(content))


def _row(uri: str, digest: str, length: int) -> str:
    return (
        f"<url><loc>{uri}</loc><lastmod>{_STAMP}</lastmod>"
        f'<rs:md hash="sha-256:{digest}" length="{length}" type="text/plain"/></url>'
    )


def _write(path: Path, root: str, head: Iterable[str], entries: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.write(_HEAD.format(root=root))
        for rows in (head, entries):
            for row in rows:
                out.write(row)
                out.write("\n")
        out.write(f"</{root}>\n")


def make_lines(path: Path, numbers: Iterable[int], *, version: int = 0, change: str = "") -> None:
    """Write a line of JSON for each number: an invented resource, or what became of it."""
    told = f', "change": "{change}"' if change else ""
    with path.open("w", encoding="utf-8") as out:
        for number in numbers:
            digest = hashlib.sha256(b"%d %d" % (number, version)).hexdigest()
            out.write(
                f'{{"uri": "https://museum.example/collection/{_name(number)}"{told},'
                f' "lastmod": "{_STAMP}", "length": {1000 + number}, "hash": "sha-256:{digest}",'
                ' "type": "text/plain"}\n'
            )


def make_list(path: Path, entries: int) -> None:
    """Write a Resource List of ``entries`` invented resources, each with sha-256 and length."""
    rows = (
        _row(
            f"https://museum.example/collection/{_name(number)}",
            hashlib.sha256(b"%d" % number).hexdigest(),
            1000 + number,
        )
        for number in range(entries)
    )
    _write(path, "urlset", [_md("resourcelist", at=True)], rows)
