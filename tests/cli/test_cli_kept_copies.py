"""What a plain sitemap lists no more is kept: pull, audit and repair say the same of it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said, rows
from tests.support.servers.tiny_source import TinySource

SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
GONE = "/objects/0003.txt"
FEWER = {target: body for target, body in FILES.items() if target != GONE}


def offer_sitemap(source: TinySource, files: Mapping[str, bytes]) -> None:
    source.answers.clear()
    for target, body in files.items():
        source.put(target, body)
    entries = "".join(f"<url><loc>{source.url}{target}</loc></url>" for target in files)
    text = f'<urlset xmlns="{SITEMAP}">{entries}</urlset>'
    source.put("/sitemap.xml", text.encode(), "application/xml")


@pytest.fixture
def kept(source: TinySource, said: Said) -> Path:
    """Mirror a plain sitemap, and pull again when it lists one page less."""
    offer_sitemap(source, FILES)
    assert run(["pull", f"{source.url}/sitemap.xml", "museum"]) == 0
    offer_sitemap(source, FEWER)
    assert run(["pull", "museum"]) == 0
    said.readouterr()
    return Path("museum", GONE[1:])


@pytest.mark.parametrize("method", ["lists", "stat", "hash"])
def test_a_copy_that_a_pull_kept_is_no_fault_for_an_audit(
    kept: Path, said: Said, method: str
) -> None:
    assert run(["audit", "museum", "--method", method]) == 0

    out = said.readouterr().out
    assert "In sync " in out
    assert "1 copy no longer listed (kept); to remove: resourcesync repair museum --delete" in out
    assert run(["audit", "museum", "--json"]) == 0
    end = rows(said)[-1]
    assert (end["unlisted"], end["extra"], end["in_sync"]) == (1, 0, True)
    assert kept.exists()


def test_a_repair_that_may_delete_drops_what_was_kept(kept: Path, said: Said) -> None:
    assert run(["repair", "museum"]) == 0
    assert kept.exists()

    assert run(["repair", "museum", "--delete", "--max-delete", "0"]) == 7
    assert kept.exists()
    assert run(["repair", "museum", "--delete", "--max-delete", "1"]) == 0
    said.readouterr()

    assert not kept.exists()
    assert len(list(Path("museum/.resourcesync/trash").iterdir())) == 1
    assert run(["audit", "museum"]) == 0
    assert "kept" not in said.readouterr().out
    assert run(["pull", "museum"]) == 0


# --- files that were changed here, and are to be deleted ------------------------------------------


@pytest.fixture
def edited(source: TinySource, said: Said) -> Path:
    """Return a file of a mirror that was changed here before the Source took it away."""
    assert run(["pull", source.url, "museum"]) == 0
    path = Path("museum/objects/0001.txt")
    path.write_text("my notes")
    source.offer({name: body for name, body in FILES.items() if "0001" not in name}, at=LATER)
    said.readouterr()
    return path


def test_a_changed_file_that_is_to_be_deleted_is_named_with_what_to_do(
    edited: Path, said: Said
) -> None:
    for _ in range(2):
        assert run(["pull", "museum"]) == 3

        out = said.readouterr().out
        assert (
            "! /objects/0001.txt   to be deleted, but changed locally since it was fetched; kept"
            in out
        )
        assert "1 changed locally and kept" in out
        assert "1 file to delete, but changed locally: move or remove it," in out
        assert "run it again" not in out

    assert run(["pull", "museum", "--json"]) == 3
    lines = rows(said)
    (item,) = [line for line in lines if line["type"] == "item" and line["status"] == "error"]
    assert (item["action"], item["code"], item["kept"]) == ("delete", "local-change", True)
    assert (lines[-1]["held"], lines[-1]["reasons"]) == (0, {"local-change": 1})
    assert edited.read_text() == "my notes"


# --- pages that lead away -------------------------------------------------------------------------


# --- lists that are not whole ---------------------------------------------------------------------
