"""Documents of every older version are read in the words of 1.1, and the version is told.

The documents here are written after what each version asks for; the examples of 0.9, 1.0 and 1.1
are in the conformance tests.
"""

from datetime import UTC, datetime

import pytest

from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import RS_NS, Capability, ChangeKind, Dialect, Relation
from tests.support.documents.text import Told, document, open_document, rows, tell, uris, url

DAYS = [datetime(2013, 1, day, tzinfo=UTC) for day in range(1, 6)]
P2_NS = "http://www.openarchives.org/rs/"
UP = '<rs:ln rel="resourcesync" href="http://a/capabilitylist.xml"/>'
INDEX = '<rs:ln rel="up" href="http://a/index.xml"/>'
TOP = '<rs:ln rel="top" href="http://a/capabilitylist.xml"/>'


def old(md: str, *children: str, namespace: str = RS_NS) -> Told:
    return tell(document(*children, md=md).replace(RS_NS.encode(), namespace.encode()))


def change(loc: str, day: int, word: str = "updated") -> str:
    return url(loc, f"<lastmod>2013-01-0{day}T00:00:00Z</lastmod>", f'<rs:md change="{word}"/>')


def changes(told: Told) -> list[tuple[str, str, datetime | None]]:
    return [
        (entry.uri, entry.kind.value, entry.time)
        for entry in told.entries
        if isinstance(entry, Change)
    ]


# --- 1.0 and 1.1 -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("md", "entry", "dialect"),
    [
        ("changelist", '<lastmod>2013</lastmod><rs:md change="updated"/>', Dialect.V1_0),
        ("changelist", '<rs:md change="updated" datetime="2013"/>', Dialect.V1_1),
        (
            "changedump-manifest",
            '<lastmod>2013</lastmod><rs:md change="updated" path="/a"/>',
            Dialect.V1_0,
        ),
        ("changelist", '<rs:md change="updated"/>', Dialect.V1_1),
        ("resourcelist", "<lastmod>2013</lastmod>", Dialect.V1_1),
    ],
)
def test_1_0_and_1_1_are_told_apart_by_the_times_of_changes_alone(
    md: str, entry: str, dialect: Dialect
) -> None:
    told = old(f'<rs:md capability="{md}"/>', url("http://a/1", entry))

    assert told.dialect is dialect
    assert told.codes == []


# --- P2, the paper in D-Lib --------------------------------------------------------------------


@pytest.mark.founding(
    "D-Lib §5",
    "The Change List of this draft, newest first, is read; `top` leads up",
    "`documents.read`",
)
def test_the_newest_change_of_p2_comes_last_after_reading() -> None:
    children = [change(f"http://a/{day}", day) for day in (4, 3, 3, 1)]
    md = f'{TOP}{INDEX}<rs:md capability="changelist" modified="2013-01-05"/>'

    told = old(md, *children, namespace=P2_NS)

    assert uris(told.entries) == ["http://a/1", "http://a/3", "http://a/3", "http://a/4"]
    assert told.dialect is Dialect.P2
    assert told.header.modified == DAYS[4]
    assert told.header.link(Relation.UP) == "http://a/capabilitylist.xml"
    assert told.header.link(Relation.INDEX) == "http://a/index.xml"
    assert told.codes == ["namespace", "time-modified", "relation-old", "order-reversed"]
    data = document(*children, md=md).replace(RS_NS.encode(), P2_NS.encode())
    assert [row.uri for row in rows(data)][-1] == "http://a/4"


@pytest.mark.founding(
    "D-Lib §5", "The Resource List of this draft, with ETags, is read", "`documents.read`"
)
def test_a_resource_list_of_p2_keeps_its_order_and_its_etags() -> None:
    told = old(
        '<rs:md capability="resourcelist" modified="2013-01-05"/>',
        url("http://a/2", '<rs:md etag="x" length="5"/>'),
        url("http://a/1"),
        namespace=P2_NS,
    )

    assert told.header.at == DAYS[4]
    assert told.entries == [
        Resource(uri="http://a/2", length=5, extra=(("etag", "x"),)),
        Resource(uri="http://a/1"),
    ]


META = (
    '<h:meta xmlns:h="http://www.w3.org/1999/xhtml" name="DCTERMS.modified"'
    ' content="2013-01-05T00:00:00Z"/>'
)


def draft(*children: str, kind: str = "", namespace: str = RS_NS) -> bytes:
    data = document(*children, md=META).replace(RS_NS.encode(), namespace.encode())
    return data.replace(b"<urlset ", f"<urlset {kind} ".encode()) if kind else data


def test_a_changeset_of_p1_is_a_change_list() -> None:
    data = draft(
        url("http://a/1", '<lastmod rs:type="created">2013-01-01T00:00:00Z</lastmod>'),
        url("http://a/2", '<lastmod rs:type="updated">2013-01-02T00:00:00Z</lastmod>'),
        url("http://a/3", "<expires>2013-01-03T00:00:00Z</expires>"),
        kind='rs:type="changeset"',
    )

    told = tell(data)

    assert told.header.capability is Capability.CHANGE_LIST
    assert told.header.modified == DAYS[4]
    assert changes(told) == [
        ("http://a/1", "created", DAYS[0]),
        ("http://a/2", "updated", DAYS[1]),
        ("http://a/3", "deleted", DAYS[2]),
    ]
    assert told.dialect is Dialect.P1
    assert [(row.change, row.datetime_text) for row in rows(data)] == [
        ("created", None),
        ("updated", None),
        ("deleted", "2013-01-03T00:00:00Z"),
    ]


@pytest.mark.parametrize(
    "namespace", ["http://resourcesync.org/ns/", "http://resourcesync.org/schemas/resync/0.9"]
)
def test_the_first_draft_is_known_by_its_namespace(namespace: str) -> None:
    data = draft(
        url(
            "http://a/1",
            "<rs:eventtype>deleted</rs:eventtype><lastmod>2013-01-02</lastmod>",
            "<rs:md5>4415d4a1df0e4bee731db465b04da138</rs:md5>",
        ),
        kind='rs:type="changeset"',
        namespace=namespace,
    )

    told = tell(data)

    assert told.dialect is Dialect.P0
    assert told.entries == [
        Change(
            kind=ChangeKind.DELETED,
            time=DAYS[1],
            resource=Resource(
                uri="http://a/1",
                lastmod=DAYS[1],
                digests=(Digest("md5", "4415d4a1df0e4bee731db465b04da138"),),
            ),
        )
    ]


@pytest.mark.parametrize(
    ("md", "version"),
    [
        ('<rs:md capability="resourcelist" modified="2013-01-01T00:00:00Z"/>', "0.5 or 0.6"),
        ('<rs:md capability="changelist-archive" modified="2013-01-01T00:00:00Z"/>', "0.6"),
        ('<rs:md capability="resourcelist" at="2013-01-01T00:00:00Z"/>', "1.1"),
    ],
)
def test_the_version_is_named_as_far_as_it_is_known(md: str, version: str) -> None:
    assert open_document(document(md=md)).version == version
