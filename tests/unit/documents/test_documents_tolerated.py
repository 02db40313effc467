"""What reading forgives is told once, and refused with the name of its rule when it is strict."""

import pytest

from resourcesync.errors import MalformedDocumentError
from resourcesync.model.entries import Resource
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS
from tests.support.documents.text import (
    CHANGE_LIST,
    document,
    open_document,
    tell,
    tell_strictly,
    url,
)

MANY = 1500


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
    "a relative href": (document('<rs:ln rel="up" href="c.xml"/>', url()), "uri-relative", "G13"),
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


def test_each_value_that_is_dropped_counts_and_its_kind_is_told_once_with_its_first_place() -> None:
    bad = url("http://a/1", '<rs:md length="-1"/>')
    opened = open_document(document(bad, url("http://a/2", "<lastmod>soon</lastmod>"), bad))

    assert list(opened.entries())[::2] == [Resource(uri="http://a/1")] * 2

    assert (opened.refused, opened.dropped) == (0, 3)
    assert [(tolerated.code, tolerated.line) for tolerated in opened.tolerated] == [
        ("length-invalid", 4),
        ("time-invalid", 5),
    ]
