"""A tree of documentation: published, served and pulled, the mirror is the same tree."""

import random
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from resourcesync.app.serving.applications import LateApplication
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.commands.run import files_of
from tests.support.servers import nginx
from tests.support.servers.listening import get
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.aggregating import Site

FOLDERS = (
    *("", "v1.2", "v1.2/notes", "libstdc++", "libstdc++/html.d", "Getting Started", "données/été"),
    *("日本語", "C++", "a=b;c,d", "50% done", "python3.11/_static", "deep/er/and/deep.er/still"),
    *("!important", "it's"),
)
# Only a backslash, "!" before a digit and "%20" in the name itself would be escaped.
NAMES = (
    "README",
    "LICENSE",
    "Makefile",
    "index.html",
    "index",
    "operator+",
    "operator<<",
    "operator()",
    "operator[]",
    "std::vector<bool>.html",
    "~vector",
    "café.html",
    "naïve résumé",
    "two words.txt",
    "a&b.txt",
    "100%",
    "#hash",
    "what?.html",
    "a+b",
    "a.b.c.tar.gz",
    "CON",
    "aux.h",
    "trailing.",
    'quo"te',
    "n" * 200,
)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    luck = random.Random(19)
    root = tmp_path / "docs"
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            (root / folder / name).write_bytes(f"{folder}/{name} ".encode() + luck.randbytes(20))
    return root


@pytest.mark.skipif(not nginx.installed(), reason="nginx is not here")
def test_a_mirror_of_what_nginx_serves_is_the_same_tree_and_is_served_the_same_way(
    docs: Path, tmp_path: Path, said: Said
) -> None:
    mirror = tmp_path / "mirror"
    with nginx.serving(docs, tmp_path / "there") as there:
        assert run(["publish", str(docs), "--url", there.url]) == 0
        said.readouterr()
        assert run(["pull", there.url, str(mirror), "--json"]) == 0
    assert not [row for row in rows(said) if row.get("action") == "move"]
    assert files_of(mirror) == files_of(docs)

    with nginx.configured(lines_of_the_page(mirror), tmp_path / "here") as here:
        files = {
            urlsplit(uri).path: (200, body)
            for uri, body in Site(mirror, LateApplication(), "").copies().items()
        }
        assert len(files) == len(FOLDERS) * len(NAMES)
        assert {target: get(here.url, target)[:2] for target in files} == files
        assert get(here.url, "/.resourcesync/state.db").status == 403


@pytest.mark.skipif(not nginx.installed(), reason="nginx is not here")
def test_a_mirror_of_a_site_without_html_in_its_addresses_is_served_the_same_way(
    tmp_path: Path,
) -> None:
    names = ("", "about", "blog", "blog/one", "docs/", "docs/v1.2")
    pages = {f"/{name}": f"page {name}".encode() for name in names}
    with TinySource() as source:
        source.offer(pages)
        assert run(["pull", source.url, str(tmp_path / "mirror")]) == 0

    with nginx.configured(lines_of_the_page(tmp_path / "mirror"), tmp_path / "here") as here:
        assert {target: get(here.url, target)[:2] for target in pages} == {
            target: (200, body) for target, body in pages.items()
        }
        assert get(here.url, "/docs/v1.2").fields["content-type"] == "text/html"


def lines_of_the_page(mirror: Path) -> str:
    page = Path(__file__).parents[2] / "docs/how-to/choose-file-names.md"
    (lines,) = re.findall(r"```nginx\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(lines.splitlines()) == 6
    return str(lines).replace("/srv/mirror", str(mirror))
