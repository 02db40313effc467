"""Documents, values and texts are the same whether resync 2.0.1 or our names of it handle them."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.documents.reader import read
from resourcesync.model.capabilities import Header
from tests.support.documents.examples import Example, examples
from tests.support.sources.side_by_side import OURS, REAL, Library, needs_resync, values

pytestmark = needs_resync

HOME = "http://museum.example/"
DAY = "2024-03-01T10:00:00Z"
MD5 = "d41d8cd98f00b204e9800998ecf8427e"
SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
LIBRARIES = [REAL, OURS]
CLASSES = {
    "capabilitylist": ("capability_list", "CapabilityList"),
    "changedump": ("change_dump", "ChangeDump"),
    "changedump-manifest": ("change_dump_manifest", "ChangeDumpManifest"),
    "changelist": ("change_list", "ChangeList"),
    "description": ("source_description", "SourceDescription"),
    "resourcedump": ("resource_dump", "ResourceDump"),
    "resourcedump-manifest": ("resource_dump_manifest", "ResourceDumpManifest"),
    "resourcelist": ("resource_list", "ResourceList"),
    "changelist-archive": ("archives", "ChangeListArchive"),
    "changedump-archive": ("archives", "ChangeDumpArchive"),
    "resourcedump-archive": ("archives", "ResourceDumpArchive"),
    "resourcelist-archive": ("archives", "ResourceListArchive"),
}
MALFORMED = {"link-patch", "resourcesync_ex_27"}
"""Examples with hashes that are none (base64): resync keeps them, and ours leaves them out."""
READ = [each for each in examples("1.0", "1.1", "archives") if each.path.stem not in MALFORMED]


def header_of(example: Example) -> Header:
    return read(example.path.read_bytes(), uri=HOME).header


LISTS = [
    example
    for example in READ
    if not (header := header_of(example)).is_index and header.capability in CLASSES
]
"""The documents that are one list; for an index a class reads the parts, too."""


def parsed(library: Library, text: bytes) -> Any:
    """Read a document of any kind, as WEKO3 does."""
    return library.sitemap.Sitemap().parse_xml(io.BytesIO(text))


def list_of(library: Library, capability: str, **options: Any) -> Any:
    module, name = CLASSES[capability]
    return getattr(getattr(library, module), name)(**options)


@pytest.mark.parametrize("example", READ, ids=str)
def test_the_same_document_has_the_same_values(example: Example) -> None:
    text = example.path.read_bytes()

    real, ours = (values(parsed(library, text)) for library in LIBRARIES)

    assert ours == real


@pytest.mark.parametrize("example", LISTS, ids=str)
def test_the_class_of_a_capability_reads_its_documents(example: Example) -> None:
    text = example.path.read_bytes()
    capability = header_of(example).capability
    assert capability is not None
    real, ours = (list_of(library, capability.value) for library in LIBRARIES)

    for found in (real, ours):
        found.parse(fh=io.BytesIO(text))

    assert values(ours) == values(real)
    assert [*map(str, ours)] == [*map(str, real)]
    assert ours.uris() == real.uris()


def test_the_times_of_changes_are_the_same_in_both_versions() -> None:
    changes = [one for one in LISTS if header_of(one).capability == "changelist"]
    assert len(changes) > 5
    for example in changes:
        found = [[each.ts_datetime for each in parsed(library, example.path.read_bytes())]
                 for library in LIBRARIES]  # fmt: skip
        # A list in which some changes have a time of their own dates the others by lastmod.
        assert all(
            ours == real or (real is None and any(found[0]))
            for real, ours in zip(*found, strict=True)
        ), example


# --- documents that programs write, in the calls of WEKO3 (1 to 7) and openBIS (8, 9) -------------


def resource_list(library: Library) -> Any:
    made = library.resource_list.ResourceList()
    made.up = f"{HOME}capability.xml"
    for number in (2, 1):
        made.add(library.resource.Resource(f"{HOME}resync/33/records/{number}", lastmod=DAY))
    return made


def resource_dump(library: Library) -> Any:
    made = library.resource_dump.ResourceDump()
    made.up = f"{HOME}capability.xml"
    resource = library.resource.Resource(f"{HOME}1/file_content.zip", lastmod=DAY, ln=[])
    resource.ln.append(
        {"rel": "contents", "href": f"{HOME}1/manifest.xml", "type": "application/xml"}
    )
    made.add(resource)
    return made


def resource_dump_manifest(library: Library) -> Any:
    made = library.resource_dump_manifest.ResourceDumpManifest()
    made.up = f"{HOME}resourcedump.xml"
    made.add(
        library.resource.Resource(
            f"{HOME}record/1/files/a.pdf", lastmod=DAY, sha256=SHA256, length="12",
            path="/recid_1/a.pdf",
        )
    )  # fmt: skip
    return made


def change_list(library: Library) -> Any:
    made = library.change_list.ChangeList()
    made.index = f"{HOME}resync/33/changelist.xml"
    for number, change in enumerate(("created", "updated", "deleted")):
        made.add(
            library.resource.Resource(
                f"{HOME}records/{number}", lastmod=DAY, change=change, datetime=DAY
            )
        )
    return made


def change_dump(library: Library) -> Any:
    made = library.change_dump.ChangeDump()
    resource = library.resource.Resource(
        f"{HOME}1.1/change_dump_content.zip", lastmod=DAY, mime_type="application/zip", ln=[]
    )
    made.add(resource)
    return made


def change_dump_manifest(library: Library) -> Any:
    made = library.change_dump_manifest.ChangeDumpManifest()
    made.add(
        library.resource.Resource(
            f"{HOME}record/1/files/a.pdf", lastmod=DAY, sha256=SHA256, length="12",
            path="/recid_1/a.pdf", change="created",
        )
    )  # fmt: skip
    return made


def capability_list(library: Library) -> Any:
    made = library.capability_list.CapabilityList()
    made.up = f"{HOME}source.xml"
    for kind in ("changelist", "resourcelist", "changedump"):
        made.add(library.resource.Resource(f"{HOME}33/{kind}.xml", capability=kind))
    return made


def openbis_capability_list(library: Library) -> Any:
    made = library.capability_list.CapabilityList()
    made.add_capability(library.resource_list.ResourceList(), f"{HOME}?verb=resourcelist.xml")
    made.link_set(rel="up", href=f"{HOME}?verb=about.xml")
    return made


def source_description(library: Library) -> Any:
    made = library.source_description.SourceDescription()
    made.describedby = f"{HOME}?verb=about.xml"
    made.md_at = None
    made.add_capability_list(f"{HOME}?verb=capabilitylist.xml")
    return made


WRITTEN = [
    resource_list, resource_dump, resource_dump_manifest, change_list, change_dump,
    change_dump_manifest, capability_list, openbis_capability_list, source_description,
]  # fmt: skip
Make = Callable[[Library], Any]


def said(found: Any) -> tuple[Any, ...]:
    """What a list says, without the times that the standard demands and resync leaves out."""
    md, ln, entries = values(found)
    demanded = ("md_at", "md_from")
    return {key: value for key, value in md.items() if key not in demanded}, ln, entries


@pytest.mark.parametrize("make", WRITTEN)
def test_each_reads_what_the_same_calls_wrote_with_the_other(make: Make) -> None:
    real, ours = (make(library).as_xml() for library in LIBRARIES)

    by_real, by_ours = said(parsed(REAL, ours.encode())), said(parsed(OURS, real.encode()))

    assert by_real == by_ours
    assert by_real == said(parsed(REAL, real.encode()))


@pytest.mark.parametrize("make", WRITTEN)
def test_what_is_written_keeps_the_rules_that_resync_breaks(make: Make) -> None:
    document = read(make(OURS).as_xml().encode(), uri=HOME, strict=True)

    assert list(document.entries())
    times = document.header.at or document.header.from_
    capability = document.header.capability
    assert capability is not None
    assert (times is not None) == (capability.is_snapshot or capability.is_log)


def many(library: Library) -> Any:
    made = library.resource_list.ResourceList(allow_multifile=True)
    made.max_sitemap_entries = 2
    made.md_at = DAY
    for number in range(5):
        made.add(library.resource.Resource(f"{HOME}{number}", lastmod=DAY, length=number))
    return made


def test_a_list_of_several_documents_has_the_same_parts() -> None:
    lists = [many(library) for library in LIBRARIES]
    texts = [
        [
            found.as_xml(allow_multifile=True, basename=f"{HOME}?verb=part_.xml"),
            *(found.as_xml_part(basename=f"{HOME}?verb=list.xml", part_number=number)
              for number in range(found.requires_multifile())),
        ]
        for found in lists
    ]  # fmt: skip

    real, ours = ([said(parsed(REAL, text.encode())) for text in each] for each in texts)

    assert lists[1].requires_multifile() == lists[0].requires_multifile() == 3
    assert ours == real


@pytest.mark.parametrize("writer", LIBRARIES, ids=repr)
@pytest.mark.parametrize("reader", LIBRARIES, ids=repr)
def test_files_of_an_index_are_written_and_read_by_both(
    writer: Library, reader: Library, tmp_path: Path
) -> None:
    mapper = writer.mapper.Mapper([f"{HOME}lists", str(tmp_path)])
    made = many(writer)
    made.mapper = mapper

    made.write(str(tmp_path / "resourcelist.xml"))
    found = reader.resource_list.ResourceList(mapper=reader.mapper.Mapper(
        [f"{HOME}lists", str(tmp_path)]))  # fmt: skip
    found.read(str(tmp_path / "resourcelist.xml"))

    assert sorted(os.listdir(tmp_path)) == [
        "resourcelist.xml", "resourcelist00000.xml", "resourcelist00001.xml",
        "resourcelist00002.xml",
    ]  # fmt: skip
    assert [(each.uri, each.length) for each in found] == [
        (f"{HOME}{number}", number) for number in range(5)
    ]
    assert found.num_files == 4


def test_a_list_of_lists_is_an_index_where_resync_writes_none() -> None:
    def make(library: Library) -> Any:
        made = library.list_base_with_index.ListBaseWithIndex(capability_name="changelist")
        made.add(
            library.resource.Resource(
                f"{HOME}20240301/changelist.xml", capability="changelist",
                md_from=DAY, md_until="2024-03-02T10:00:00Z",
            )
        )  # fmt: skip
        return made.as_xml().encode()

    found = {library: library.sitemap.Sitemap() for library in LIBRARIES}
    for library, sitemap in found.items():
        document = sitemap.parse_xml(io.BytesIO(make(library)))
        assert [each.uri for each in document.resources] == [f"{HOME}20240301/changelist.xml"]

    assert found[REAL].parsed_index is False
    assert found[OURS].parsed_index is True
    assert parsed(OURS, make(REAL)).resources[0].md_from == DAY


# --- values ---------------------------------------------------------------------------------------

ATTRIBUTES: list[dict[str, Any]] = [
    {},
    {"lastmod": DAY, "length": 3, "md5": MD5},
    {"timestamp": 1.5, "change": "deleted", "ts_datetime": 7},
    {"lastmod": "2024-03", "sha1": "a", "sha256": "b", "mime_type": "text/html"},
    {"capability": "changelist", "md_from": DAY, "md_until": "2024-03-01T10:00:00.25Z"},
    {"path": "/a", "ln": [{"rel": "up", "href": "http://a.example/"}]},
]


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_a_resource_has_the_same_values_and_texts(attributes: dict[str, Any]) -> None:
    real, ours = (
        library.resource.Resource(f"{HOME}a/b.txt?c", **attributes) for library in LIBRARIES
    )
    copies = [type(made)(resource=made, change="updated") for made in (real, ours)]
    for made in (real, ours):
        made.link_set("describedby", "http://d.example/", type="text/html")
        made.link_set("describedby", "http://e.example/")
        made.link_add(rel="file", href="x")

    names = (
        "hash", "lastmod", "datetime", "md_at", "md_completed", "md_from", "md_until", "basename",
        "describedby", "up", "index", "contents", "capability", "ts_until",
    )  # fmt: skip
    assert {name: getattr(ours, name) for name in names} == {
        name: getattr(real, name) for name in names
    }
    assert (repr(ours), str(ours), str(copies[1])) == (repr(real), str(real), str(copies[0]))
    # WEKO3 makes JSON of this text.
    assert json.loads(repr(ours).replace("'", '"'))["ln"][-1] == {"rel": "file", "href": "x"}


@pytest.mark.parametrize("first", ATTRIBUTES)
@pytest.mark.parametrize("second", [*ATTRIBUTES, {"timestamp": 1.9}, {"timestamp": 2.6}])
def test_resources_are_equal_in_both_or_in_none(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    pairs = [
        [library.resource.Resource(HOME, **given) for given in (first, second)]
        for library in LIBRARIES
    ]

    real, ours = (one == other for one, other in pairs)

    assert ours is real


@pytest.mark.parametrize("given", [{}, {"change": "moved"}, {"lastmod": "yesterday"}])
def test_a_resource_is_refused_by_both(given: dict[str, Any]) -> None:
    for library in LIBRARIES:
        with pytest.raises((ValueError, library.resource.ChangeTypeError)):
            library.resource.Resource(None if not given else HOME, **given)


def test_lists_are_compared_alike() -> None:
    def compared(library: Library) -> list[list[str]]:
        made = library.resource.Resource
        here, there = library.resource_list.ResourceList(), library.resource_list.ResourceList()
        here.add([made(f"{HOME}{name}", timestamp=1) for name in ("gone", "new", "old", "same")])
        there.add([made(f"{HOME}{name}", timestamp=1) for name in ("added", "same", "new")])
        there.add(made(f"{HOME}old", timestamp=9))
        there.add(made(f"{HOME}new", timestamp=1, length=2), replace=True)
        return [list(found.uris()) for found in here.compare(there)]

    assert compared(OURS) == compared(REAL)


def test_a_resource_is_in_a_list_once() -> None:
    for library in LIBRARIES:
        made = resource_list(library)
        with pytest.raises(library.resource_list.ResourceListDupeError):
            made.add(library.resource.Resource(f"{HOME}resync/33/records/1"))
        with pytest.raises(library.resource.ChangeTypeError):
            change_list(library).add(library.resource.Resource(HOME))


@pytest.mark.parametrize(
    "text",
    [
        DAY,
        "2024",
        "2024-03",
        "2024-03-01",
        "2024-03-01T10:00Z",
        "2024-03-01T10:00:00.5Z",
        "2024-03-01T10:00:00.123456Z",
        "2024-03-01T10:00:00+00:00",
    ],
)
def test_a_time_is_the_same_in_seconds_and_back(text: str) -> None:
    real, ours = (library.w3c_datetime for library in LIBRARIES)

    seconds = ours.str_to_datetime(text)

    assert (seconds, type(seconds)) == (
        real.str_to_datetime(text),
        type(real.str_to_datetime(text)),
    )
    assert ours.datetime_to_str(seconds) == real.datetime_to_str(seconds)
    assert ours.datetime_to_str(seconds, True) == real.datetime_to_str(seconds, True)


@pytest.mark.parametrize("text", ["", "now", "2024-13-01", "2024-03-01T10:00:00", DAY + "x"])
def test_a_text_that_is_no_time_is_refused_by_both(text: str) -> None:
    for library in LIBRARIES:
        with pytest.raises(ValueError, match=r"\w"):
            library.w3c_datetime.str_to_datetime(text)


def test_a_zone_is_subtracted_where_resync_adds_it() -> None:
    text = "2024-03-01T10:00:00+01:00"

    assert OURS.w3c_datetime.str_to_datetime(text) == REAL.w3c_datetime.str_to_datetime(DAY) - 3600
    assert REAL.w3c_datetime.str_to_datetime(text) == REAL.w3c_datetime.str_to_datetime(DAY) + 3600


MAPPINGS = [
    [HOME, "/srv/copy"],
    [f"{HOME}a=/srv/a", f"{HOME}b/=/srv/b/"],
    [f"{HOME}sub"],
    ["http://a.example:8080/x y/?z"],
]


@pytest.mark.parametrize("mappings", MAPPINGS)
@pytest.mark.parametrize("uri", [HOME, f"{HOME}a/b%20c.txt", f"{HOME}b/c?d=1", f"{HOME}sub/x"])
def test_an_address_has_the_same_path_and_back(mappings: list[str], uri: str) -> None:
    real, ours = (library.mapper.Mapper(mappings, use_default_path=True) for library in LIBRARIES)

    def mapped(library: Library, mapper: Any) -> tuple[Any, ...]:
        try:
            path = mapper.src_to_dst(uri)
            return path, mapper.dst_to_src(path), mapper.default_src_uri(), mapper.unsafe()
        except library.mapper.MapperError:
            return ()

    assert mapped(OURS, ours) == mapped(REAL, real)
    assert (len(ours), repr(ours)) == (len(real), repr(real))


@pytest.mark.parametrize("mappings", [["a=b=c"], ["a", "b", "c"], ["a=x", "a=y"], ["a=x", "b=x"]])
def test_a_mapping_is_refused_by_both(mappings: list[str]) -> None:
    for library in LIBRARIES:
        with pytest.raises(library.mapper.MapperError):
            library.mapper.Mapper(mappings)


@pytest.mark.parametrize("options", [{}, {"set_hashes": ["md5", "sha-256"], "set_path": True}])
def test_a_folder_gives_the_same_list(options: dict[str, Any], tmp_path: Path) -> None:
    for name in ("b/c.txt", "a.txt", "skipped/d.txt", "b/skip.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)

    def built(library: Library) -> Any:
        mapper = library.mapper.Mapper([HOME, str(tmp_path)])
        builder = library.resource_list_builder.ResourceListBuilder(mapper, **options)
        builder.add_exclude_patterns(["skip"])
        return builder.from_disk()

    real, ours = built(REAL), built(OURS)

    assert [*map(repr, ours)] == [*map(repr, real)]
    assert len(ours) == 2
    assert set(ours.md) == set(real.md)
