"""What a plain sitemap lists no more is kept: pull, audit and repair say the same of it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.command_line import FILES, Said, rows
from tests.support.tiny_source import TinySource

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
    assert "1 copy kept, no longer listed; resourcesync repair museum --delete drops it" in out
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


def test_what_no_pull_has_kept_yet_is_an_extra_and_the_advice_is_a_pull(
    source: TinySource, said: Said
) -> None:
    offer_sitemap(source, FILES)
    assert run(["pull", f"{source.url}/sitemap.xml", "museum"]) == 0
    offer_sitemap(source, FEWER)
    said.readouterr()

    assert run(["audit", "museum"]) == 1
    assert "next        resourcesync pull museum" in said.readouterr().out
    assert run(["pull", "museum"]) == 0
    assert run(["audit", "museum"]) == 0
