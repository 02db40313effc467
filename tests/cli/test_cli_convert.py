"""``convert``: any document in, any dialect out, and nothing lost in silence."""

import gzip
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.commands.convert import DIALECTS
from resourcesync.cli.main import run
from resourcesync.documents.converter import read_any
from resourcesync.documents.dialects import narrow_entry, narrow_header
from resourcesync.documents.writer import write
from resourcesync.model.capabilities import CapabilityEntry, Entry, Header, Part
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect
from tests.support.commands.command_line import rows
from tests.support.documents.text import document, url

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)
TEN = NINE + timedelta(hours=1)
HEADER = Header(
    capability=Capability.CHANGE_LIST,
    from_=NINE,
    until=TEN,
    links=(Link(rel="up", href="http://a/up"), Link(rel="index", href="http://a/index")),
)
INFERRED_DATETIME = (
    "warning[inferred]: datetime of 3 entries is inferred from lastmod, "
    "which was the time of the change before 1.1"
)
INFERRED_LASTMOD = (
    "warning[inferred]: lastmod of 3 entries is inferred from the listed time of the change "
    "or of the document"
)
CHANGES: list[Entry] = [
    Change(kind=ChangeKind.CREATED, time=NINE, resource=Resource(uri="http://a/1", length=5)),
    Change(
        kind=ChangeKind.UPDATED,
        time=TEN,
        resource=Resource(
            uri="http://a/1",
            media_type="text/plain",
            links=(Link(rel="timemap", href="http://a/t"), Link(rel="via", href="http://b/1")),
        ),
    ),
    Change(kind=ChangeKind.DELETED, time=TEN, resource=Resource(uri="http://a/2")),
]


def put(name: str, header: Header, entries: list[Entry], dialect: Dialect = Dialect.V1_1) -> str:
    Path(name).write_bytes(b"".join(write(header, entries, dialect)))
    return name


def told(name: str) -> tuple[Header, list[Entry]]:
    opened = read_any(io.BytesIO(Path(name).read_bytes()), uri=name)
    return opened.header, list(opened.entries())


def test_what_can_be_written_is_what_the_writer_writes() -> None:
    for dialect in Dialect:
        if dialect in {Dialect.P0, Dialect.P1, Dialect.P2}:
            assert dialect not in DIALECTS
        else:
            assert dialect in DIALECTS
            narrow_header(
                HEADER if dialect is not Dialect.SITEMAP else Header(capability=None), dialect
            )


@pytest.mark.parametrize("to", [name for name in DIALECTS if name != "sitemap"])
def test_a_change_list_survives_the_way_there_and_back(to: str) -> None:
    put("c.xml", HEADER, CHANGES)

    assert run(["convert", "c.xml", "--to", to, "--out", "there.xml", "-q"]) == 0
    assert run(["convert", "there.xml", "--to", "1.1", "--out", "back.xml", "-q"]) == 0

    header, entries = told("back.xml")
    dialect = Dialect(to)
    for before, after in zip(CHANGES, entries, strict=True):
        kept = narrow_entry(before, HEADER, dialect)
        assert after == kept
    assert header.capability is Capability.CHANGE_LIST
    # An old list does not say since when; its first change does.
    assert header.from_ == NINE
    assert {link.href for link in header.links} == {"http://a/up", "http://a/index"}


def test_what_was_left_out_is_named_on_standard_error(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    put("c.xml", HEADER, CHANGES)

    assert run(["convert", "c.xml", "--to", "0.6"]) == 0

    said = capsysbinary.readouterr()
    assert said.out == b"".join(write(HEADER, CHANGES, Dialect.V0_6))
    assert said.err.decode().splitlines() == [
        "warning[left-out]: 0.6 has no place in the Change List for: from, until",
        "warning[left-out]: 0.6 has no place for link timemap of 1 entry",
        INFERRED_LASTMOD,
    ]


def test_what_was_added_is_named_too(said: Any) -> None:
    still_open = Header(capability=Capability.CHANGE_LIST, from_=NINE)
    put("c.xml", still_open, CHANGES)

    assert run(["convert", "c.xml", "--to", "0.9", "--out", "there.xml"]) == 0

    header, _ = told("there.xml")
    assert header.until is not None
    assert header.until > TEN
    captured = said.readouterr()
    assert "has no place in the Change List for: open" in captured.err
    assert (
        "warning[added]: 0.9 requires a value that the Change List does not have; until: now"
        in captured.err
    )
    assert captured.out.splitlines() == ["Wrote     there.xml  Change List, 3 entries, 1.1 to 0.9"]


def test_a_gzipped_document_is_read_and_standard_input_too(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = b"".join(write(HEADER, CHANGES))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(data))))

    assert run(["convert", "-", "--to", "1.1"]) == 0

    assert capsysbinary.readouterr().out == data


def test_json_needs_a_file_and_tells_the_counts(said: Any) -> None:
    put("c.xml", HEADER, CHANGES)
    assert run(["convert", "c.xml", "--to", "1.0", "--json"]) == 2
    said.readouterr()

    assert run(["convert", "c.xml", "--to", "1.0", "--json", "--out", "d.xml"]) == 0

    last = rows(said)[-1]
    assert (last["entries"], last["refused"], last["from_dialect"]) == (3, 0, "1.1")


def test_lastmod_repeats_the_time_of_each_change() -> None:
    put("c.xml", HEADER, CHANGES)

    assert run(["convert", "c.xml", "--to", "1.1", "--lastmod", "--out", "d.xml", "-q"]) == 0
    assert run(["convert", "c.xml", "--to", "1.0", "--lastmod", "--out", "e.xml", "-q"]) == 2

    assert [e.resource.lastmod for e in told("d.xml")[1] if isinstance(e, Change)] == [
        NINE,
        TEN,
        TEN,
    ]
    assert not Path("e.xml").exists()


def test_a_document_that_the_dialect_cannot_say_changes_nothing(said: Any) -> None:
    archive = Header(capability=Capability.RESOURCE_LIST_ARCHIVE)
    put("a.xml", archive, [Part(uri="http://a/1", at=NINE)])
    Path("old.xml").write_bytes(b"as it was")

    assert run(["convert", "a.xml", "--to", "0.5", "--out", "old.xml"]) == 5

    assert Path("old.xml").read_bytes() == b"as it was"
    assert sorted(path.name for path in Path().iterdir()) == ["a.xml", "old.xml"]
    assert "0.5 has no Resource List Archive" in said.readouterr().err


@pytest.mark.parametrize(("data", "code"), [(b"<html/>", 5), (b"<urlset", 5), (b"", 5), (None, 2)])
def test_what_is_no_document_is_refused(data: bytes | None, code: int, said: Any) -> None:
    if data is not None:
        Path("x.xml").write_bytes(data)

    assert run(["convert", "x.xml", "--to", "1.1"]) == code

    captured = said.readouterr()
    assert captured.out == ""
    assert captured.err.endswith(f"exit {code}\n")


def test_a_folder_is_no_document_and_no_place_for_one(here: Path) -> None:
    put("c.xml", HEADER, CHANGES)

    assert run(["convert", str(here), "--to", "1.1"]) == 8
    assert run(["convert", "c.xml", "--to", "1.1", "--out", "missing/d.xml"]) == 8


def test_an_entry_that_cannot_be_used_is_named_and_the_rest_is_kept(said: Any) -> None:
    header = Header(capability=Capability.RESOURCE_LIST, at=NINE)
    text = b"".join(write(header, [Resource(uri="http://a/1"), Resource(uri="http://a/2")]))
    Path("c.xml").write_bytes(text.replace(b"http://a/1", b""))

    words = ["convert", "c.xml", "--to", "1.1", "--out", "d.xml", "--leave-out", "--json"]
    assert run(words) == 3

    found = rows(said)
    assert [row["code"] for row in found if row["type"] == "warning"] == ["entry-invalid"]
    assert [entry.uri for entry in told("d.xml")[1]] == ["http://a/2"]


def test_the_file_that_is_replaced_keeps_its_permissions() -> None:
    put("c.xml", HEADER, CHANGES)
    Path("c.xml").chmod(0o640)

    assert run(["convert", "c.xml", "--to", "1.0", "--out", "c.xml"]) == 0

    assert Path("c.xml").stat().st_mode & 0o777 == 0o640
    assert b"datetime" not in Path("c.xml").read_bytes()


def test_a_source_description_becomes_a_capability_list_index() -> None:
    description = Header(capability=Capability.DESCRIPTION)
    put("d.xml", description, [CapabilityEntry(uri="u", capability=Capability.CAPABILITY_LIST)])

    assert run(["convert", "d.xml", "--to", "0.5", "--out", "e.xml", "-q"]) == 0

    assert b"<sitemapindex" in Path("e.xml").read_bytes()


def test_a_list_that_tells_only_its_last_update_gets_its_times(said: Any) -> None:
    native = (
        b'<resync xmlns="http://www.openarchives.org/rs/" modified="2013-01-03T10:00:00Z"'
        b' rstype="http://www.openarchives.org/rs/changelist"/>'
    )
    Path("n.xml").write_bytes(native)

    assert run(["convert", "n.xml", "--to", "1.1", "--out", "o.xml", "--json"]) == 0

    assert told("o.xml")[0].from_ == TEN
    assert [json.dumps(row["message"]) for row in rows(said) if row["type"] == "warning"] == [
        '"1.1 has no place in the Change List for: modified"',
        (
            '"1.1 requires a value that the Change List does not have;'
            ' from: the time of its last update"'
        ),
    ]


# --- what is forgiven ---

SLOPPY = (
    document(
        url("http://a/1", "<lastmod>2013-01-01T00:00:00</lastmod>"),
        url("http://a/2", "<lastmod>2013-01-01T00:00:00</lastmod>"),
        url("res3"),
    ),
    ["G17", "G13"],
)


def test_what_is_forgiven_is_named_once_with_its_rule(said: Any) -> None:
    data, rules = SLOPPY
    Path("c.xml").write_bytes(data)

    assert run(["convert", "c.xml", "--to", "1.0", "--out", "d.xml"]) == 0

    told = [line for line in said.readouterr().err.splitlines() if "[tolerated]" in line]
    assert [re.findall(r"\((G\d+)\)$", line) for line in told] == [[rule] for rule in rules]
    assert all(re.match(r"warning\[tolerated\]: line \d+: ", line) for line in told)


def test_what_is_forgiven_is_refused_when_asked_and_the_rule_is_named(said: Any) -> None:
    data, rules = SLOPPY
    Path("c.xml").write_bytes(data)
    Path("d.xml").write_bytes(b"as it was")

    assert run(["convert", "c.xml", "--to", "1.0", "--strict", "--out", "d.xml"]) == 5

    captured = said.readouterr()
    assert captured.err.startswith("error[time-zone]: ")
    assert re.search(rf"rule\W+{rules[0]}\b", captured.err)
    assert "c.xml:" in captured.err
    assert Path("d.xml").read_bytes() == b"as it was"


def test_what_is_as_it_should_be_passes_when_asked(said: Any) -> None:
    put("c.xml", HEADER, CHANGES)

    assert run(["convert", "c.xml", "--to", "1.1", "--strict", "--out", "d.xml"]) == 0

    assert said.readouterr().err == ""
    assert Path("d.xml").read_bytes() == Path("c.xml").read_bytes()


def test_an_old_document_is_not_blamed_for_the_ways_of_its_version(said: Any) -> None:
    for dialect in (Dialect.V0_5, Dialect.V0_6, Dialect.V0_9):
        put("c.xml", HEADER, CHANGES, dialect)

        assert run(["convert", "c.xml", "--to", "1.1", "--out", "d.xml"]) == 0
        assert "[tolerated]" not in said.readouterr().err


@pytest.mark.parametrize("strict", [False, True])
def test_entries_without_an_address_end_a_feed_when_reading_is_strict(
    strict: bool, said: Any
) -> None:
    feed = b"".join(write(HEADER, CHANGES, Dialect.ATOM_LINKS)).replace(b"http://a/2", b"")
    Path("f.xml").write_bytes(feed)
    mode = "--strict" if strict else "--leave-out"
    words = ["convert", "f.xml", "--to", "1.1", "--out", "d.xml", mode]

    assert run(words) == (5 if strict else 3)

    assert ("error" if strict else "warning") + "[entry-invalid]: " in said.readouterr().err
    assert Path("d.xml").exists() is not strict


def test_very_many_entries_that_cannot_be_used_are_counted(said: Any) -> None:
    Path("c.xml").write_bytes(document(*[url("")] * 25, url("http://a/1")))

    assert run(["convert", "c.xml", "--to", "1.1", "--out", "d.xml", "--leave-out"]) == 3

    told = [line for line in said.readouterr().err.splitlines() if line.startswith("warning[")]
    assert len(told) == 11
    assert told[-1] == "warning[entry-invalid]: 15 more entries are left out"


def test_a_list_is_not_made_shorter_unless_that_is_asked_for(said: Any) -> None:
    Path("c.xml").write_bytes(document(*[url("")] * 25, url("http://a/1")))
    Path("d.xml").write_bytes(b"as it was")

    assert run(["convert", "c.xml", "--to", "1.1", "--out", "d.xml"]) == 5

    lines = said.readouterr().err.splitlines()
    assert lines[0] == (
        "error[entry-invalid]: 25 of the 26 entries cannot be used; nothing was written"
    )
    assert sum("The entry has no loc" in line or "loc" in line for line in lines) >= 10
    assert any("and 15 more" in line for line in lines)
    assert lines[-2] == "  fix      the others can be written without them: --leave-out"
    assert Path("d.xml").read_bytes() == b"as it was"


@pytest.mark.parametrize("mode", [[], ["--leave-out"]])
def test_where_no_entry_is_left_nothing_is_written(mode: list[str], said: Any) -> None:
    Path("c.xml").write_bytes(document(url(""), url("")))

    assert run(["convert", "c.xml", "--to", "1.1", "--out", "d.xml", *mode]) == 5
    assert run(["convert", "c.xml", "--to", "1.1", *mode]) == 5

    captured = said.readouterr()
    assert captured.out == ""
    assert "all 2 entries cannot be used; nothing was written" in captured.err
    assert "--leave-out" not in captured.err
    assert not Path("d.xml").exists()


def test_an_empty_list_is_written_as_one() -> None:
    Path("c.xml").write_bytes(document())

    assert run(["convert", "c.xml", "--to", "1.0", "--out", "d.xml"]) == 0
    assert told("d.xml")[1] == []


@pytest.mark.parametrize("dialect", ["0.5", "0.6", "0.9", "0.9.1", "1.0"])
def test_what_is_inferred_on_the_way_there_and_back_is_told(dialect: str, said: Any) -> None:
    put("c.xml", HEADER, CHANGES)

    assert run(["convert", "c.xml", "--to", dialect, "--out", "d.xml"]) == 0
    there = said.readouterr().err.splitlines()
    assert INFERRED_LASTMOD in there
    assert INFERRED_DATETIME not in there

    assert run(["convert", "d.xml", "--to", "1.1", "--out", "e.xml"]) == 0
    back = said.readouterr().err.splitlines()
    assert INFERRED_DATETIME in back
    assert INFERRED_LASTMOD not in back


def test_what_a_document_says_itself_is_not_called_inferred(said: Any) -> None:
    both = Change(
        kind=ChangeKind.CREATED, time=NINE, resource=Resource(uri="http://a/1", lastmod=NINE)
    )
    put("c.xml", HEADER, [both])

    for dialect in ("1.1", "1.0"):
        assert run(["convert", "c.xml", "--to", dialect, "--out", "d.xml"]) == 0

    assert "inferred" not in said.readouterr().err


@pytest.mark.parametrize("form", ["atom-links", "atom-entries", "native"])
def test_a_draft_with_the_newest_change_first_becomes_a_valid_list(form: str, said: Any) -> None:
    header = Header(
        capability=Capability.CHANGE_LIST, modified=TEN, links=(Link(rel="up", href="http://a/up"),)
    )
    newest_first = [
        Change(kind=ChangeKind.UPDATED, time=time, resource=Resource(uri=uri, lastmod=time))
        for uri, time in (("http://a/2", TEN), ("http://a/1", NINE))
    ]
    Path("draft.xml").write_bytes(b"".join(write(header, newest_first, Dialect(form))))

    assert run(["convert", "draft.xml", "--to", "1.1", "--out", "there.xml"]) == 0

    found, entries = told("there.xml")
    assert [entry.resource.uri for entry in entries if isinstance(entry, Change)] == [
        "http://a/1",
        "http://a/2",
    ]
    assert found.from_ == NINE
    assert run(["validate", "there.xml"]) == 0


@pytest.mark.parametrize("to", ["1.1", "1.0", "0.9.1", "0.9", "0.6", "0.5"])
def test_a_capability_list_loses_no_capability(to: str, said: Any) -> None:
    header = Header(
        capability=Capability.CAPABILITY_LIST, links=(Link(rel="up", href="http://a/up"),)
    )
    entry = CapabilityEntry(uri="http://a/list", capability=Capability.CHANGE_LIST)
    put("c.xml", header, [entry])

    assert run(["convert", "c.xml", "--to", to, "--out", "there.xml"]) == 0

    assert "capability" not in said.readouterr().err
    assert [
        item.capability for item in told("there.xml")[1] if isinstance(item, CapabilityEntry)
    ] == [Capability.CHANGE_LIST]
