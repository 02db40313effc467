"""``list``: the copies of a mirror for other programs, and the same by `Mirror.resources`."""

import csv
from datetime import datetime, timedelta

from resourcesync import Mirror
from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, MIRRORED, Said, rows
from tests.support.servers.tiny_source import TinySource


def test_each_copy_is_told_with_its_digest_its_proof_and_its_times(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()

    assert run(["list", "museum", "--json"]) == 0

    *told, end = rows(said)
    copies = [row for row in told if row["type"] == "copy"]
    assert (end["command"], end["copies"]) == ("list", len(FILES))
    assert [row["uri"] for row in copies] == sorted(row["uri"] for row in copies)
    assert {row["path"] for row in copies} == set(MIRRORED)
    for row, resource in zip(copies, Mirror(source.url, "museum").resources(), strict=True):
        assert row["bytes"] == resource.length == resource.path.stat().st_size
        assert row["hash"] == " ".join(str(digest) for digest in resource.digests) != ""
        assert row["fixity"] == resource.fixity == "verified"
        for name, time in (("fetched", resource.fetched), ("confirmed", resource.confirmed)):
            assert time is not None
            assert abs(datetime.fromisoformat(row[name]) - time) < timedelta(milliseconds=1)


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
