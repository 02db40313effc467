"""``diff``: two accounts of the same resources, and what it says of them."""

import shutil
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said, rows, spoil
from tests.support.servers.tiny_source import TinySource

HEAD = '<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>'


def other(source: TinySource, entries: list[str]) -> str:
    """Offer a second list at the same Source; return its address."""
    source.put_document("/other.xml", HEAD, entries)
    return f"{source.url}/other.xml"


def entries_of(source: TinySource) -> list[str]:
    return [source.entry(target, body) for target, body in FILES.items()]


def change(source: TinySource, target: str, kind: str, at: str, extra: str = "") -> str:
    metadata = f'<rs:md change="{kind}" datetime="{at}" {extra}/>'
    return f"<url><loc>{source.url}{target}</loc>{metadata}</url>"


def offer_changes(source: TinySource, changes: list[str], start: str = LATER) -> None:
    pointers = [source.pointer(f"/{name}.xml", name) for name in ("resourcelist", "changelist")]
    source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)
    head = f'<rs:md capability="changelist" from="{start}"/>'
    source.put_document("/changelist.xml", head, changes)


def test_equal_accounts_are_the_same_in_any_order(source: TinySource, said: Said) -> None:
    address = other(source, entries_of(source)[::-1])

    assert run(["diff", source.url, address]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[0] == f"A         {source.url}  at 2026-01-01 00:00:00Z  12 resources"
    assert lines[1] == f"B         {address}  at 2026-01-01 00:00:00Z  12 resources"
    assert lines[2].startswith("Same      12 the same  ")
    assert len(lines) == 3


def test_each_difference_has_its_symbol_and_reason(source: TinySource, said: Said) -> None:
    entries = entries_of(source)[1:]
    entries[0] = source.entry("/objects/0001.txt", b"objecT 1\n")
    entries[1] = source.entry("/objects/0002.txt", b"longer than it was\n")
    entries.append(source.entry("/objects/new.txt", b"new"))

    assert run(["diff", source.url, other(source, entries)]) == 1

    lines = [splitline.replace(source.url, "") for splitline in said.readouterr().out.splitlines()]
    assert lines[2:6] == [
        "- /objects/0000.txt   only in A",
        "* /objects/0001.txt   sha-256 differs",
        "* /objects/0002.txt   9 B in A, 19 B in B",
        "+ /objects/new.txt   only in B",
    ]
    assert lines[6].startswith("Different 1 only in A, 1 only in B, 2 different, 9 the same  ")
    assert lines[7] == "exit 1"


def test_without_a_hash_length_and_lastmod_are_compared_and_said_to_be(
    source: TinySource, said: Said
) -> None:
    def plain(name: str, lastmod: str, length: int) -> str:
        return (
            f"<url><loc>{source.url}/{name}</loc><lastmod>{lastmod}</lastmod>"
            f'<rs:md length="{length}"/></url>'
        )

    day = "2026-01-01T00:00:00Z"
    source.put_document("/one.xml", HEAD, [plain("a", day, 1), plain("b", day, 1)])
    source.put_document("/two.xml", HEAD, [plain("a", day, 1), plain("b", LATER, 1)])

    assert run(["diff", f"{source.url}/one.xml", f"{source.url}/two.xml"]) == 1

    lines = said.readouterr().out.splitlines()
    times = "lastmod 2026-01-01T00:00:00Z in A, 2026-01-02T00:00:00Z in B"
    assert lines[2] == f"* {source.url}/b   {times}"
    assert lines[3] == "? 1 resource without a hash in common; compared by length and lastmod"


def test_of_a_source_the_changes_since_its_list_count(source: TinySource, said: Said) -> None:
    digest = "sha-256:" + "0" * 64
    offer_changes(
        source,
        [
            change(source, "/objects/0005.txt", "deleted", "2025-12-31T00:00:00Z"),  # before
            change(source, "/objects/0001.txt", "deleted", LATER),
            change(source, "/objects/0001.txt", "created", LATER, f'hash="{digest}" length="9"'),
            change(source, "/objects/0002.txt", "deleted", LATER),
        ],
        start="2025-12-31T00:00:00Z",
    )

    assert run(["diff", other(source, entries_of(source)), source.url]) == 1

    lines = [splitline.replace(source.url, "") for splitline in said.readouterr().out.splitlines()]
    assert lines[1].endswith("12 resources  3 changes since")
    assert lines[2:4] == [
        "* /objects/0001.txt   sha-256 differs",
        "- /objects/0002.txt   only in A",
    ]
    assert "1 only in A, 1 different, 10 the same" in lines[4]


def test_change_lists_that_begin_too_late_are_told(source: TinySource, said: Said) -> None:
    offer_changes(source, [])

    assert run(["diff", source.url, source.url]) == 0

    assert "begin after its Resource List" in said.readouterr().out


def test_a_mirror_is_compared_with_its_source_and_with_another_mirror(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "museum"])
    shutil.copytree("museum", "second")

    assert run(["diff", source.url, "museum"]) == 0
    assert run(["diff", "museum", "second"]) == 0

    source.offer({**FILES, "/objects/new.txt": b"new"}, at=LATER)
    run(["pull", source.url, "second"])
    said.readouterr()

    assert run(["diff", "museum", "second"]) == 1
    lines = said.readouterr().out.splitlines()
    assert lines[0] == "A         museum  12 resources"
    assert lines[2] == f"+ {source.url}/objects/new.txt   only in B"


def test_nothing_is_written_and_no_resource_is_fetched(source: TinySource, here: Path) -> None:
    assert run(["diff", source.url, source.url]) == 0

    assert list(here.iterdir()) == []
    assert not {asked.target for asked in source.asked} & set(FILES)


def test_published_trees_are_compared_where_they_lie(tree: Path, said: Said) -> None:
    run(["publish", str(tree), "--url", "https://museum.example", "-q"])
    shutil.copytree(tree, "copy")
    lists = [f"{item}/resourcesync/resourcelist.xml" for item in (tree, "copy")]

    assert run(["diff", str(tree), "copy"]) == 0
    assert run(["diff", *lists]) == 0

    text = Path(lists[1]).read_text()
    Path(lists[1]).write_text(text.replace('length="9"', 'length="8"', 1))
    assert run(["diff", *lists]) == 1


def test_every_finding_is_a_json_line(source: TinySource, said: Said) -> None:
    address = other(source, entries_of(source)[2:])

    assert run(["diff", source.url, address, "--json"]) == 1

    found = rows(said)
    assert [fields["type"] for fields in found] == [
        "run.start",
        "account",
        "account",
        "finding",
        "finding",
        "run.end",
    ]
    assert found[1]["at"] == "2026-01-01T00:00:00.000Z"
    assert (found[3]["kind"], found[3]["uri"]) == ("-", f"{source.url}/objects/0000.txt")
    assert (found[-1]["only_a"], found[-1]["same"]) == (2, 10)


@pytest.mark.parametrize(
    ("target", "code", "word"),
    [
        ("/changelist.xml", 5, "unexpected-document"),
        ("/nothing.xml", 5, "source-not-found"),
        ("no-such-folder", 2, "config"),
    ],
)
def test_what_is_no_account_is_refused(
    target: str, code: int, word: str, source: TinySource, said: Said
) -> None:
    offer_changes(source, [])
    address = source.url + target if target.startswith("/") else target

    assert run(["diff", source.url, address]) == code

    assert said.readouterr().err.startswith(f"error[{word}]: ")


def test_a_secret_of_one_source_is_not_told_to_the_other(said: Said) -> None:
    header = ["--header", "Authorization: Bearer x"]

    assert run(["diff", "http://a.example/", "http://b.example/", *header]) == 2

    assert "--header would send a secret of one Source to the other" in said.readouterr().err


def test_a_spoiled_copy_is_a_matter_for_audit_not_for_diff(source: TinySource) -> None:
    run(["pull", source.url, "museum"])
    spoil("museum")

    assert run(["diff", source.url, "museum"]) == 0  # the memory is compared, not the bytes
    assert run(["audit", "museum"]) == 1


def test_the_symbols_of_a_mirror_are_those_of_its_audit(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "museum", "-q"]) == 0
    entries = entries_of(source)[1:]
    entries[0] = source.entry("/objects/0001.txt", b"objecT 1\n")
    entries.append(source.entry("/objects/new.txt", b"new"))
    source.offer_entries(entries, at=LATER)
    said.readouterr()

    symbols = []
    for words in (["diff", "museum", source.url], ["audit", "museum", "--method", "lists"]):
        assert run([*words, "--json"]) == 1
        found = [row for row in rows(said) if row["type"] == "finding"]
        symbols.append({row["uri"].rpartition("/")[2]: row["kind"] for row in found})

    assert symbols[0] == {"0000.txt": "-", "0001.txt": "*", "new.txt": "+"}
    assert symbols[0] == symbols[1]
