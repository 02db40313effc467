"""Published folders behind nginx, with the configuration that ``config nginx`` prints."""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from resourcesync.adapters.files.names_and_uris import MEDIA_TYPES
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.commands.settings_file import put
from tests.support.servers import nginx
from tests.support.servers.listening import get
from tests.support.servers.second_try import started
from tests.support.source_files import ROOT

needs_nginx = pytest.mark.skipif(not nginx.installed(), reason="nginx is not installed")


Serving = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def serving(here: Path, said: Said) -> Serving:
    @contextmanager
    def serving(tables: str) -> Iterator[str]:
        """Publish the Sources of some tables; serve them as the printed file says, at an origin."""

        def servers(url: str) -> str:
            put(tables.format(url=url))
            assert run(["publish", "--all", "--quiet"]) == 0
            said.readouterr()
            assert run(["config", "nginx"]) == 0
            return said.readouterr().out

        with nginx.printed(servers, here / "nginx") as server:
            yield server.url

    return serving


@pytest.fixture
def tree(here: Path) -> Path:
    tree = here / "my tree"
    (tree / "shelf").mkdir(parents=True)
    (tree / "pages").mkdir()
    for extension in re.findall(r" (\w+)", MEDIA_TYPES + " PDF unknown"):
        (tree / "shelf" / f"é.{extension}").write_text(f"{extension}" * 100)
    for name in ("1.txt", "1.html"):
        (tree / "shelf" / name).write_text("1" * 100)
    (tree / "pages" / "index.html").write_text("<p>page")
    (tree / ".secret").write_text("secret")
    (tree / "draft.txt~").write_text("draft")
    return tree


TABLE = '[source.museum]\npath = "my tree"\nurl = "{url}"\ndumps = "all"\n'


@needs_nginx
@pytest.mark.founding("DSpace: Process", "Documents are static files of a web server", "`publish`")
def test_files_are_served_as_the_lists_say_and_no_second_program_runs(
    serving: Serving, tree: Path, said: Said
) -> None:
    with serving(TABLE + "sitemap = true\nrobots = true\n") as site:
        validated = run(["validate", site, "--fail-on", "warning", "--sample", "100%"])
        pulled = run(["pull", site, "copy", "--quiet"])
        audited = run(["audit", "copy", "--quiet"])
        (tree / "shelf" / "new.txt").write_text("new")
        run(["publish", "museum", "--quiet"])
        again = run(["pull", "copy", "--quiet"])

        told = said.readouterr()
        assert (validated, pulled, audited, again) == (0, 0, 0, 0), told
        assert " 0 errors, 0 warnings" in told.out
        assert Path("copy", "shelf", "new.txt").read_text() == "new"
        assert get(site, "/resourcesync-sitemap.xml")[2]["content-type"] == "application/xml"
        assert get(site, "/robots.txt")[2]["content-type"] == "text/plain"


@needs_nginx
def test_lists_are_revalidated_and_packed_and_packages_stay(serving: Serving, tree: Path) -> None:
    with serving(TABLE) as site:
        description = get(site, "/.well-known/resourcesync")
        listed = get(site, "/resourcesync/resourcelist.xml")
        packed = get(site, "/resourcesync/resourcelist.xml", accept_encoding="gzip")
        again = get(site, "/resourcesync/resourcelist.xml", if_none_match=listed[2]["etag"])
        (package,) = (tree / "resourcesync").glob("resourcedump-*.zip")
        package_fields = get(site, f"/resourcesync/{package.name}")[2]
        resource = get(site, "/shelf/1.html", accept_encoding="gzip")

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
        assert get(site, "/pages/").body == b"<p>page"
        assert get(site, "/pages").fields["location"].endswith("/pages/")


@needs_nginx
def test_what_is_not_published_is_absent_and_a_folder_that_is_gone_is_a_fault(
    serving: Serving, tree: Path
) -> None:
    with serving(TABLE) as site:
        outside = tree.parent / "private.txt"
        outside.write_text("private")
        (tree / "out.txt").symlink_to(outside)
        (tree / "resourcesync" / ".hidden.xml").write_text("hidden")
        (tree / "resourcesync" / "note.txt").write_text("note")
        hidden = (
            "/.secret",
            "/draft.txt~",
            "/.resourcesync/catalogue.db",
            "/shelf/no.txt",
            "/resourcesync/.hidden.xml",
            "/resourcesync/note.txt",
        )

        assert {path: get(site, path)[0] for path in hidden} == dict.fromkeys(hidden, 404)
        assert get(site, "/out.txt")[0] == get(site, "/shelf/")[0] == 403
        tree.rename(tree.parent / "elsewhere")
        paths = ("/shelf/1.txt", "/resourcesync/changelist.xml", "/.well-known/resourcesync")
        assert [get(site, path)[0] for path in paths] == [503] * 3, "404 is deleted for mirrors"


@pytest.mark.parametrize("link", ["my tree/pages/same.html", "my tree"])
def test_a_published_symbolic_link_is_not_for_nginx_alone(
    link: str, tree: Path, said: Said
) -> None:
    target = tree / "shelf/1.html" if "/" in link else tree.rename(tree.parent / "elsewhere")
    (tree.parent / link).symlink_to(target)
    put(TABLE.format(url="http://h.example/my%20tree/").replace("all", "none"))
    assert run(["publish", "museum", "-q"]) == 0

    assert run(["config", "nginx"]) == 2

    assert f"{link}, a symbolic link, with 403" in said.readouterr().err


TWO_SETS = """
[source.files]
path = "www/files"
url = "{url}/files/"
site = "www"
[source.metadata]
path = "www/metadata"
url = "{url}/metadata/"
site = "www"
out = "www/lists"
"""


@needs_nginx
def test_two_sets_below_paths_of_one_host_share_their_description(
    serving: Serving, here: Path
) -> None:
    for name in ("files", "metadata"):
        (here / "www" / name).mkdir(parents=True)
        (here / "www" / name / f"{name} é.xml").write_text(f"<{name}/>")
    with serving(TWO_SETS) as site:
        pulls = (["/files/", "files"], ["/", "metadata", "--set", "lists"])
        for path, name, *words in pulls:
            assert run(["pull", f"{site}{path}", name, *words, "--quiet"]) == 0
            assert [path.name for path in Path(name).rglob("*.xml")] == [f"{name} é.xml"]
        assert run(["validate", site, "--fail-on", "warning", "--sample", "100%"]) == 0
        assert (
            get(site, "/nothing")[0] == get(site, "/metadata/.resourcesync/catalogue.db")[0] == 404
        )


SETS_OF_ONE_FOLDER = """
[source.files]
path = "www"
url = "{url}/"
site = "www"
exclude = ["*.xml"]
out = "www/files"
state = "state/files"
[source.metadata]
path = "www"
url = "{url}/"
site = "www"
include = ["*.xml"]
out = "www/metadata"
state = "state/metadata"
"""


@needs_nginx
def test_no_resource_leads_to_another_set_of_its_folder(serving: Serving, here: Path) -> None:
    for name in ("1.txt", "1.xml"):
        put("<a/>", f"www/a/{name}")
    with serving(SETS_OF_ONE_FOLDER) as site:
        assert run(["validate", site, "--fail-on", "warning", "--sample", "100%"]) == 0
        assert [get(site, f"/a/1.{end}")[0] for end in ("txt", "xml")] == [200, 200]


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_the_lines_for_caddy_serve_files_as_the_lists_say(tree: Path, said: Said) -> None:
    page = (ROOT / "docs/how-to/serve.md").read_text("utf-8")
    lines = page.partition("```caddy\n")[2].partition("```")[0]
    for path in (tree / "shelf").iterdir():  # the types of others are those of the system
        if path.suffix not in {".txt", ".xml", ".html", ".pdf", ".png", ".jpg"}:
            path.unlink()

    def command(ports: Mapping[str, int]) -> list[str | Path]:
        url = f"http://127.0.0.1:{ports['']}"
        assert run(["publish", str(tree), "--url", url, "--dumps", "all", "--quiet"]) == 0
        text = lines.replace("museum.example", url).replace("/srv/museum", f'"{tree}"')
        (tree.parent / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\n{text}")
        return ["caddy", "run", "--config", tree.parent / "Caddyfile", "--adapter", "caddyfile"]

    environment = {**os.environ, "HOME": str(tree.parent), "XDG_DATA_HOME": str(tree.parent)}
    log = tree.parent / "said"
    with started(command, log, ready=lambda found: found.accepts(), env=environment) as caddy:
        site = f"http://127.0.0.1:{caddy.port}"
        validated = run(["validate", site, "--fail-on", "warning", "--sample", "100%"])
        pulled = run(["pull", site, "copy", "--quiet"])
        listed = get(site, "/resourcesync/resourcelist.xml", accept_encoding="gzip")[2]
        hidden = {get(site, path)[0] for path in ("/.secret", "/.resourcesync/catalogue.db")}
        link = get(site, "/shelf/1.txt")[2]["link"]
        tree.rename(tree.parent / "elsewhere")
        gone = get(site, "/shelf/1.txt")[0]

    assert (validated, pulled, hidden, gone) == (0, 0, {404}, 503), said.readouterr()
    assert (listed["content-encoding"], listed["cache-control"]) == ("gzip", "no-cache")
    assert link == '</resourcesync/capabilitylist.xml>; rel="resourcesync"'
