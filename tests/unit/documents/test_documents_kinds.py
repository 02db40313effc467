"""Every kind of document gives entries of its own kind, with all that they say."""

from datetime import UTC, datetime

import pytest

from resourcesync.model.capabilities import (
    CapabilityEntry,
    DocumentChange,
    Entry,
    Package,
    Part,
)
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind
from tests.support.documents.text import document, rows, tell, uris, url

MANY = 1500
FROM_TO = 'from="2013-01-01T00:00:00Z" until="2013-01-02T00:00:00Z"'
AT_DONE = 'at="2013-01-01T00:00:00Z" completed="2013-01-02T00:00:00Z"'
FIRST, SECOND = datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC)
REPRESENTATION = (
    'hash="md5:abababababababababababababababab" length="7" type="application/xml" encoding="gzip"'
)
LINK = '<rs:ln rel="contents" href="http://a/c"/>'


def md(capability: str, more: str = "") -> str:
    return f'<rs:md capability="{capability}" {more}/>'


@pytest.mark.parametrize(
    ("capability", "root", "kind"),
    [
        ("resourcelist", "urlset", Resource),
        ("resourcedump-manifest", "urlset", Resource),
        ("changelist", "urlset", Change),
        ("changedump-manifest", "urlset", Change),
        ("change-notification", "urlset", Change),
        ("changenotification", "urlset", Change),
        ("framework-notification", "urlset", DocumentChange),
        ("frameworknotification", "urlset", DocumentChange),
        ("resourcedump", "urlset", Package),
        ("changedump", "urlset", Package),
        ("description", "urlset", CapabilityEntry),
        ("capabilitylist", "urlset", CapabilityEntry),
        *(
            (f"{name}-archive", root, Part)
            for name in ("resourcelist", "resourcedump", "changelist", "changedump")
            for root in ("urlset", "sitemapindex")
        ),
        *(
            (name, "sitemapindex", Part)
            for name in (
                "resourcelist",
                "resourcedump",
                "changelist",
                "changedump",
                "description",
                "capabilitylist",
                "resourcedump-manifest",
                "changedump-manifest",
            )
        ),
    ],
)
def test_the_header_tells_what_the_entries_are(
    capability: str, root: str, kind: type[Entry]
) -> None:
    child = url("http://a/1", '<rs:md change="updated"/>')
    if root == "sitemapindex":
        child = child.replace("url>", "sitemap>")

    told = tell(document(child, root=root, md=md(capability)))

    assert [type(entry) for entry in told.entries] == [kind]
    assert uris(told.entries) == ["http://a/1"]
    assert told.header.capability is not None
    assert told.header.is_index is (root == "sitemapindex")


@pytest.mark.parametrize(
    ("capability", "root", "kind"),
    [
        ("resourcelist", "sitemapindex", Part),
        ("changelist-archive", "urlset", Part),
        ("resourcedump", "urlset", Package),
        ("changedump", "urlset", Package),
    ],
)
@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (AT_DONE, {"at": FIRST, "completed": SECOND}),
        (FROM_TO, {"from_": FIRST, "until": SECOND}),
    ],
)
def test_what_refers_to_a_document_keeps_all_that_it_says(
    capability: str,
    root: str,
    kind: type[Part | Package],
    times: str,
    expected: dict[str, datetime],
) -> None:
    child = url(
        "http://a/1",
        "<lastmod>2013-01-02</lastmod>",
        f'<rs:md {times} {REPRESENTATION} x:a="b"/>{LINK}',
    ).replace("url>", "sitemap>" if root == "sitemapindex" else "url>")
    data = document(child, root=root, md=md(capability)).replace(
        b"<" + root.encode(), b"<%b xmlns:x='urn:x'" % root.encode(), 1
    )

    told = tell(data)

    fields = {
        "lastmod": SECOND,
        "length": 7,
        "digests": (Digest("md5", "ab" * 16),),
        "media_type": "application/xml",
        "encoding": "gzip",
        "links": (Link(rel="contents", href="http://a/c"),),
        "extra": (("{urn:x}a", "b"),),
        **expected,
    }
    [entry] = told.entries
    assert {name: getattr(entry, name) for name in fields} == fields
    assert type(entry) is kind
    assert told.refusals == []


@pytest.mark.parametrize("bad", ['at="soon"', 'until=""', 'length="-1"', 'completed="2013-13"'])
@pytest.mark.parametrize("capability", ["resourcedump", "changedump-archive"])
def test_what_is_said_wrongly_of_a_document_is_not_said(capability: str, bad: str) -> None:
    sound = 'type="application/zip"'
    wrong, right = (
        tell(document(url("http://a/1", f"<rs:md {text}/>"), url("http://a/2"), md=md(capability)))
        for text in (f"{bad} {sound}", sound)
    )

    assert wrong.entries == right.entries
    assert wrong.refusals == []
    assert {tolerated.code for tolerated in wrong.tolerated} <= {"time-invalid", "length-invalid"}
    assert len(wrong.tolerated) == 1


@pytest.mark.parametrize("path", ["/res1", "res1", " /a b ", "/../x", ""])
def test_the_path_in_a_manifest_is_kept_as_written(path: str) -> None:
    entry = url("http://a/1", f'<rs:md path="{path}" length="1"/>')
    data = document(*[entry] * MANY, md=md("resourcedump-manifest"))

    told = tell(data)

    assert told.entries == [Resource(uri="http://a/1", path=path, length=1)] * MANY
    assert {row.path for row in rows(data)} == {path}


def test_a_nested_manifest_tells_where_each_part_is_in_the_package() -> None:
    child = '<sitemap><loc>http://a/m1</loc><rs:md path="/manifest1.xml"/></sitemap>'

    told = tell(document(child, root="sitemapindex", md=md("resourcedump-manifest")))

    assert told.entries == [Part(uri="http://a/m1", path="/manifest1.xml")]


@pytest.mark.parametrize("capability", ["changedump-manifest", "change-notification"])
@pytest.mark.parametrize("said", ["", '<rs:md change="odd"/>'])
def test_wherever_changes_are_told_one_that_is_not_told_is_refused(
    capability: str, said: str
) -> None:
    told = tell(document(url("http://a/1", said), md=md(capability)))

    assert told.entries == []
    assert [refused.code for refused in told.refusals] == ["change-unknown"]


def test_a_framework_notification_tells_what_happened_to_which_document() -> None:
    told = tell(
        document(
            url(
                "http://a/changelist.xml",
                '<rs:md change="updated" capability="changelist" '
                f'datetime="2013-01-02T00:00:00Z" {FROM_TO} z="y"/>',
                '<rs:ln rel="up" href="http://a/c"/>',
            ),
            url(
                "http://a/new",
                "<lastmod>2013-01-01</lastmod>",
                '<rs:md change="Create" capability="New"/>',
            ),
            md=md("framework-notification"),
        )
    )

    assert told.entries == [
        DocumentChange(
            uri="http://a/changelist.xml",
            kind=ChangeKind.UPDATED,
            time=SECOND,
            capability=Capability.CHANGE_LIST,
            label="changelist",
            from_=FIRST,
            until=SECOND,
            links=(Link(rel="up", href="http://a/c"),),
            extra=(("z", "y"),),
        ),
        DocumentChange(
            uri="http://a/new", kind=ChangeKind.CREATED, time=FIRST, label="New", lastmod=FIRST
        ),
    ]


def test_a_framework_notification_without_a_change_costs_its_entry() -> None:
    told = tell(document(url(), md=md("framework-notification")))

    assert (told.entries, [refused.code for refused in told.refusals]) == ([], ["change-unknown"])
