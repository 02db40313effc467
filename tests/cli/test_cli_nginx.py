"""A published folder behind nginx with the lines of ``share/resourcesync/nginx.conf``."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.servers import nginx

LINES = Path(__file__).parents[2] / "share" / "resourcesync" / "nginx.conf"

pytestmark = pytest.mark.skipif(not nginx.installed(), reason="nginx is not installed")


class Site(NamedTuple):
    """A published folder and its address."""

    tree: Path
    url: str

    def ask(self, path: str, **fields: str) -> tuple[int, bytes, dict[str, str]]:
        names = {name.replace("_", "-"): value for name, value in fields.items()}
        try:
            response = urlopen(Request(f"{self.url}{path}", headers=names))
        except HTTPError as error:
            response = error
        with response:
            found = {name.lower(): value for name, value in response.headers.items()}
            return response.status, response.read(), found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    tree = tmp_path / "my tree"
    (tree / "shelf").mkdir(parents=True)
    (tree / "pages").mkdir()
    for number in range(12):
        (tree / "shelf" / f"{number} é.txt").write_text(f"{number}" * 100)
    (tree / "pages" / "index.html").write_text("<p>page")
    (tree / ".secret").write_text("secret")
    (tree / "draft.txt~").write_text("draft")
    place = f'root "{tree}"; include "{LINES}";'
    with nginx.configured(place, tmp_path / "nginx") as server:
        assert run(["publish", str(tree), "--url", server.url, "--dumps", "all", "--quiet"]) == 0
        yield Site(tree, server.url)


@pytest.mark.founding("DSpace: Process", "Documents are static files of a web server", "`publish`")
def test_a_publication_behind_nginx_is_valid_and_in_sync(site: Site, said: Said) -> None:
    copy = str(site.tree.parent / "copy")
    validated = run(["validate", site.url, "--fail-on", "warning"])
    pulled = run(["pull", site.url, copy, "--quiet"])
    audited = run(["audit", copy, "--quiet"])
    (site.tree / "shelf" / "new.txt").write_text("new")
    run(["publish", str(site.tree), "--quiet"])
    again = run(["pull", copy, "--quiet"])

    assert (validated, pulled, audited, again) == (0, 0, 0, 0), said.readouterr()
    assert Path(copy, "shelf", "new.txt").read_text() == "new"


def test_types_caching_and_links_are_those_of_serve(site: Site) -> None:
    description = site.ask("/.well-known/resourcesync")
    listed = site.ask("/resourcesync/resourcelist.xml")
    packed = site.ask("/resourcesync/resourcelist.xml", accept_encoding="gzip")
    again = site.ask("/resourcesync/resourcelist.xml", if_none_match=listed[2]["etag"])
    (package,) = (site.tree / "resourcesync").glob("resourcedump-*.zip")
    package_fields = site.ask(f"/resourcesync/{package.name}")[2]
    resource = site.ask("/shelf/1%20%C3%A9.txt")

    for document in (description, listed):
        assert document[0] == 200
        assert document[2]["content-type"] == "application/xml"
        assert document[2]["cache-control"] == "no-cache"
    assert again[0] == 304
    assert packed[2]["content-encoding"] == "gzip"
    assert package_fields["content-type"] == "application/zip"
    assert package_fields["cache-control"].endswith("immutable")
    assert resource[:2] == (200, b"1" * 100)
    assert resource[2]["link"] == '</resourcesync/capabilitylist.xml>; rel="resourcesync"'


def test_a_folder_is_its_page_and_never_a_listing(site: Site) -> None:
    assert site.ask("/pages/")[1] == site.ask("/pages")[1] == b"<p>page"
    assert site.ask("/shelf/")[0] == 403


def test_what_is_not_published_is_absent_and_a_link_is_not_followed(site: Site) -> None:
    outside = site.tree.parent / "private.txt"
    outside.write_text("private")
    (site.tree / "out.txt").symlink_to(outside)
    (site.tree / "resourcesync" / ".hidden.xml").write_text("hidden")
    (site.tree / "resourcesync" / "note.txt").write_text("note")
    hidden = (
        "/.secret",
        "/draft.txt~",
        "/.resourcesync/catalogue.db",
        "/shelf/no.txt",
        "/resourcesync/.hidden.xml",
        "/resourcesync/note.txt",
    )

    assert {path: site.ask(path)[0] for path in hidden} == dict.fromkeys(hidden, 404)
    assert site.ask("/out.txt")[0] == 403


def test_a_folder_that_is_gone_is_a_fault(site: Site) -> None:
    site.tree.rename(site.tree.parent / "elsewhere")

    assert site.ask("/shelf/1%20%C3%A9.txt")[0] == 503
    assert site.ask("/resourcesync/changelist.xml")[0] == 503
