"""Manifests against their packages and dumps (Z17 to Z22 of the threat model), and parts (0.5)."""

import io
from collections.abc import Iterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from resourcesync.documents.packages.manifest_agreement import check_copy, check_manifest
from resourcesync.documents.packages.reader import open_package
from resourcesync.documents.packages.safety import DEFAULT_LIMITS
from resourcesync.documents.reader import Document, Limits, read
from resourcesync.errors import DocumentLimitError, PackageError, TruncatedPackageError
from resourcesync.model.entries import Change, Header, Link, Package, RefusedEntry
from resourcesync.model.vocabulary import Capability
from tests.support.documents.packages import (
    CHANGES,
    CHANGES_MD,
    MOMENT,
    RESOURCES,
    RESOURCES_MD,
    Forged,
    forge,
    index_of,
    listed,
    manifest,
    nested,
    opened,
    sound,
    tarball,
    unpack,
)
from tests.support.documents.text import document
from tests.support.documents.written import facts

ONE, TWO = b"one", b"two"


def packed(text: bytes, *members: tuple[str, bytes]) -> bytes:
    files = [Forged(name.encode(), data) for name, data in members]
    return forge(Forged(b"manifest.xml", text), *files)


@pytest.mark.conformance("RM06")
def test_what_is_missing_and_what_is_too_much_is_reported() -> None:
    text = manifest(listed("/a", ONE), listed("/gone", TWO), listed("/b", TWO))
    found = unpack(packed(text, ("a", ONE), ("b", TWO), ("extra", ONE)))

    assert found.given == [("http://h/a", ONE), ("http://h/b", TWO)]
    assert found.faults == [("http://h/gone", "member-missing")]
    assert found.unlisted == ["extra"]


def test_a_fault_can_be_seen_before_the_bytes_are_asked_for() -> None:
    text = manifest(listed("/gone", TWO), listed("/a", TWO), listed("/b", ONE))
    members = list(opened(packed(text, ("a", ONE + TWO), ("b", ONE))).members())

    found = [member.fault.code if member.fault else "" for member in members]
    assert found == ["member-missing", "length-mismatch", ""]
    with pytest.raises(PackageError, match="lacks"):
        members[0].chunks()


@pytest.mark.conformance("RM04")
def test_an_entry_without_a_path_is_left_to_its_uri() -> None:
    text = manifest(listed("", ONE, loc="http://h/a"), listed("/b", TWO))
    found = unpack(packed(text, ("a", ONE), ("b", TWO)))

    assert [uri for uri, _ in found.given] == ["http://h/b"]
    assert found.unlisted == ["a"]


@pytest.mark.conformance("RM02", "RM09")
@pytest.mark.parametrize(
    "text",
    [
        manifest(listed("/a", ONE), md='<rs:md capability="resourcelist" at="2013-01-03"/>'),
        manifest(listed("/a", ONE), md=""),
        manifest(listed("/a", ONE))
        .replace(b"urlset", b"sitemapindex")
        .replace(b"url>", b"sitemap>"),
    ],
)
def test_a_manifest_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(PackageError) as caught:
        unpack(packed(text, ("a", ONE)))

    assert caught.value.code == "manifest-mismatch"


def changed(path: str, kind: str, data: bytes | None, loc: str = "http://h/a") -> str:
    when = ' datetime="2013-01-03T09:00:00Z"'
    return listed(path, data, loc=loc, more=f' change="{kind}"{when}')


@pytest.mark.conformance("CM01", "CM02", "CM03")
def test_the_changes_of_one_uri_come_in_the_order_of_the_manifest() -> None:
    text = manifest(
        changed("/1", "created", ONE),
        changed("/2", "updated", TWO),
        changed("", "deleted", None),
        changed("/3", "created", b"three"),
        md=CHANGES_MD,
    )
    data = packed(text, ("3", b"three"), ("2", TWO), ("1", ONE))
    told = [
        "" if member.is_deletion else b"".join(member.chunks()).decode()
        for member in opened(data).members()
    ]

    assert told == ["one", "two", "", "three"]


@pytest.mark.conformance("CM03", "CM04")
def test_a_deletion_with_a_path_deletes_and_an_update_without_one_is_left_to_its_uri() -> None:
    text = manifest(
        changed("/1", "deleted", None), changed("", "updated", TWO, loc="http://h/b"), md=CHANGES_MD
    )
    data = packed(text, ("1", ONE))
    found = unpack(data)

    assert found.deleted == ["http://h/a"]
    assert found.given == []
    assert found.unlisted == []
    deletion = next(iter(opened(data).members()))
    assert deletion.fault is None
    with pytest.raises(RuntimeError):
        deletion.chunks()


@pytest.mark.conformance("CM07")
def test_a_patch_is_read_by_the_path_of_its_link() -> None:
    rel = "http://www.openarchives.org/rs/terms/patch"
    patch = b'[{"op": "remove", "path": "/x"}]'
    ln = f'<rs:ln rel="{rel}" href="http://h/p" path="/p.json"{facts(patch)}/></url>'
    entry = changed("/1", "updated", ONE).replace("</url>", ln)
    wrong = changed("/1", "updated", ONE).replace("</url>", ln.replace('length="', 'length="1'))
    reader = opened(packed(manifest(entry, wrong, md=CHANGES_MD), ("1", ONE), ("p.json", patch)))
    links = [link for member in reader.members() for link in member.entry.resource.links]  # type: ignore[union-attr]  # a Change Dump

    assert b"".join(reader.linked(links[0])) == patch
    assert reader.unlisted == []
    with pytest.raises(Exception, match="length of the bytes is not the listed one"):
        reader.linked(links[1])
    with pytest.raises(PackageError, match="no path"):
        reader.linked(Link(rel=rel, href="http://h/p"))


DUMP = Header(capability=Capability.RESOURCE_DUMP, at=MOMENT)
CHANGE_DUMP = Header(capability=Capability.CHANGE_DUMP, from_=MOMENT)
LATER = MOMENT + timedelta(hours=1)
ENTRY = Package(uri="http://h/1.zip")


@pytest.mark.parametrize(
    ("told", "dump", "entry"),
    [
        (CHANGES, DUMP, None),
        (RESOURCES, CHANGE_DUMP, None),
        (RESOURCES, Header(capability=Capability.RESOURCE_LIST, at=MOMENT), None),
        (RESOURCES, replace(DUMP, at=LATER), None),
        (RESOURCES, DUMP, replace(ENTRY, at=LATER)),
        (CHANGES, CHANGE_DUMP, replace(ENTRY, from_=LATER)),
    ],
)
def test_a_manifest_that_fits_its_dump_is_accepted_and_one_of_another_refused(
    told: Header, dump: Header, entry: Package | None
) -> None:
    check_manifest(replace(RESOURCES, at=LATER), dump=DUMP, package=replace(ENTRY, at=LATER))
    check_manifest(CHANGES, dump=CHANGE_DUMP, package=replace(ENTRY, from_=MOMENT))
    check_manifest(RESOURCES, dump=DUMP)
    with pytest.raises(PackageError) as caught:
        check_manifest(told, dump=dump, package=entry)

    assert caught.value.code == "manifest-mismatch"


def copy(text: bytes) -> Document:
    return read(io.BytesIO(text), uri="http://h/copy.xml")


@pytest.mark.conformance("RD04")
def test_a_copy_of_the_manifest_must_say_the_same() -> None:
    text = manifest(listed("/a", ONE))
    reader = opened(packed(text, ("a", ONE)))

    check_copy(reader.manifest(), copy(text))
    for other in (
        manifest(listed("/a", TWO)),
        manifest(listed("/a", ONE), listed("/b", TWO)),
        manifest(),
        manifest(listed("/a", ONE), md='<rs:md capability="resourcedump-manifest" at="2014"/>'),
    ):
        with pytest.raises(PackageError) as caught:
            check_copy(reader.manifest(), copy(other))
        assert caught.value.code == "manifest-mismatch"


THREE = [("a", ONE), ("b", TWO), ("c", b"three")]


@pytest.mark.parametrize("make", [lambda: sound(*THREE), lambda: tarball(
    ("manifest.xml", manifest(*(listed(f"/{n}", d) for n, d in THREE))), *THREE)])  # fmt: skip
def test_reading_goes_on_at_any_entry(make: object) -> None:
    data = make()  # type: ignore[operator]

    for start in range(5):
        assert unpack(data, start=start).given == [(f"http://h/{n}", d) for n, d in THREE[start:]]
        assert unpack(data, start=start).unlisted == []


def test_a_package_that_became_shorter_while_it_was_read_is_told() -> None:
    file = io.BytesIO(sound(("a", bytes(200_000))))
    [member] = open_package(file).members()
    file.truncate(100_000)

    with pytest.raises(TruncatedPackageError):
        list(member.chunks())


def test_refused_entries_of_the_manifest_are_told() -> None:
    refused: list[RefusedEntry] = []
    text = manifest("<url><loc></loc></url>", listed("/a", ONE))
    reader = opened(packed(text, ("a", ONE)))

    def members() -> Iterator[str]:
        return (member.entry.uri for member in reader.members(on_refused=refused.append))

    assert list(members()) == ["http://h/a"]
    assert len(refused) == 1
    assert list(members()) == ["http://h/a"]


@pytest.mark.parametrize(
    "data", [b"", b"<html>404</html>" * 99, b"PDF", bytes(1000), b"\x1f\x8b" * 9]
)
def test_what_is_no_package_is_refused(data: bytes) -> None:
    with pytest.raises(PackageError if data else TruncatedPackageError):
        opened(data)


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
