"""Whatever is packed comes out again; whatever is broken is noticed."""

import io
import random
import zipfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents.packages.planning import PackageSize, content_of, plan_packages
from resourcesync.documents.packages.zip_writer import write_package
from resourcesync.errors import DocumentError, PackageError, VerificationError
from resourcesync.model.entries import Change, Link, Resource
from resourcesync.model.vocabulary import ChangeKind
from tests.support.documents.packages import (
    CHANGES,
    CHANGES_MD,
    RESOURCES,
    change,
    listed,
    manifest,
    opened,
    resource,
    sound,
    tarball,
    unpack,
)

contents = st.tuples(st.binary(max_size=9), st.sampled_from([0, 1, 2, 99, 10_000, 40_000]))
"""A text and how often it is repeated: long contents are in use, but not in messages."""
uris = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), max_size=20).map(
    lambda text: "http://h/" + text
)
kinds = st.sampled_from(["text/plain", "image/png", ""])


@pytest.mark.conformance("RM05", "RM06", "RM07")
@given(
    st.lists(st.tuples(uris, contents, kinds), max_size=4),
    st.integers(1, 4),
    st.integers(999, 99_999),
)
def test_resources_come_out_of_packages_as_they_went_in(
    drawn: list[tuple[str, tuple[bytes, int], str]], most: int, step: int
) -> None:
    given_resources = [(uri, text * times, kind) for uri, (text, times), kind in drawn]
    entries = [resource(uri, data, "", kind) for uri, data, kind in given_resources]
    size = PackageSize(max_entries=most, max_bytes=100_000)
    data = iter(chunk for _, chunk, _ in given_resources)
    again = iter(chunk for _, chunk, _ in given_resources)
    found: list[tuple[str, bytes]] = []

    def pieces(_: Resource | Link) -> Iterator[bytes]:
        whole = next(data)
        yield from (whole[at : at + step] for at in range(0, len(whole), step))

    for package in plan_packages(RESOURCES, entries, size=size):
        zipped = b"".join(write_package(RESOURCES, package, pieces))
        assert zipped == b"".join(write_package(RESOURCES, package, lambda _: [next(again)]))
        with zipfile.ZipFile(io.BytesIO(zipped)) as peer:
            assert peer.testzip() is None
        told = unpack(zipped)
        assert (told.faults, told.unlisted) == ([], [])
        found += told.given

    assert found == [(uri, data) for uri, data, _ in given_resources]


@pytest.mark.founding(
    "0.9 §7.1.1", "A package has a bitstream for each change, in order", "`publish --dumps changes`"
)
@pytest.mark.conformance("CM01", "CM02", "CM03", "CM04", "CM06")
@given(
    st.lists(st.tuples(st.sampled_from(ChangeKind), st.sampled_from("ab"), contents), max_size=6),
    st.integers(1, 5),
)
def test_changes_come_out_in_their_order_each_in_one_package(
    drawn: list[tuple[ChangeKind, str, tuple[bytes, int]]], most: int
) -> None:
    given_changes = [(kind, name, text * times) for kind, name, (text, times) in drawn]
    entries = [change(kind, f"http://h/{name}", data, "") for kind, name, data in given_changes]
    packages = list(plan_packages(CHANGES, entries, size=PackageSize(max_entries=most)))
    data = iter(data for kind, _, data in given_changes if kind is not ChangeKind.DELETED)
    found: list[tuple[str, bytes]] = []
    for package in packages:
        paths = [resource.path for entry in package if (resource := content_of(entry)) is not None]
        assert len(set(paths)) == len(paths)
        assert all(path.isascii() and path.startswith("/resources/") for path in paths)
        told = unpack(b"".join(write_package(CHANGES, package, lambda _: [next(data)])))
        found += told.given
        gone = [item.resource.uri for item in package if item.kind is ChangeKind.DELETED]  # type: ignore[union-attr]  # a Change Dump
        assert told.deleted == gone

    kept = [(f"http://h/{n}", d) for k, n, d in given_changes if k is not ChangeKind.DELETED]
    assert found == kept
    assert [item.kind for p in packages for item in p if isinstance(item, Change)] == [
        kind for kind, _, _ in given_changes
    ]


ONE, TWO = b"one " * 30, b"two"
MEMBERS = [("a", ONE), ("d/b", TWO)]
CHANGED = manifest(
    listed("/1", ONE, more=' change="created"'),
    listed("/2", TWO, more=' change="updated"'),
    md=CHANGES_MD,
)
VICTIMS = {
    "zip": sound(*MEMBERS),
    "written": b"".join(
        write_package(
            RESOURCES,
            [resource("http://h/a", ONE, "/a"), resource("http://h/d/b", TWO, "/d/b")],
            lambda item: [ONE if item.path == "/a" else TWO],
        )
    ),
    "tar": tarball(
        ("manifest.xml", manifest(*(listed("/" + n, d) for n, d in MEMBERS))), *MEMBERS, mode="w:"
    ),
    "tar.gz": tarball(("manifest.xml", CHANGED), ("1", ONE), ("2", TWO)),
    "tar.xz": tarball(("manifest.xml", CHANGED), ("1", ONE), ("2", TWO), mode="w:xz"),
}
PROVEN = {ONE, TWO}


@pytest.mark.parametrize("victim", VICTIMS)
def test_random_damage_gives_typed_errors_never_a_wrong_byte_and_the_same_by_verification(
    victim: str,
) -> None:
    random_bytes = random.Random(20261123)
    faults = 0
    for _ in range(2_000):
        data = bytearray(VICTIMS[victim])
        for _ in range(random_bytes.randint(0, 4)):
            data[random_bytes.randrange(len(data))] = random_bytes.randrange(256)
        try:
            found = unpack(bytes(data))
        except (PackageError, DocumentError, VerificationError):
            is_sound, unlisted = False, []
        else:
            is_sound, unlisted = not found.faults, found.unlisted
            # Where damage took the hash away, a ZIP still has its CRC, and a plain tar nothing.
            free = found.unproven if victim == "tar" else set[str]()
            assert {data for uri, data in found.given if uri not in free} <= PROVEN
        try:
            reader = opened(bytes(data))
            reader.verify()
        except (PackageError, DocumentError, VerificationError):
            faults += 1
            assert not is_sound
        else:
            assert is_sound
            assert reader.unlisted == unlisted

    assert faults > 100
