"""A Source under a scheme of a plug-in: discovered, pulled, followed, audited."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.app import plugins
from resourcesync.cli.main import run
from tests.support.accounts.distributions import install
from tests.support.commands.command_line import MIRRORED, Said
from tests.support.servers.tiny_source import TinySource

CODE = """
from pathlib import Path
from urllib.parse import urlsplit

from resourcesync.errors import ResourceMissingError
from resourcesync.ports import FetchFailure, FetchResponse

ROOT = Path({root!r})


class Shelf:
    def __init__(self, options):
        assert options.scheme == "shelf"

    def fetch(self, requests):
        for request in requests:
            path = ROOT / urlsplit(request.uri).path.lstrip("/")
            if not path.is_file():
                error = ResourceMissingError("it is not on the shelf", uri=request.uri)
                yield FetchFailure(request=request, error=error)
                continue
            tag = str(path.stat().st_mtime_ns)
            if request.etag == tag:
                yield FetchResponse(request=request, status=304, uri=request.uri)
                continue
            request.sink.write(path.read_bytes())
            fields = {{"ETag": tag}}
            yield FetchResponse(request=request, status=200, uri=request.uri, headers=fields)
"""


@pytest.fixture(autouse=True)
def site(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = {plugins.TRANSPORTS: {"shelf": "acme_line:Shelf", "dead": "acme_line:gone"}}
    install(here / "site", "acme_line", points, CODE.format(root=str(here / "public")))
    monkeypatch.syspath_prepend(str(here / "site"))
    yield
    sys.modules.pop("acme_line", None)


def publish(tree: Path) -> None:
    """Publish the tree under ``shelf://museum/``."""
    assert run(["publish", str(tree), "--url", "http://museum/", "-qq"]) == 0
    for path in (*tree.rglob("*.xml"), *tree.glob(".well-known/*")):
        path.write_text(path.read_text().replace("http://museum/", "shelf://museum/"))


@pytest.mark.parametrize(
    "address", ["shelf://museum/", "shelf://museum/resourcesync/resourcelist.xml"]
)
def test_a_source_is_found_and_kept_in_step_by_a_transport(tree: Path, address: str) -> None:
    publish(tree)
    assert run(["pull", address, "mirror"]) == 0
    copies = {path: Path("mirror", path).read_bytes() for path in MIRRORED}
    assert copies == MIRRORED

    (tree / "objects/0001.txt").write_bytes(b"newer\n")
    assert run(["audit", "mirror", "--method", "remote"]) == 1
    publish(tree)
    assert run(["pull", "mirror"]) == 0
    assert Path("mirror/objects/0001.txt").read_bytes() == b"newer\n"
    assert run(["audit", "mirror"]) == 0
    assert run(["audit", "mirror", "--method", "remote"]) == 0


def test_what_nothing_is_for_is_refused_and_documents_open_no_schemes(
    source: TinySource, said: Said
) -> None:
    for address, error in (
        ("other://museum/", "neither http nor https"),
        ("dead://museum/", "cannot be used"),
    ):
        assert run(["pull", address, "mirror"]) == 2
        assert error in said.readouterr().err
        assert not Path("mirror").exists()
    source.offer_entries([source.entry("/a.txt", b"a").replace(source.url, "shelf://museum")])
    assert run(["pull", source.url, "mirror"]) == 3
    assert not list(Path("mirror").glob("*.txt"))


def test_header_fields_are_not_for_the_transports_of_others(tree: Path, said: Said) -> None:
    publish(tree)
    assert run(["pull", "shelf://museum/", "mirror", "--header", "X-Key: s3cret"]) == 2
    error = said.readouterr().err
    assert "for http and https" in error
    assert "s3cret" not in error
