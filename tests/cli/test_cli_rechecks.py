"""``pull`` and ``status`` tell what is known by dates only; ``recheck`` when to ask."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import TinySource
from tests.support.worlds.site_maps import urlset

NAMES = ("a", "b", "c")


def test_a_pull_tells_how_many_copies_it_knows_by_their_dates_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    with TinySource() as source:
        uris = [f"{source.url}/{name}.html" for name in NAMES]
        for name in NAMES:
            source.put(f"/{name}.html", b"page", "text/html")
        source.put("/sitemap.xml", urlset(*((uri, "2025-01-01") for uri in uris)), "text/xml")
        assert run(["pull", source.url, "m"]) == 0
        assert "by their dates" not in capsys.readouterr().out
        assert run(["pull", "m"]) == 0
        said = capsys.readouterr().out
        assert "3 of 3 known by their dates only" in said
        assert run(["pull", "m", "--json", "-o", "recheck=0"]) == 0
        end = rows(capsys)[-1]
    assert end["evidence"] == {"by_hash": 0, "by_request": 0, "by_date": 3, "unconfirmed": 0}
    assert end["fetched"]["rechecked"] == 0

    assert run(["status", "m", "--json"]) == 0
    status = next(row for row in rows(capsys) if row["type"] == "mirror")
    assert (status["evidence"]["by_date"], status["recheck_seconds"]) == (3, 0)
