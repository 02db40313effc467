"""A small repository becomes a Source that passes judgement, and a mirror follows it over HTTP."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.accounts.oai_metadata import Bitstream, Item
from tests.support.accounts.oai_provider import Provider, Quirks, changed, providing
from tests.support.commands.run import files_of, free_port, resourcesync, running, script

ITEMS = 50


def item(number: int, luck: random.Random) -> Item:
    return Item(
        local=f"10673/{number}",
        title=f"Report {number} on the state of the coast",
        bitstreams=tuple(
            Bitstream(name=f"report-{at}.pdf", body=luck.randbytes(600))
            for at in range(1 + (number % 5 == 0))
        ),
    )


def change(provider: Provider, luck: random.Random) -> None:
    provider.tick(3 * 86_400)
    there = [local for local, (_, item) in provider.items.items() if item]
    gone, corrected, other = luck.sample(there, k=3)
    provider.remove(gone)
    changed(provider, corrected, title=f"Corrected report {luck.random()}")
    former = provider.items[other][1]
    assert former is not None
    first = replace(former.bitstreams[0], body=luck.randbytes(700))
    changed(provider, other, bitstreams=(first, *former.bitstreams[1:]))
    provider.put(item(ITEMS + len(provider.items), luck))


def is_mirrored(provider: Provider, mirror: Path) -> bool:
    """Whether a mirror has the metadata and the files of a repository, and nothing else."""
    held = {f"/{path}": body for path, body in files_of(mirror).items()}
    files = {
        path[path.index("/bitstream/") :]: body
        for path, body in held.items()
        if "/bitstream/" in path
    }
    items = {local: item for local, (_, item) in provider.items.items() if item}
    titles = {
        f"/resource/{local}/{prefix}.xml": item.title.encode()
        for local, item in items.items()
        for prefix in ("oai_dc", "mods")
    }
    bodies = {
        f"/bitstream/{local}/{file.name}": file.body
        for local, item in items.items()
        for file in item.bitstreams
    }
    metadata = {path for path in held if path.startswith("/resource/")}
    return (
        files == bodies
        and metadata == titles.keys()
        and all(title in held[path] for path, title in titles.items())
    )


@pytest.mark.founding(
    "WWW §2.3", "Europeana: a provider with OAI-PMH becomes a Source", "`publish oai:URL`"
)
def test_a_repository_becomes_a_source_that_a_mirror_follows(tmp_path: Path) -> None:
    luck, provider, port = random.Random(7), Provider(Quirks(page=10)), free_port()
    for number in range(ITEMS):
        provider.put(item(number, luck))
    provider.tick(3 * 86_400)  # behind the overlap of harvests
    url = f"http://127.0.0.1:{port}"

    def do(*words: str | Path) -> str:
        ran = resourcesync(*words, cwd=tmp_path)
        assert ran.code == 0, ran.said
        return ran.said

    def publish() -> int:
        before = len(provider.asked)
        chosen = ("--with", "prefixes=oai_dc,mods", "--with", "files-from=xoai")
        address = ("--url", url, "--out", tmp_path / "out")
        said = do("publish", f"oai:{provider.base}", *address, *chosen)
        requests = len(provider.asked) - before
        assert re.search(rf"^Read +\d+ records, {requests} requests$", said, re.MULTILINE), said
        return requests

    def follow() -> None:
        do("pull", url, tmp_path / "mirror", "--quiet", "--allow-origin", provider.url)
        assert is_mirrored(provider, tmp_path / "mirror")

    with providing(provider):
        publish()
        words = ("serve", tmp_path / "out", "--bind", f"127.0.0.1:{port}")
        with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
            judged = ("--live", "--sample", "50", "--fail-on", "warning")
            do("validate", url, *judged, "--allow-origin", provider.url)
            follow()
            assert publish() == 5, "nothing changed"
            for _ in range(2):
                change(provider, luck)
                publish()
                follow()


@pytest.mark.founding(
    "DSpace: Process",
    "Initialise, Update and Rebase write what DSpace wrote, an empty list too",
    "`publish --initialise`, `--update`, `--rebase`",
)
def test_a_repository_is_published_as_dspace_did(tmp_path: Path) -> None:
    provider, out = Provider(), tmp_path / "out"
    thesis = Bitstream(name="thesis.pdf", body=b"a thesis")
    for number in range(4):
        provider.put(Item(local=f"10673/{number}", bitstreams=(thesis,)))
    about = "https://repo.example/about.txt"
    chosen = ("prefixes=oai_dc", "files-from=mets", "names=dspace", "changefreq=never")
    options: list[str] = [word for name in chosen for word in ("--with", name)]

    def publish(*step: str) -> set[str]:
        done = resourcesync(
            "publish", f"oai:{provider.base}", "--out", out, *options, *step, cwd=tmp_path
        )
        assert done.code == 0, done.said
        return {path.name.partition("_")[0] for path in (out / "resourcesync").iterdir()}

    with providing(provider):
        begun = publish(
            "--url", "https://repo.example", "--change-lists", "archive",
            "-o", f"described_by={about}",
            "--initialise",
        )  # fmt: skip
        assert begun == {"capabilitylist.xml", "resourcelist.xml"}
        listed = (out / "resourcesync/resourcelist.xml").read_text("utf-8")
        assert "<loc>https://repo.example/resource/10673/3/oai_dc</loc>" in listed
        assert listed.count('rel="describes"') == listed.count('rel="describedby"') == 4
        assert listed.count("hash=") == listed.count("<changefreq>never</changefreq>") == 8
        capabilities = (out / "resourcesync/capabilitylist.xml").read_text("utf-8")
        assert f'rel="describedby" href="{about}"' in capabilities

        provider.remove("10673/2")
        assert publish("--update") == {*begun, "changelistarchive.xml", "changelist"}
        [changes] = (out / "resourcesync").glob("changelist_*.xml")
        assert changes.read_text("utf-8").count('change="deleted"') == 2
        publish("--rebase")
    assert len(list((out / "resourcesync").glob("changelist_*.xml"))) == 2
    assert "10673/2" not in (out / "resourcesync/resourcelist.xml").read_text("utf-8")
    assert not (out / "resource/10673/2").exists()
