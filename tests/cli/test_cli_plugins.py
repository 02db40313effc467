"""Plug-ins of another distribution, which is installed for the while; and ``--link``."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.accounts.distributions import install
from tests.support.commands.command_line import Said
from tests.support.commands.run import Ran
from tests.support.commands.started import python
from tests.support.documents.written import sha256
from tests.support.servers.hostile_server import HostileServer
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.scripted_source import serve
from tests.support.worlds.loose_source import PATCH, Links, LooseLists, Style, link

CODE = """
def apply(previous, patch, result, limit):
    old, new = patch.read().split(b">")
    result.write(previous.read().replace(old, new))
"""
BROKEN = "raise RuntimeError('no luck today')\n"
SECOND = 1_000_000
NOW = 1_780_000_000 * SECOND
Plugged = Callable[..., Ran]


@pytest.fixture
def site(here: Path) -> Path:
    """Install a distribution with a format of patches, and a broken one."""
    points = {
        "resourcesync.patches": {"application/x-acme": "acme_sync:apply"},
    }
    site = install(here / "site", "acme_sync", points, CODE)
    broken = {"resourcesync.engines": {"broken": "acme_broken:go"}}
    return install(site, "acme_broken", broken, BROKEN, version="0.0.1")


@pytest.fixture
def plugged(site: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugged]:
    """Run our command where the distribution is installed, in this process."""
    monkeypatch.syspath_prepend(str(site))

    def ran(*words: str) -> Ran:
        said.readouterr()
        code = run([*words])
        return Ran(code, *said.readouterr())

    yield ran
    for module in ("acme_sync", "acme_broken"):
        sys.modules.pop(module, None)


class Changing:
    """A Source on a server whose resource changes, with a patch."""

    def __init__(self, server: HostileServer) -> None:
        self._server = server
        self.base = f"{server.origin}/resourcesync/"
        self._links = Links()
        self._lists = LooseLists(Style(), self._links, self.base)
        self._now = NOW

    def publish(self, name: str, body: bytes, patch: tuple[str, bytes] | None = None) -> None:
        uri = f"{self._server.origin}/{name}"
        if patch is not None:
            media_type, data = patch
            place = self._server.on(f"/patches/{name}", serve(data))
            facts = f' type="{media_type}" hash="{sha256(data)}" length="{len(data)}"'
            self._links.patches[uri] = link(PATCH, place, facts)
        self._server.on(f"/{name}", serve(body))
        self._now += 60 * SECOND
        self._lists.publish(self._now, {uri: body})
        for document, text in self._lists.documents().items():
            self._server.on(f"/resourcesync/{document}", serve(text.encode()))


def test_a_plug_in_applies_patches_of_its_media_type(plugged: Plugged) -> None:
    with HostileServer() as server:
        source = Changing(server)
        chunk = b"number one " + b"x" * 300
        source.publish("a.bin", chunk)
        assert plugged("pull", f"{source.base}capabilitylist.xml", "mirror").code == 0
        source.publish("a.bin", chunk.replace(b"one", b"two"), ("application/x-acme", b"one>two"))
        server.asked.clear()
        ran = plugged("pull", "mirror", "-i")
        assert ran.code == 0
        assert "by a patch of 7 B   sha-256 verified" in ran.stdout
        assert Path("mirror/a.bin").read_bytes() == chunk.replace(b"one", b"two")
        assert "/a.bin" not in [asked.target for asked in server.asked]
        why = plugged("why", "mirror", "a.bin")
        assert "Patched   " in why.stdout
        assert "made this copy, hash verified" in why.stdout


# --- --link ---


def test_a_pull_from_the_web_into_a_folder_searches_for_no_plug_ins(
    source: TinySource, here: Path
) -> None:
    code = (
        "import sys, resourcesync.cli.main as main\n"
        "ended = main.run(sys.argv[1:])\n"
        "print(ended, 'importlib.metadata' in sys.modules)"
    )

    ran = python(code, "pull", source.url, "mirror", "-q", home=here, measured=False)

    assert ran.stdout.splitlines()[-1] == "0 False", ran.stderr
