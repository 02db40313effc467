"""Plug-ins of another distribution, which is installed for the while."""

import sys
from pathlib import Path

import pytest

from resourcesync.app import plugins
from resourcesync.cli.main import run
from tests.support.accounts.distributions import install
from tests.support.commands.command_line import LATER, Said
from tests.support.documents.written import facts
from tests.support.servers.tiny_source import TinySource
from tests.support.worlds.loose_source import PATCH

CODE = """
def apply(previous, patch, result, limit):
    old, new = patch.read().split(b">")
    result.write(previous.read().replace(old, new))
"""


def test_a_plug_in_applies_patches_of_its_media_type(
    source: TinySource, here: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {plugins.PATCHES: {"application/x-acme": "acme_sync:apply"}}
    monkeypatch.syspath_prepend(str(install(here / "site", "acme_sync", points, CODE)))
    monkeypatch.delitem(sys.modules, "acme_sync", raising=False)
    old, patch = b"number one " + b"x" * 300, b"one>two"
    new = old.replace(b"one", b"two")
    source.offer({"/a.bin": old})
    source.offer_changes()
    assert run(["pull", source.url, "mirror"]) == 0
    source.put("/a.patch", patch)
    place = f'href="{source.url}/a.patch" type="application/x-acme"{facts(patch)}'
    link = f'<rs:ln rel="{PATCH}" {place}/>'
    source.offer_changes(source.change("updated", "/a.bin", new, at=LATER, more=link))
    source.asked.clear()

    assert run(["pull", "mirror", "-i"]) == 0
    assert run(["why", "mirror", "a.bin"]) == 0

    shown = said.readouterr().out
    assert "by a patch of 7 B   sha-256 verified" in shown
    assert "Patched   " in shown
    assert "made this copy, hash verified" in shown
    assert Path("mirror/a.bin").read_bytes() == new
    assert "/a.bin" not in {asked.target for asked in source.asked}
