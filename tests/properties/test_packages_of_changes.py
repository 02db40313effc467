"""The rules of dumps and their manifests, held by every package that we write (§11, §13)."""

import io
import itertools
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.documents.packages.manifest_agreement import check_manifest
from resourcesync.documents.packages.planning import ManifestEntry, plan_packages
from resourcesync.documents.packages.zip_writer import write_package
from resourcesync.documents.writer import write
from resourcesync.errors import PackageError
from resourcesync.model.entries import Change, Header, Package, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind
from resourcesync.validator.examination import Examination
from tests.support.documents.packages import CHANGES, MOMENT, RESOURCES, UP, change, resource

DELETED = ChangeKind.DELETED
BODY = b"body"
MD = "{http://www.openarchives.org/rs/terms/}md"
LN = "{http://www.openarchives.org/rs/terms/}ln"
URL = "{http://www.sitemaps.org/schemas/sitemap/0.9}url"

minutes = st.integers(0, 9).map(lambda number: MOMENT + timedelta(minutes=number))
drawn_changes = st.lists(
    st.tuples(st.sampled_from(ChangeKind), st.sampled_from("abc"), st.none() | minutes), max_size=12
)


def made(kind: ChangeKind, name: str, time: datetime | None, place: int) -> Change:
    told = change(kind, f"http://h/{name}", BODY, f"/{place}")
    return replace(told, time=time)


def packed(header: Header, entries: Sequence[ManifestEntry]) -> bytes:
    return b"".join(write_package(header, entries, lambda _: [BODY]))


def manifest_of(package: bytes) -> ET.Element:
    with zipfile.ZipFile(io.BytesIO(package)) as opened:
        return ET.fromstring(opened.read("manifest.xml"))


def broken(text: bytes) -> set[str]:
    return {finding.rule.id for finding in Examination([text], uri="http://h/x.xml")}


@pytest.mark.conformance("CM05")
@given(drawn_changes)
def test_changes_are_packed_oldest_first_or_not_at_all(
    drawn: list[tuple[ChangeKind, str, datetime | None]],
) -> None:
    entries = [made(*item, place) for place, item in enumerate(drawn)]
    times = [entry.time for entry in entries if entry.time is not None]

    if times != sorted(times):
        with pytest.raises(ValueError, match=r"listed after a later one \(§13\.2\)"):
            packed(CHANGES, entries)
        return

    root = manifest_of(packed(CHANGES, entries))
    told = [md.get("datetime") for md in root.iterfind(f"{URL}/{MD}")]
    assert len(told) == len(entries)
    moments = [datetime.fromisoformat(name) for name in told if name is not None]
    assert moments == times
    assert all(moment <= other for moment, other in itertools.pairwise(moments))


media_types = st.sampled_from(["text/html", "image/jpeg", "application/xml", "text/plain"])


@pytest.mark.conformance("RM03", "RM08")
@given(st.lists(media_types, min_size=1, max_size=6), minutes)
def test_a_manifest_tells_its_moment_the_way_up_and_each_media_type(
    kinds: list[str], at: datetime
) -> None:
    header = replace(RESOURCES, at=at)
    entries = [resource(f"http://h/{place}", BODY, "", name) for place, name in enumerate(kinds)]
    [planned] = plan_packages(header, entries)
    package = packed(header, planned)
    root = manifest_of(package)

    own, ways = root.find(MD), [element.attrib for element in root.iterfind(LN)]
    assert own is not None
    assert datetime.fromisoformat(own.attrib["at"]) == at
    assert ways == [{"rel": "up", "href": UP.href}]
    assert [md.get("type") for md in root.iterfind(f"{URL}/{MD}")] == kinds
    with zipfile.ZipFile(io.BytesIO(package)) as opened:
        assert broken(opened.read("manifest.xml")) == set()


@pytest.mark.conformance("RM03", "CM01")
@pytest.mark.parametrize(
    "header",
    [
        replace(RESOURCES, links=()),
        replace(RESOURCES, at=None),
        replace(CHANGES, links=()),
        replace(CHANGES, from_=None),
    ],
)
def test_a_manifest_without_its_moment_or_the_way_up_is_not_written(header: Header) -> None:
    with pytest.raises(ValueError, match="needs its"):
        packed(header, [])


@pytest.mark.conformance("RD06")
@given(st.lists(st.tuples(minutes, st.integers(0, 5)), min_size=1, max_size=5), st.integers(0, 4))
def test_a_dump_whose_times_hold_those_of_its_packages_is_right_and_no_other_is(
    drawn: list[tuple[datetime, int]], index: int
) -> None:
    spans = [(at, at + timedelta(minutes=length)) for at, length in drawn]
    dump = Header(
        capability=Capability.RESOURCE_DUMP,
        at=min(at for at, _ in spans),
        completed=max(completed for _, completed in spans),
        links=(UP,),
    )
    packages = [
        Package(uri=f"http://h/{n}.zip", at=at, completed=end, media_type="application/zip")
        for n, (at, end) in enumerate(spans)
    ]
    chosen = packages[index % len(packages)]
    told = replace(RESOURCES, at=chosen.at, completed=chosen.completed)

    check_manifest(told, dump=dump, package=chosen)
    assert "RD06" not in broken(b"".join(write(dump, packages)))

    assert dump.at is not None
    early = dump.at - timedelta(seconds=1)
    with pytest.raises(PackageError, match="older"):
        check_manifest(replace(told, at=early), dump=dump, package=replace(chosen, at=early))
    assert "RD06" in broken(b"".join(write(dump, [*packages, replace(chosen, at=early)])))


def test_an_entry_of_the_other_kind_has_no_order_to_keep() -> None:
    late = Resource(uri="http://h/1", length=len(BODY), path="/1", lastmod=MOMENT)
    early = replace(late, uri="http://h/2", path="/2", lastmod=MOMENT - timedelta(days=1))

    assert len(manifest_of(packed(RESOURCES, [late, early])).findall(URL)) == 2
