"""The table of the programs that write sitemaps, from the results of trying them."""

import tomllib
from pathlib import Path
from typing import Final

import msgspec

RESULTS: Final = Path(__file__).with_name("producers.toml")


class Producer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one program writes; ``pages`` is 0 where only its output was read."""

    name: str
    version: str
    pages: int = 0
    here: int = 0
    lastmod: str = "none"
    edit: str = ""
    note: str = ""


def rows() -> str:
    """Return a row for each program, by name."""
    found = tomllib.loads(RESULTS.read_text("utf-8"))["producer"]
    producers = sorted(msgspec.convert(found, list[Producer]), key=lambda row: row.name.lower())
    head = "|Producer|Version|Delivered|`lastmod`|After an edit, the date|Also|\n"
    return f"{head}|---|---|---|---|---|---|\n" + "".join(
        f"|{row.name}|{row.version}|{f'{row.here} of {row.pages}' if row.pages else ''}"
        f"|{row.lastmod}|{row.edit}|{row.note}|\n"
        for row in producers
    )
