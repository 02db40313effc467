"""A site with a plain sitemap, served by nginx: what a mirror of it costs, and keeps."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from resourcesync.adapters.system import SystemClock
from resourcesync.app.mirror_home import Home
from resourcesync.app.mirror_opening import open_destination
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from tests.support.commands.run import Ran, files_of, resourcesync
from tests.support.servers.nginx import Asked, Certificate, Nginx, installed, serving
from tests.support.sources.documentation import Site
from tests.support.worlds import site_maps

pytestmark = pytest.mark.skipif(not installed(), reason="nginx is not here")
PAGES = 60
LONG_AGO = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Museum:
    site: Site
    server: Nginx
    home: Path

    @property
    def mirror(self) -> Path:
        return self.home / "mirror"

    def pull(self, *words: str) -> tuple[Ran, list[Asked]]:
        """Pull; return what was said and what the server was asked, by its own account."""
        self.server.take()
        ran = resourcesync("pull", *words, str(self.mirror), "--json", "--quiet", cwd=self.home)
        return ran, self.server.take()

    def change(self, *, lastmod: bool) -> set[str]:
        """Change three pages, add one, take two away; return what must be fetched."""
        first, second, third, *_, gone, lost = self.site.pages()
        for page in (first, second, third):
            page.write_bytes(page.read_bytes() + b"<!-- changed -->")
        new = self.site.root / "new-page.html"
        new.write_text("<html><title>New</title></html>")
        gone.unlink()
        lost.unlink()
        self.site.write_sitemap(self.server.url, lastmod=lastmod)
        return {page.relative_to(self.site.root).as_posix() for page in (first, second, third, new)}


@pytest.fixture
def museum(tmp_path: Path) -> Iterator[Museum]:
    root = tmp_path / "site"
    root.mkdir()
    site = Site(root, PAGES)
    with serving(root, tmp_path / "nginx") as server:
        yield Museum(site, server, tmp_path)


def pages_of(asked: list[Asked], status: int) -> set[str]:
    return {
        asked.target.removeprefix("/")
        for asked in asked
        if asked.status == status and asked.target.endswith(".html")
    }


@pytest.mark.founding(
    "D-Lib §4", "Thousands of sites with a sitemap are Sources at once", "`pull SITE`"
)
@pytest.mark.parametrize("lastmod", [True, False])
def test_a_first_pull_of_a_site_fetches_each_page_once(museum: Museum, *, lastmod: bool) -> None:
    museum.site.write_sitemap(museum.server.url, lastmod=lastmod)

    ran, asked = museum.pull(museum.server.url)

    assert ran.code == 0, ran.said
    assert files_of(museum.mirror) == museum.site.files()
    counts = Counter(asked.target for asked in asked if asked.target.endswith(".html"))
    assert set(counts.values()) == {1}
    assert len(asked) - sum(counts.values()) <= 12, "looking for lists takes a few requests"
    assert ran.end["fetched"]["unverified"] == ran.end["created"] == len(museum.site.files())


@pytest.mark.founding(
    "WWW §1", "In the simplest case a sitemap with modification times is enough", "`pull SITE`"
)
def test_with_lastmod_a_second_pull_asks_for_the_sitemap_alone(museum: Museum) -> None:
    museum.site.write_sitemap(museum.server.url, lastmod=True)
    museum.pull(museum.server.url)

    again, asked = museum.pull()

    assert again.code == 0
    assert pages_of(asked, 200) == pages_of(asked, 304) == set()
    assert len(asked) <= 3
    assert sum(asked.sent for asked in asked) < 2_000

    wanted = museum.change(lastmod=True)
    changed, asked = museum.pull()

    assert changed.code == 0, changed.said
    assert pages_of(asked, 200) == wanted
    assert pages_of(asked, 304) == set()
    assert len(asked) <= len(wanted) + 3


def test_without_lastmod_a_second_pull_asks_with_conditions(museum: Museum) -> None:
    museum.site.write_sitemap(museum.server.url, lastmod=False)
    museum.pull(museum.server.url)
    pages = set(museum.site.files())

    again, asked = museum.pull()

    assert again.code == 0
    assert pages_of(asked, 200) == set()
    assert pages_of(asked, 304) == pages
    assert sum(asked.sent for asked in asked) < 400 * len(asked), "no body came again"

    wanted = museum.change(lastmod=False)
    changed, asked = museum.pull()

    assert changed.code == 0, changed.said
    assert pages_of(asked, 200) == wanted
    assert pages_of(asked, 304) == set(museum.site.files()) - wanted


@pytest.mark.parametrize("lastmod", [True, False])
def test_pages_that_left_a_sitemap_are_kept_until_it_is_said_that_they_may_go(
    museum: Museum, *, lastmod: bool
) -> None:
    museum.site.write_sitemap(museum.server.url, lastmod=lastmod)
    museum.pull(museum.server.url)
    before = museum.site.files()
    museum.change(lastmod=lastmod)
    os.utime(museum.site.root / "sitemap.xml", (LONG_AGO, LONG_AGO))  # from now on: not modified
    now = museum.site.files()

    kept, _ = museum.pull()

    assert (kept.code, kept.end["retained"]["unlisted"], kept.end["deleted"]) == (0, 2, 0)
    assert files_of(museum.mirror) == {**before, **now}

    held, _ = museum.pull("--delete", "absent", "--max-delete", "1")
    done, _ = museum.pull("--max-delete", "2")

    assert (held.code, held.end["held"], done.code, done.end["deleted"]) == (7, 2, 0, 2)
    assert files_of(museum.mirror) == now
    assert len(list((museum.mirror / ".resourcesync/trash").iterdir())) == 2


PARTS = 4


@pytest.fixture
def indexed(museum: Museum) -> Museum:
    pages = museum.site.pages()
    for number in range(PARTS):
        uris = (
            f"{museum.server.url}/{page.relative_to(museum.site.root).as_posix()}"
            for page in pages[number::PARTS]
        )
        part = museum.site.root / f"part{number}.xml"
        part.write_bytes(site_maps.urlset(*((uri, "2026-01-01") for uri in uris)))
    names = (f"{museum.server.url}/part{number}.xml" for number in range(PARTS))
    (museum.site.root / "sitemap.xml").write_bytes(site_maps.index(*names))
    for document in museum.site.root.glob("*.xml"):
        os.utime(document, (LONG_AGO, LONG_AGO))  # the ETag of a file of this second proves nothing
    ran, _ = museum.pull(museum.server.url)
    assert ran.code == 0, ran.said
    return museum


def statuses(asked: list[Asked]) -> Counter[int]:
    return Counter(each.status for each in asked if each.target.endswith(".xml"))


def test_nothing_is_sent_of_an_index_of_sitemaps_that_did_not_change(indexed: Museum) -> None:
    for _ in range(2):
        ran, asked = indexed.pull()

        assert ran.code == 0, ran.said
        assert statuses(asked) == {304: PARTS + 1}
        assert len(asked) == PARTS + 1


def test_a_part_that_changed_is_sent_and_the_others_are_not(indexed: Museum) -> None:
    (indexed.site.root / "new.html").write_text("new")
    part = indexed.site.root / "part1.xml"
    entry = f"<url><loc>{indexed.server.url}/new.html</loc></url>"
    part.write_text(part.read_text().replace("</urlset>", f"{entry}</urlset>"))

    ran, asked = indexed.pull()

    assert ran.code == 0, ran.said
    assert files_of(indexed.mirror)["new.html"] == b"new"
    assert statuses(asked) == {304: PARTS, 200: 1}


FILES = 600


@pytest.fixture
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for number in range(FILES):
        path = root / f"d{number % 9}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {number}\n")
    return root


@pytest.fixture
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Certificate]:
    folder = tmp_path_factory.mktemp("authority")
    made = trustme.CA()
    made.cert_pem.write_to_path(folder / "ca.pem")
    certificate = made.issue_cert("127.0.0.1")
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(folder / "chain.pem", append=True)
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    chain = Certificate(chain=folder / "chain.pem", key=folder / "key.pem")
    return str(folder / "ca.pem"), chain


def pull(url: str, mirror: Path, ca_file: str) -> RunReport:
    with open_destination(
        Home(mirror),
        source=url,
        network=Network(retries=0, ca_file=ca_file),
        report=lambda event, fields: None,
        cancel=CancelToken(SystemClock()),
    ) as destination:
        return destination.pull(PullOptions())


def test_http2_is_used_where_it_is_offered_and_one_connection_carries_all(
    tree: Path, tmp_path: Path, authority: tuple[str, Certificate]
) -> None:
    ca_file, certificate = authority
    with serving(tree, tmp_path / "nginx", certificate=certificate, http2=True) as server:
        assert resourcesync("publish", tree, "--url", server.url, cwd=tmp_path).code == 0
        report = pull(server.url, tmp_path / "mirror", ca_file)
        asked = server.take()

    assert (report.state, report.created) == (MirrorState.IN_SYNC, FILES)
    assert files_of(tmp_path / "mirror") == files_of(tree)
    assert {asked.protocol for asked in asked} == {"HTTP/2.0"}
    assert len(asked) >= FILES
    assert len({asked.connection for asked in asked}) <= 2
