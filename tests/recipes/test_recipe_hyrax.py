"""The recipe for Hyrax is typed beside a site that answers as Hyrax does."""

import re
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of
from tests.support.software.hyrax_site import WEEK, HyraxSite

WORKS = 40


@pytest.fixture
def site() -> Iterator[HyraxSite]:
    made = HyraxSite()
    for number in range(WORKS):
        made.put(number, f"Work {number}")
    with made.source:
        yield made


def page(site: HyraxSite, folder: Path) -> TypedPage:
    return TypedPage(RECIPES / "hyrax.md", folder, {"https://repo.example": site.url})


def titles(mirror: Path) -> list[str]:
    found = (re.search(rb"<title>(.*)</title>", body) for body in files_of(mirror).values())
    return sorted(title[1].decode() for title in found if title)


def present(site: HyraxSite) -> list[str]:
    return sorted(work.title for work in site.works.values())


def test_a_mirror_of_the_sitemap_deletes_only_where_asked(site: HyraxSite, tmp_path: Path) -> None:
    typed = page(site, tmp_path)
    pull, delete = typed.blocks("sh")
    assert "0 of 40 hashes verified" in typed.succeed(pull)
    site.put(3, "Changed")
    site.destroy(5)

    kept = typed.succeed(pull)

    assert "1 file no longer listed (kept)" in kept
    assert titles(tmp_path / "copy") == sorted([*present(site), "Work 5"])
    assert typed.type(delete).code == 3  # the parts of the sitemap may be of several moments
    with sqlite3.connect(tmp_path / "copy/.resourcesync/state.db") as state:
        state.execute("UPDATE pending SET first = first - 3600000000")
    typed.succeed(delete)
    assert titles(tmp_path / "copy") == present(site)


def test_lists_of_a_week_ago_are_mirrored_without_a_lie(site: HyraxSite, tmp_path: Path) -> None:
    """Exit 0 is said of what the lists were made of, and exit 3 where that is not to be had."""
    typed = page(site, tmp_path)
    pull = typed.here("resourcesync pull https://repo.example own")
    first = typed.succeed(pull)
    assert f"state as of {site.now:%Y-%m-%d %H:%M}" in first
    of_the_lists = present(site)
    site.put(3, "Changed")
    site.put(WORKS, "New")
    site.destroy(5)

    within = typed.succeed(pull)
    new_mirror = typed.type(f"{pull}2")

    assert "nothing changed since" in within
    assert titles(tmp_path / "own") == of_the_lists
    assert new_mirror.code == 3
    assert "404" in new_mirror.said
    for _ in range(3):
        site.now += WEEK
        ran = typed.type(pull)
        assert ran.code == 0
        assert "warning[rewritten]" in ran.stderr
        assert titles(tmp_path / "own") == present(site)
        site.now += timedelta(minutes=1)
        site.put(6, f"Changed at {site.now}")
        site.destroy(min(site.works))
