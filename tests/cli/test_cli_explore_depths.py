"""``explore`` below the lists: packages of dumps, copies of manifests, what archives list."""

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import TinySource

AT = 'at="2026-01-01T00:00:00Z"'
FROM = 'from="2026-01-01T00:00:00Z"'


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


def archive(source: TinySource, lists: list[str]) -> None:
    """Offer an archive of Change Lists."""
    pointers = [source.pointer("/archive.xml", "changelist-archive")]
    source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)
    entries = []
    for day, name in enumerate(lists, start=1):
        times = f'from="2026-01-{day:02}T00:00:00Z" until="2026-01-{day + 1:02}T00:00:00Z"'
        entries.append(f"<url><loc>{source.url}{name}</loc><rs:md {times}/></url>")
        change = f'<rs:md change="created" datetime="2026-01-{day:02}T01:00:00Z"/>'
        source.put_document(
            name,
            f'<rs:md capability="changelist" {times}/>',
            [f"<url><loc>{source.url}/a{day}</loc>{change}</url>"],
        )
    source.put_document("/archive.xml", '<rs:md capability="changelist-archive"/>', entries)


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


@pytest.mark.parametrize(
    ("depth", "shown"),
    [("3", {"/dump.xml"}), ("4", {"/dump.xml", "/one.zip", "/two.zip"})],
)
def test_the_depth_bounds_packages_and_manifests(
    dumping: TinySource, said: Said, depth: str, shown: set[str]
) -> None:
    assert run(["explore", dumping.url, "--depth", depth]) == 0

    text = said.readouterr().out
    assert {
        name for name in ("/dump.xml", "/one.zip", "/two.zip", "/one.xml") if name in text
    } == shown
    assert "/one.xml" not in {asked.target for asked in dumping.asked}


def test_a_package_and_its_manifest_are_json_lines(dumping: TinySource, said: Said) -> None:
    assert run(["explore", dumping.url, "--json"]) == 0

    found = [row for row in rows(said) if row["type"] == "package"]
    assert [row["uri"] for row in found] == [f"{dumping.url}/{name}.zip" for name in ("one", "two")]
    assert (found[0]["bytes"], found[0]["media_type"]) == (2_000, "application/zip")
    assert found[0]["at"] == "2026-01-01T00:00:00.000Z"
    assert [row["contents"] for row in found] == [f"{dumping.url}/one.xml", None]
    assert [row["depth"] for row in found] == [4, 4]

    assert run(["explore", dumping.url, "--json"]) == 0
    ended = rows(said)
    manifest = next(row for row in ended if row.get("label") == "contents")
    assert (manifest["capability"], manifest["depth"]) == ("resourcedump-manifest", 5)
    assert (ended[-1]["entries"], ended[-1]["bytes"]) == (5, 3_000)


def test_a_copy_that_is_missing_is_told_and_the_rest_is_shown(
    dumping: TinySource, said: Said
) -> None:
    del dumping.answers["/one.xml"]

    assert run(["explore", dumping.url]) == 3

    text = said.readouterr().out
    assert "/one.xml" in text
    assert "! missing: " in text
    assert "/two.zip" in text


def test_very_many_packages_are_counted_and_only_the_first_are_shown(
    source: TinySource, said: Said
) -> None:
    packages = [package(source, f"/{number}.zip", 10) for number in range(300)]
    source.put_document("/dump.xml", f'<rs:md capability="resourcedump" {AT}/>', packages)

    assert run(["explore", f"{source.url}/dump.xml"]) == 0

    text = said.readouterr().out
    assert "300 packages, 3.0 kB" in text
    assert "/19.zip" in text
    assert "/20.zip" not in text

    assert run(["explore", f"{source.url}/dump.xml", "-v"]) == 0
    assert "/298.zip" in said.readouterr().out


def test_an_archive_shows_the_lists_of_the_past(source: TinySource, said: Said) -> None:
    archive(source, ["/old1.xml", "/old2.xml"])

    assert run(["explore", source.url]) == 0

    lines = [" ".join(line.split()) for line in said.readouterr().out.splitlines()]
    assert lines[2:-1] == [
        "└─ /archive.xml change list archive 2 documents",
        "├─ /old1.xml change list 2026-01-01 00:00:00Z to 2026-01-02 00:00:00Z",
        "│ └─ 1 change created 1 newest 01:00:00Z",
        "├─ /old2.xml change list 2026-01-02 00:00:00Z to 2026-01-03 00:00:00Z",
        "│ └─ 1 change created 1 newest 01:00:00Z",
        "└─ all 2 parts: 2 changes, created 2, newest 2026-01-02 01:00:00Z",
    ]


def test_the_depth_bounds_what_is_read_of_an_archive(source: TinySource, said: Said) -> None:
    archive(source, ["/old1.xml", "/old2.xml"])

    assert run(["explore", source.url, "--depth", "3"]) == 0

    assert "change list archive  2 documents" in said.readouterr().out
    assert not {asked.target for asked in source.asked} & {"/old1.xml", "/old2.xml"}


def test_the_archive_that_a_list_leads_to_is_told_in_json(source: TinySource, said: Said) -> None:
    link = f'<rs:ln rel="archives" href="{source.url}/archive.xml"/>'
    source.put_document("/changes.xml", f'{link}<rs:md capability="changelist" {FROM}/>', [])

    assert run(["explore", f"{source.url}/changes.xml", "--json"]) == 0

    assert rows(said)[1]["archives"] == f"{source.url}/archive.xml"
