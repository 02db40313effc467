"""The page on judging is true: its commands are run as written, against a Source that is served."""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands.run import Ran, free_port, resourcesync, running, script

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to"
PAGES = ("explore-a-source.md", "validate-a-source.md")
PAGE = "\n".join((HOW_TO / page).read_text("utf-8") for page in PAGES)

BROKEN = """\
<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:rs="http://www.openarchives.org/rs/terms/">
 <rs:ln rel="up" href="https://museum.example/resourcesync/capabilitylist.xml"/>
 <rs:md capability="changelist" from="2026-11-20T00:00:00Z"/>
 <url>
  <loc>https://museum.example/a.html</loc>
  <rs:md change="updated" datetime="2026-11-20 11:04"/>
 </url>
</urlset>
"""


def shown() -> list[str]:
    """The commands in blocks and in sentences that name only what the test has made."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`(resourcesync [a-z]+ [^`\n]*)`", PAGE)
    found = [line for block in blocks for line in block.splitlines()] + spans
    return [line for line in found if "museum" not in line and "monday" not in line]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judging")
    for name in ("index.html", "a.html", "cat.jpg"):
        (folder / "public").mkdir(exist_ok=True)
        (folder / "public" / name).write_bytes(name.encode())
    return folder


def test_the_commands_of_the_page_find_nothing_wrong_with_what_we_publish(tree: Path) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    ours = script("resourcesync")

    def ran(line: str) -> Ran:
        _, *words = shlex.split(line.replace("http://127.0.0.1:8080", address))
        return resourcesync(*words, cwd=tree)

    assert ran(f"resourcesync publish ./public --url {address}").code == 0
    commands = shown()
    assert {line.split()[1] for line in commands} == {
        "explore",
        "validate",
        "why",
    }
    with running(ours, "serve", "./public", "--bind", f"127.0.0.1:{port}", port=port, cwd=tree):
        for line in commands:
            done = ran(line)
            assert (done.code, done.stderr) == (0, ""), line
            assert done.stdout, line


def test_the_page_shows_a_finding_as_the_judge_tells_it(tmp_path: Path) -> None:
    (tmp_path / "changelist.xml").write_text(BROKEN)
    shown_output = re.search(
        r"^```text\n(changelist\.xml:.*?)^```",
        PAGE,
        re.DOTALL | re.MULTILINE,
    )
    assert shown_output is not None

    said = resourcesync("validate", "changelist.xml", cwd=tmp_path)

    assert said.stdout == shown_output[1]
    assert said.code == 1
