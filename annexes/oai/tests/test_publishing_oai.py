"""A small repository becomes a Source that passes judgement, and a mirror follows it over HTTP."""

from pathlib import Path

from campaigns.oai import follow
from campaigns.outcome import Asked
from tests.support.accounts.oai_metadata import Bitstream, Item
from tests.support.accounts.oai_provider import Provider, providing
from tests.support.commands.run import Ran, resourcesync


def command(*words: str | Path, home: Path) -> Ran:
    return resourcesync(*words, cwd=home)


def test_a_repository_becomes_a_source_that_a_mirror_follows(tmp_path: Path) -> None:
    outcome = follow(Asked(size=50, seed=7, folder=tmp_path), command)

    assert outcome.violations == []
    found = dict(outcome.rows)
    assert found["mirror at first, resources"] == 160
    assert found["publication of no change, requests"] == 5


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
            "--url", "https://repo.example", "--change-lists", "archive", "--described-by", about,
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
