"""Manifests of manifests (0.5): read as one, and never as less than they list."""

import pytest
from msgspec.structs import replace

from resourcesync.documents.packages.safety import DEFAULT_LIMITS
from resourcesync.documents.reader import Limits
from resourcesync.errors import DocumentLimitError, PackageError
from resourcesync.model.entries import Change, RefusedEntry
from tests.support.documents.packages import (
    CHANGES_MD,
    RESOURCES_MD,
    index_of,
    listed,
    manifest,
    nested,
    opened,
    unpack,
)
from tests.support.documents.text import document

FILES = {f"{number}.txt": b"%d" % number for number in range(5)}
LISTED = [listed(f"/{name}", data) for name, data in FILES.items()]
GIVEN = [(f"http://h/{name}", data) for name, data in FILES.items()]
PARTS = {
    "/manifests/part1.xml": manifest(*LISTED[:2], md=RESOURCES_MD),
    "/manifests/part2.xml": manifest(*LISTED[2:], md=RESOURCES_MD),
}


def updated(name: str, minute: int) -> str:
    entry = listed(f"/{name}", FILES[name], more=' change="updated"')
    time = f"2026-01-01T00:{minute:02}:00Z"
    return entry.replace("<rs:md", f"<lastmod>{time}</lastmod><rs:md")


@pytest.mark.founding("D-Lib §5", "A package may have nested manifests", "`pull`")
def test_a_part_may_be_in_parts_itself() -> None:
    inner = {"/inner.xml": index_of(["/manifests/part2.xml"])}
    first = index_of(["/manifests/part1.xml", "/inner.xml"])

    found = unpack(nested(PARTS | inner, FILES, index=first))

    assert found.given == GIVEN


def test_parts_with_the_newest_changes_first_come_in_the_order_of_time() -> None:
    names = list(FILES)
    parts = {
        f"/part{number}.xml": manifest(updated(names[number], number), md=CHANGES_MD)
        for number in (2, 1, 0)
    } | {"/empty.xml": manifest(md=CHANGES_MD)}

    reader = opened(nested(parts, FILES, md=CHANGES_MD))

    changes = [entry for entry in reader.manifest().entries() if isinstance(entry, Change)]
    assert [change.resource.path for change in changes] == [f"/{name}" for name in names[:3]]
    assert all(change.time == change.resource.lastmod for change in changes)


def test_an_entry_that_cannot_be_used_stays_one_that_names_its_resource() -> None:
    bad = "<url><loc>http://h/bad</loc><loc>http://h/worse</loc></url>"
    parts = PARTS | {"/more.xml": manifest(bad, LISTED[0], bad, md=RESOURCES_MD)}
    refused: list[RefusedEntry] = []

    reader = opened(nested(parts, FILES))
    entries = list(reader.manifest(on_refused=refused.append).entries())

    assert [entry.uri for entry in refused] == ["http://h/bad", "http://h/bad"]
    assert len(entries) == len(FILES) + 1


USELESS = {
    "missing": index_of([*PARTS, "/gone.xml"]),
    "without a path": index_of(list(PARTS)).replace(b'path="/manifests/part2.xml"', b""),
    "without an address": index_of([*PARTS, "/x.xml"]).replace(b"<loc>/x.xml</loc>", b""),
    "listed twice": index_of([*PARTS, *PARTS]),
    "the manifest itself": index_of([*PARTS, "/manifest.xml"]),
    "no document": index_of([*PARTS, "/0.txt"]),
    "another document": index_of([*PARTS, "/other.xml"]),
    "cut short": index_of([*PARTS, "/cut.xml"]),
    "too deep": index_of(["/deep1.xml"]),
}
MORE = {
    "other.xml": document(md='<rs:md capability="resourcelist" at="2026"/>'),
    "cut.xml": PARTS["/manifests/part1.xml"][:-20],
    **{f"deep{depth}.xml": index_of([f"/deep{depth + 1}.xml"]) for depth in range(1, 9)},
}


@pytest.mark.parametrize("index", USELESS.values(), ids=USELESS.keys())
def test_a_part_that_cannot_be_used_spoils_the_package(index: bytes) -> None:
    with pytest.raises(PackageError) as caught:
        unpack(nested(PARTS, FILES | MORE, index=index))

    assert caught.value.code == "manifest-mismatch"


def test_the_whole_is_bounded_in_bytes_and_in_entries() -> None:
    parts = {f"/{number}": manifest(LISTED[number % 5], md=RESOURCES_MD) for number in range(20)}
    package = nested(parts, FILES)
    small = replace(DEFAULT_LIMITS, manifest=Limits(bytes=2_000))
    few = replace(DEFAULT_LIMITS, manifest=Limits(entries=3))

    with pytest.raises(PackageError) as caught:
        unpack(package, small)
    assert caught.value.code == "manifest-limit"
    with pytest.raises(DocumentLimitError):
        unpack(package, few)
