"""``explore`` below the lists: packages of dumps, copies of manifests, what archives list."""

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.servers.tiny_source import TinySource

AT = 'at="2026-01-01T00:00:00Z"'


def package(source: TinySource, name: str, length: int, contents: str = "") -> str:
    link = f'<rs:ln rel="contents" href="{source.url}{contents}"/>' if contents else ""
    told = f'<rs:md type="application/zip" length="{length}" {AT}/>'
    return f"<url><loc>{source.url}{name}</loc>{told}{link}</url>"


@pytest.fixture
def dumping(source: TinySource) -> TinySource:
    """Offer a Resource Dump of two packages, one of them with a copy of its manifest."""
    pointers = [source.pointer("/dump.xml", "resourcedump")]
    source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)
    packages = [
        package(source, "/one.zip", 2_000, "/one.xml"),
        package(source, "/two.zip", 1_000),
    ]
    source.put_document("/dump.xml", f'<rs:md capability="resourcedump" {AT}/>', packages)
    entries = [
        f"<url><loc>{source.url}/{name}</loc>"
        f'<rs:md path="/{name}" length="5" type="text/plain"/></url>'
        for name in "abc"
    ]
    head = f'<rs:md capability="resourcedump-manifest" {AT}/>'
    source.put_document("/one.xml", head, entries)
    return source


def test_a_dump_shows_its_packages_and_the_copies_of_their_manifests(
    dumping: TinySource, said: Said
) -> None:
    assert run(["explore", dumping.url]) == 0

    lines = [" ".join(line.split()) for line in said.readouterr().out.splitlines()]
    assert lines[2:-1] == [
        "└─ /dump.xml resource dump at 2026-01-01 00:00:00Z 2 packages, 3.0 kB",
        "├─ /one.zip package 2.0 kB application/zip at 2026-01-01 00:00:00Z",
        "│ └─ /one.xml resource dump manifest at 2026-01-01 00:00:00Z",
        "│ └─ 3 resources 15 B text/plain 3",
        "├─ /two.zip package 1.0 kB application/zip at 2026-01-01 00:00:00Z",
        "└─ 1 of 2 parts: 3 resources, 15 B, text/plain 3",
    ]
    assert lines[-1].startswith("Explored 4 documents, 5 entries ")


def test_no_package_is_fetched(dumping: TinySource) -> None:
    assert run(["explore", dumping.url]) == 0

    asked = {asked.target for asked in dumping.asked}
    assert "/one.xml" in asked
    assert not {name for name in asked if name.endswith(".zip")}
