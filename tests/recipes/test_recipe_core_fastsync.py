"""The recipe for CORE FastSync is typed beside a Source in its form."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of
from tests.support.software.fastsync_site import FIRST, FastSyncSite

DAY = timedelta(days=1)


@pytest.fixture
def site() -> Iterator[FastSyncSite]:
    made = FastSyncSite()
    for number in range(5):
        made.put(number, f"Article {number}")
    with made.source:
        made.write_dump()
        made.now = FIRST + DAY
        made.write_changes(FIRST, made.now)
        yield made


@pytest.fixture
def typed(site: FastSyncSite, tmp_path: Path) -> TypedPage:
    page = TypedPage(RECIPES / "core-fastsync.md", tmp_path, {"https://fastsync.example": site.url})
    (tmp_path / "resourcesync.toml").write_text(page.blocks("toml")[0])
    return page


def copies(typed: TypedPage) -> dict[str, bytes]:
    found = files_of(typed.folder / "core")
    return {name.rpartition("/")[2].partition(".")[0]: body for name, body in found.items()}


def articles(site: FastSyncSite) -> dict[str, bytes]:
    return {str(number): site.article(number) for number in site.titles}


def a_day(site: FastSyncSite, number: int) -> None:
    """Let a day of changes pass, and its package be written."""
    begin = site.now
    site.put(1, f"Changed on day {number}")
    site.put(10 + number, "New")
    if number == 2:
        site.delete(3)
    if number == 4:
        site.put(3, "Back again")
        site.delete(11)
    site.now = begin + DAY
    site.write_changes(begin, site.now)


def test_the_recipe_does_what_it_says(site: FastSyncSite, typed: TypedPage) -> None:
    pull, audit = typed.blocks("sh")
    first = typed.succeed(pull)
    assert typed.here("0 of 5 hashes verified, 5 by MD5, SHA-1 or length only") in first
    assert copies(typed) == articles(site)

    for number in range(1, 4):
        a_day(site, number)
        if number != 1:  # a day without a pull
            assert "In sync" in typed.succeed(pull)
            assert copies(typed) == articles(site)

    assert "nothing changed" in typed.succeed(pull)
    assert "In sync" in typed.succeed(audit)
    packages = [asked.target for asked in site.source.asked if "changedumps" in asked.target]
    assert len(packages) == len(set(packages)) == 4, "each package once"


def test_a_mirror_that_was_not_pulled_for_too_long_says_so(
    site: FastSyncSite, typed: TypedPage
) -> None:
    pull = typed.blocks("sh")[0]
    typed.succeed(pull)
    before = copies(typed)
    site.now += 3 * DAY
    a_day(site, 1)

    ran = typed.type(pull)

    assert ran.code == 7
    assert "error[change-gap]" in ran.stderr
    assert copies(typed) == before
    site.write_dump()
    typed.type(pull)
    assert copies(typed) == articles(site)
