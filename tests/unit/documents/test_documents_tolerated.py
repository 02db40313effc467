"""What reading forgives is told once, and refused with the name of its rule when it is strict."""

from datetime import UTC, datetime

import pytest

from resourcesync.errors import MalformedDocumentError
from resourcesync.model.capabilities import CapabilityEntry, Package, Part
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS, Capability
from tests.support.documents.text import (
    CHANGE_LIST,
    document,
    tell,
    tell_strictly,
    uris,
    url,
)

MANY = 1500
UPDATED = '<rs:md change="updated"/>'


def at_day(day: int) -> str:
    return url("http://a/1", f'<rs:md change="updated" datetime="2013-01-0{day}T00:00:00Z"/>')


FORGIVEN = {
    "a change list of packages": (
        document(
            url("http://a/1", '<rs:md from="2013" until="2014" type="application/zip"/>'),
            md=CHANGE_LIST,
        ),
        "packages-in-changelist",
        "CH03",
    ),
    "a resource list of resource lists": (
        document(url("http://a/list", '<rs:md at="2013"/>')),
        "parts-in-resourcelist",
        "RL08",
    ),
    "a resource dump of resource dumps": (
        document(
            url("http://a/dump", '<rs:md capability="resourcedump"/>'),
            md='<rs:md capability="resourcedump" at="2013"/>',
        ),
        "parts-in-resourcedump",
        "RD02",
    ),
    "a change list of change lists": (
        document(url("http://a/list", '<rs:md capability="changelist"/>'), md=CHANGE_LIST),
        "parts-in-changelist",
        "CH03",
    ),
    "a change dump of change dumps": (
        document(
            url("http://a/dump", '<rs:md capability="changedump"/>'),
            md='<rs:md capability="changedump" from="2013"/>',
        ),
        "parts-in-changedump",
        "CD03",
    ),
    "the namespace of 0.9 with https": (
        document(url()).replace(SITEMAP_NS.encode(), SITEMAP_NS.replace("http", "https").encode()),
        "sitemap-namespace",
        "G02",
    ),
    "our namespace with https": (
        document(url()).replace(RS_NS.encode(), RS_NS.replace("http", "https").encode()),
        "namespace",
        "G04",
    ),
    "an attribute of md with our prefix": (
        document(url("http://a/1", '<rs:md rs:length="5"/>')),
        "attribute-prefixed",
        "G09",
    ),
    "an attribute of a link with our prefix": (
        document(url("http://a/1", '<rs:ln rs:rel="via" href="http://a/2"/>')),
        "attribute-prefixed",
        "G09",
    ),
    "an attribute that nobody defined": (
        document(url("http://a/1", '<rs:md isDataset="true"/>')),
        "attribute-unknown",
        "G10",
    ),
    "a path in a list": (
        document(url("http://a/1", '<rs:md path="/1"/>')),
        "attribute-misplaced",
        "G31",
    ),
    "an entry with an attribute": (
        document(url().replace("<url>", '<url id="1">')),
        "entry-attributes",
        "G11",
    ),
    "a capability in camel case": (
        document(md='<rs:md capability="resourceList" at="2013"/>'),
        "capability-spelled",
        "G07",
    ),
    "a capability with blanks": (
        document(md='<rs:md capability="changelist " from="2013"/>').replace(b'list "', b'LIST "'),
        "capability-spelled",
        "G07",
    ),
    "a change that is shouted": (
        document(
            *[at_day(1)] * MANY, url("http://a/1", '<rs:md change="DELETED"/>'), md=CHANGE_LIST
        ),
        "change-spelled",
        "G33",
    ),
    "a lastmod without a time zone": (
        document(url("http://a/1", "<lastmod>2013-01-01T00:00:00</lastmod>")),
        "time-zone",
        "G17",
    ),
    "a lastmod without a time zone among many": (
        document(*[url("http://a/1", "<lastmod>2018-11-06T17:41:16.901455</lastmod>")] * MANY),
        "time-zone",
        "G17",
    ),
    "a header without a time zone": (
        document(md='<rs:md capability="resourcelist" at="2018-11-06T17:41:16.901455"/>'),
        "time-zone",
        "G17",
    ),
    "a relative loc": (document(url("/res1")), "uri-relative", "G13"),
    "a relative href": (
        document('<rs:ln rel="up" href="c.xml"/>', url()),
        "uri-relative",
        "G13",
    ),
    "a link without rel": (document('<rs:ln href="http://a/c"/>'), "link-incomplete", "G23"),
    "a priority of a link that is none": (
        document(url("http://a/1", '<rs:ln rel="duplicate" href="http://b/1" pri="0"/>')),
        "link-attribute",
        "G25",
    ),
    "a link of the root after the entries": (
        document(url(), '<rs:ln rel="up" href="http://a/c"/>'),
        "link-late",
        "G22",
    ),
    "the time of a change in its at": (
        document(url("http://a/1", '<rs:md change="updated" at="2013"/>'), md=CHANGE_LIST),
        "change-time-at",
        "G37",
    ),
    "the newest change first": (
        document(at_day(3), at_day(2), at_day(2), md=CHANGE_LIST),
        "order-backwards",
        "CH05",
    ),
    "modified under the root": (
        document(md='<rs:md capability="changelist" modified="2013"/>'),
        "time-modified",
        "G36",
    ),
    "from for a snapshot": (
        document(md='<rs:md capability="resourcelist" from="2013"/>'),
        "time-from",
        "G38",
    ),
}


@pytest.mark.parametrize(("data", "code", "rule"), FORGIVEN.values(), ids=FORGIVEN)
def test_what_is_forgiven_is_told_once(data: bytes, code: str, rule: str) -> None:
    told = tell(data)

    found = {str(tolerated.code): tolerated for tolerated in told.tolerated}
    assert len(found) == len(told.tolerated)
    assert (found[code].rule, told.refusals) == (rule, [])
    assert found[code].reason
    assert found[code].line > 0 or code == "link-late"


@pytest.mark.parametrize(("data", "code", "rule"), FORGIVEN.values(), ids=FORGIVEN)
def test_what_is_forgiven_is_refused_when_reading_is_strict(
    data: bytes, code: str, rule: str
) -> None:
    with pytest.raises(MalformedDocumentError) as caught:
        tell_strictly(data)

    told = {str(tolerated.code): tolerated for tolerated in tell(data).tolerated}
    assert caught.value.code in told
    assert ("rule", told[caught.value.code].rule) in caught.value.evidence
    if len(told) == 1:
        assert (caught.value.code, caught.value.evidence) == (code, (("rule", rule),))


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("<url/>", "G12"),
        (url("http://a/1", "<lastmod>2013</lastmod>" * 2), "G14"),
        (url("http://a/1", "<rs:md/><rs:md/>"), "G15"),
        (url("http://a/1", "<lastmod>soon</lastmod>"), "G17"),
        (url("http://a/1", '<rs:md length="-1"/>'), "G26"),
        (url("http://a/\u200b"), "G13"),
        ("<sitemap><loc>http://a/1</loc></sitemap>", "G03"),
    ],
)
def test_an_entry_that_cannot_be_used_stops_strict_reading(entry: str, rule: str) -> None:
    with pytest.raises(MalformedDocumentError) as caught:
        tell_strictly(document(url(), entry))

    assert caught.value.evidence == (("rule", rule),)
    assert (caught.value.line, caught.value.column) == (5, 1)


def test_a_time_without_a_zone_is_taken_as_utc() -> None:
    entry = url("http://a/1", '<rs:md change="updated" datetime="2018-11-06T17:41:16.901455"/>')

    [change] = tell(document(entry, md=CHANGE_LIST)).entries

    assert isinstance(change, Change)
    assert change.time == datetime(2018, 11, 6, 17, 41, 16, 901455, tzinfo=UTC)


def test_a_time_of_a_change_in_its_at_counts() -> None:
    entry = url("http://a/1", "<lastmod>2012</lastmod>", '<rs:md change="updated" at="2013"/>')

    [change] = tell(document(entry, md=CHANGE_LIST)).entries

    assert isinstance(change, Change)
    assert change.time == datetime(2013, 1, 1, tzinfo=UTC)


def test_changes_that_come_newest_first_keep_their_order() -> None:
    days = [url(f"http://a/{n}", UPDATED.replace("/>", f' datetime="20{n}"/>')) for n in (14, 13)]

    told = tell(document(*days, md=CHANGE_LIST))

    assert uris(told.entries) == ["http://a/14", "http://a/13"]
    assert told.codes == ["order-backwards"]


@pytest.mark.parametrize(
    ("label", "capability", "is_index"),
    [
        ("changeset", Capability.CHANGE_LIST, False),
        ("inventory", Capability.RESOURCE_LIST, False),
        ("resourcelistindex", Capability.RESOURCE_LIST, True),
        ("changelistindex", Capability.CHANGE_LIST, True),
        ("descriptionIndex", Capability.DESCRIPTION, True),
        (" Changelist-Archive", Capability.CHANGE_LIST_ARCHIVE, False),
    ],
)
def test_other_words_for_a_capability_are_understood(
    label: str, capability: Capability, is_index: bool
) -> None:
    told = tell(document(md=f'<rs:md capability="{label}"/>'))

    assert (told.header.capability, told.header.is_index) == (capability, is_index)
    assert told.codes == ["capability-spelled"]


def test_a_description_that_calls_its_capability_lists_capability_is_understood() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md capability="capability"/>'),
            url("http://a/2", '<rs:md capability="new"/>'),
            md='<rs:md capability="description"/>',
        )
    )

    assert told.entries == [
        CapabilityEntry(
            uri="http://a/1", capability=Capability.CAPABILITY_LIST, label="capability"
        ),
        CapabilityEntry(uri="http://a/2", label="new"),
    ]
    assert told.codes == ["capability-spelled", "capability-unknown"]


def test_a_change_list_whose_entries_are_packages_is_a_change_dump() -> None:
    entry = url(
        "http://a/2020.tar.xz",
        '<rs:md type="application/x-xz" length="76000000" at="2020-06-01T00:00:00"'
        ' completed="2020-06-01T01:00:00" from="2020-05-31T00:00:00" until="2020-06-01T00:00:00"/>',
    )

    told = tell(document(entry, entry, md=CHANGE_LIST))

    assert told.header.capability is Capability.CHANGE_DUMP
    assert told.header.from_ == datetime(2013, 1, 3, tzinfo=UTC)
    package = told.entries[1]
    assert isinstance(package, Package)
    assert (package.from_, package.until, package.media_type) == (
        datetime(2020, 5, 31, tzinfo=UTC),
        datetime(2020, 6, 1, tzinfo=UTC),
        "application/x-xz",
    )
    assert told.codes == ["packages-in-changelist", "time-zone"]


def test_a_change_list_whose_entries_are_change_lists_is_their_index() -> None:
    entry = url(
        "http://a/20130103/changelist.xml",
        '<rs:md capability="changelist" from="2013-01-03T00:00:00Z" until="2013-01-04T00:00:00Z"/>',
    )

    told = tell(document(entry, entry, md=CHANGE_LIST))

    assert told.header.is_index
    assert told.header.capability is Capability.CHANGE_LIST
    part = told.entries[1]
    assert isinstance(part, Part)
    assert (part.from_, part.until) == (
        datetime(2013, 1, 3, tzinfo=UTC),
        datetime(2013, 1, 4, tzinfo=UTC),
    )


def test_a_resource_list_whose_entries_are_resource_lists_is_their_index() -> None:
    entry = '<url><rs:md at="2013-01-0{0}T00:00:00Z"/><loc>http://a/{0}</loc></url>'

    told = tell(document(*map(entry.format, (1, 2))))

    assert told.header.is_index
    assert told.header.capability is Capability.RESOURCE_LIST
    assert told.entries == [
        Part(uri=f"http://a/{day}", at=datetime(2013, 1, day, tzinfo=UTC)) for day in (1, 2)
    ]
    assert told.codes == ["parts-in-resourcelist"]


def test_an_entry_that_says_its_capability_is_a_list() -> None:
    told = tell(document(url("http://a/1", '<rs:md capability="resourceList"/>')))

    assert [type(entry) for entry in told.entries] == [Part]
    assert told.codes == ["parts-in-resourcelist", "attribute-misplaced"]


@pytest.mark.parametrize(
    "other",
    [
        url("http://a/2"),
        url("http://a/2", '<rs:md at="2013" length="5"/>'),
        url("http://a/2", '<rs:md capability="changelist"/>'),
        url("http://a/2", '<rs:md at="2013"/><rs:ln rel="duplicate" href="http://b/2"/>'),
        url("http://a/2", '<rs:md at="2013"/><lastmod>2013</lastmod>'),
    ],
)
def test_a_list_with_any_sign_of_a_resource_at_its_start_is_a_list(other: str) -> None:
    part = url("http://a/1", '<rs:md at="2013"/>')

    for entries in ((part, other), (other, part)):
        told = tell(document(*entries))
        assert not told.header.is_index
        assert [type(entry) for entry in told.entries] == [Resource, Resource]
