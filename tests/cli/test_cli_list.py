"""``list``: the copies of a mirror for other programs, and the same by `Mirror.resources`."""

import csv

from resourcesync.cli.main import run
from tests.support.commands.command_line import MIRRORED, Said
from tests.support.servers.tiny_source import TinySource


def test_csv_has_a_header_and_one_line_for_each_copy(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()

    assert run(["list", "museum", "--csv"]) == 0

    found = list(csv.DictReader(said.readouterr().out.splitlines()))
    assert {row["path"] for row in found} == set(MIRRORED)
    assert all(row["uri"].endswith(row["path"]) and int(row["bytes"]) for row in found)
    assert all(row["fixity"] == "verified" and row["known_as"] == "" for row in found)


def test_what_is_no_mirror_has_no_list_and_one_form_is_chosen(said: Said) -> None:
    assert run(["list", "nowhere"]) == 2
    assert run(["list", "nowhere", "--csv", "--json"]) == 2
