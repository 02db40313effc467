"""The recipe for CORE FastSync is typed beside a Source in its form."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import Answer, Asked, TinySource
from tests.support.software.fastsync import FastSync, Style
from tests.support.software.software_source import Event, Known
from tests.support.worlds.network import BASE

DAY = timedelta(days=1)


class FastSyncSite:
    """The service on loopback; an article cannot be asked for at its address, a page is there."""

    def __init__(self) -> None:
        self.source, self.core = TinySource(self.respond), FastSync(Style())
        self.known = Known(now=datetime(2026, 4, 1, tzinfo=UTC), contents={}, events=[])

    def respond(self, asked: Asked) -> Answer | None:
        if not asked.target.startswith("/display/"):
            return None
        return Answer(
            body=b"<html>Sign in</html>", headers={"Content-Type": "text/html"}, status=403
        )

    def put(self, number: int, title: str) -> None:
        self.known.now += timedelta(hours=1)
        uri, data = f"{self.source.url}/display/{number}", title.encode()
        change = "updated" if uri in self.known.contents else "created"
        self.known.contents[uri] = data
        event = Event(time=self.known.now, uri=uri, change=change, data=data)
        self.known.events.append(event)

    def delete(self, number: int) -> None:
        self.known.now += timedelta(hours=1)
        uri = f"{self.source.url}/display/{number}"
        del self.known.contents[uri]
        self.known.events.append(Event(time=self.known.now, uri=uri, change="deleted"))

    def update(self) -> None:
        """Write the package of a day."""
        self.known.now += DAY
        self.core.update(self.known)
        self.write()

    def write(self) -> None:
        """Serve the documents as they are now."""
        for path, body in self.core.documents(self.known).items():
            if path.endswith(".xml"):
                here = body.replace(BASE.encode(), f"{self.source.url}/".encode())
                self.source.put(f"/{path}", here, "application/xml")
            else:
                self.source.put(f"/{path}", body, "application/x-xz")


@pytest.fixture
def site() -> Iterator[FastSyncSite]:
    made = FastSyncSite()
    with made.source:
        for number in range(5):
            made.put(number, f"Article {number}")
        made.known.now += DAY
        made.write()
        made.update()
        yield made


@pytest.fixture
def typed(site: FastSyncSite, tmp_path: Path) -> TypedPage:
    stands_for = {"https://fastsync.example": site.source.url}
    page = TypedPage(RECIPES / "core-fastsync.md", tmp_path, stands_for)
    (tmp_path / "resourcesync.toml").write_text(page.blocks("toml")[0])
    return page


def copies(typed: TypedPage) -> dict[str, bytes]:
    found = files_of(typed.folder / "core")
    return {name.rpartition("/")[2].partition(".")[0]: body for name, body in found.items()}


def articles(site: FastSyncSite) -> dict[str, bytes]:
    return {uri.rpartition("/")[2]: body for uri, body in site.known.contents.items()}


def a_day(site: FastSyncSite, number: int) -> None:
    """Let a day of changes pass, and its package be written."""
    site.put(1, f"Changed on day {number}")
    site.put(10 + number, "New")
    if number == 2:
        site.delete(3)
    if number == 3:
        site.put(3, "Back again")
    site.update()


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
    a_day(site, 1)
    site.core.packages.pop()
    a_day(site, 2)

    ran = typed.type(pull)

    assert ran.code == 7
    assert "error[change-gap]" in ran.stderr
    assert copies(typed) == before
    site.core.dump(site.known)
    site.write()
    typed.type(pull)
    assert copies(typed) == articles(site)
