"""0.5 and 0.6 write nearly the same: what cannot be told apart is not said to be one of them."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.rules.judged import OPEN

SAME = (
    OPEN
    + '<rs:ln rel="resourcesync" href="http://h.example/capabilitylist.xml"/>'
    + '<rs:md capability="{}" modified="2013-02-03T00:00:00Z"/>{}</urlset>'
)
ENTRY = "<url><loc>http://h.example/a</loc><lastmod>2013-02-02T00:00:00Z</lastmod></url>"
LIST = SAME.format("resourcelist", ENTRY)
ARCHIVE = SAME.format("changelist-archive", ENTRY)
MANIFESTS = (
    SAME.format("resourcedump-manifest", "")
    .replace(
        "</urlset>",
        '<sitemap><loc>http://h.example/m</loc><rs:md path="/m.xml"/></sitemap></urlset>',
    )
    .replace("urlset", "sitemapindex")
)


@pytest.mark.parametrize(
    ("text", "version"),
    [(LIST, "0.5 or 0.6"), (ARCHIVE, "0.6"), (MANIFESTS, "0.5")],
    ids=["a list", "an archive", "an index of manifests"],
)
def test_a_version_is_said_as_far_as_it_is_known(text: str, version: str, said: Said) -> None:
    Path("old.xml").write_text(text)

    assert run(["explore", "old.xml", "--depth", "1"]) == 0
    assert f"  dialect {version}  " in said.readouterr().out

    assert run(["explore", "old.xml", "--depth", "1", "--json"]) == 0
    assert rows(said)[1]["dialect"] == version

    target = "0.5" if version == "0.5" else "1.1"  # 1.1 has no index of manifests
    assert run(["convert", "old.xml", "--to", target, "--out", "new.xml"]) == 0
    assert f"1 entry, {version} to {target}" in said.readouterr().out


@pytest.mark.parametrize(("text", "version"), [(LIST, "0.5 or 0.6"), (ARCHIVE, "0.6")])
def test_the_judge_says_no_more_than_it_knows(text: str, version: str, said: Said) -> None:
    Path("old.xml").write_text(text)

    run(["validate", "old.xml", "--json"])

    found = rows(said)
    told = [row["message"] for row in found if row.get("rule") == "G44"]
    assert told == [f"written as in version {version}: modified is the time of the document"]
    assert [row["dialect"] for row in found if row["type"] == "document"] == [version]
