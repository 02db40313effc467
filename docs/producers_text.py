"""The table of the programs that write sitemaps, from the results of trying them."""

import tomllib
from pathlib import Path
from typing import Final

import msgspec

RESULTS: Final = Path(__file__).with_name("producers.toml")


class Producer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one program writes; ``pages`` is 0 where only its output was read.

    Of what a campaign measures, ``again`` is the pages listed after an edit, and ``moves`` is which
    dates it moves (``all``, ``page``, ``none``).
    """

    name: str
    version: str
    pages: int = 0
    here: int = 0
    again: int = 0
    lastmod: str = "none"
    edit: str = ""
    moves: str = ""
    note: str = ""


def recorded() -> list[Producer]:
    """Return what is recorded of each program."""
    found = tomllib.loads(RESULTS.read_text("utf-8"))["producer"]
    return msgspec.convert(found, list[Producer])


def rows() -> str:
    """Return a row for each program, by name."""
    producers = sorted(recorded(), key=lambda row: row.name.lower())
    head = "|Producer|Version|Delivered|`lastmod`|After an edit, the date|Also|\n"
    return f"{head}|---|---|---|---|---|---|\n" + "".join(
        f"|{row.name}|{row.version}|{f'{row.here} of {row.pages}' if row.pages else ''}"
        f"|{row.lastmod}|{row.edit}|{row.note}|\n"
        for row in producers
    )
