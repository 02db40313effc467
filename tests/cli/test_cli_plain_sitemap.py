"""``publish --sitemap``: at the top, where the protocol lets a sitemap list all of a site."""

from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.rules.judged import code, codes
from tests.support.servers.tiny_source import TinySource

NAME = "resourcesync-sitemap.xml"


def test_the_protocol_is_kept_at_the_top_and_not_in_a_folder(
    tree: Path, source: TinySource, said: Said
) -> None:
    assert run(["publish", "public", "--url", source.url, "--sitemap"]) == 0
    text = (tree / NAME).read_bytes()
    source.put(f"/{NAME}", text, "application/xml")
    source.put("/resourcesync/sitemap.xml", text, "application/xml")
    said.readouterr()

    assert run(["validate", f"{source.url}/{NAME}", "--profile", "sitemap"]) == 0
    assert run(["validate", f"{source.url}/resourcesync/sitemap.xml", "--profile", "sitemap"]) == 1
    assert set(codes(said.readouterr().out)) == {code("SM01")}
