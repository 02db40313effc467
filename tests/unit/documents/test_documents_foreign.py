"""Elements of other communities are kept as XML that stands alone (§7)."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents.reader import Limits
from resourcesync.errors import DocumentLimitError
from resourcesync.model.capabilities import CapabilityEntry, Package, Part
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS
from tests.support.documents.text import document, tell, uris, url

IMAGE = "http://www.google.com/schemas/sitemap-image/1.1"


def kept(*rest: str, limits: Limits | None = None) -> tuple[str, ...]:
    [entry] = tell(document(url("http://a/1", *rest)), limits).entries
    assert isinstance(entry, Resource)
    return entry.foreign


def test_an_image_of_a_sitemap_is_kept_with_all_that_is_in_it() -> None:
    foreign = kept(
        f'<i:image xmlns:i="{IMAGE}" a="1 &lt; 2"><i:loc>http://a/?x&amp;y</i:loc>'
        "<i:empty/> text <!-- gone --></i:image>"
    )

    assert foreign == (
        f'<image xmlns="{IMAGE}" a="1 &lt; 2"><loc>http://a/?x&amp;y</loc><empty/> text </image>',
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('<a xmlns=""/>', '<a xmlns=""/>'),
        (
            '<x:a xmlns:x="urn:x" xmlns:y="urn:y" y:b="c" x:d="e"/>',
            '<a xmlns="urn:x" xmlns:n1="urn:y" n1:b="c" xmlns:n2="urn:x" n2:d="e"/>',
        ),
        (
            '<x:a xmlns:x="urn:x" xml:lang="en"><b xmlns=""><x:c/></b></x:a>',
            '<a xmlns="urn:x" xml:lang="en"><b xmlns=""><c xmlns="urn:x"/></b></a>',
        ),
        (
            '<x:a xmlns:x="urn:x" x:b="&#10;&quot;&#9;">]]&gt;&#13;</x:a>',
            '<a xmlns="urn:x" xmlns:n1="urn:x" n1:b="&#10;&quot;&#9;">]]&gt;&#13;</a>',
        ),
        ("<rs:tag>frogs</rs:tag>", f'<tag xmlns="{RS_NS}">frogs</tag>'),
        ("<priority>0.5</priority>", f'<priority xmlns="{SITEMAP_NS}">0.5</priority>'),
        ("<priority/>", f'<priority xmlns="{SITEMAP_NS}"/>'),
        ("<odd>a</odd>", f'<odd xmlns="{SITEMAP_NS}">a</odd>'),
        ('<a xmlns="urn:&amp;"/>', '<a xmlns="urn:&amp;"/>'),
    ],
)
def test_a_fragment_declares_what_it_uses_and_is_always_written_alike(
    written: str, expected: str
) -> None:
    assert kept(written) == (expected,)
    assert ET.fromstring(expected) is not None
    assert kept(expected) == (expected,)


@pytest.mark.parametrize("times", [1, 1500])
def test_a_priority_is_kept_in_many_entries_as_in_one(times: int) -> None:
    entries = [url("http://a/1", "<priority>0.5</priority>"), url("http://a/2")] * times

    told = tell(document(*entries, md=""))

    assert (
        told.entries
        == [
            Resource(uri="http://a/1", foreign=(f'<priority xmlns="{SITEMAP_NS}">0.5</priority>',)),
            Resource(uri="http://a/2"),
        ]
        * times
    )


def test_elements_under_the_root_are_kept_when_they_come_before_the_entries() -> None:
    told = tell(
        document(
            '<x:about xmlns:x="urn:x"><url><loc>http://no/</loc></url></x:about>',
            url("http://a/1"),
            '<x:late xmlns:x="urn:x"/>',
            url("http://a/2"),
        )
    )

    assert told.header.foreign == (
        f'<about xmlns="urn:x"><url xmlns="{SITEMAP_NS}"><loc>http://no/</loc></url></about>',
    )
    assert uris(told.entries) == ["http://a/1", "http://a/2"]


@pytest.mark.parametrize(
    ("capability", "kind"),
    [
        ("changelist", Change),
        ("resourcedump", Package),
        ("changelist-archive", Part),
        ("capabilitylist", CapabilityEntry),
    ],
)
def test_entries_of_every_kind_keep_them(capability: str, kind: type) -> None:
    entry = url("http://a/1", '<rs:md change="updated"/>', '<a xmlns="urn:a"/>')

    told = tell(document(entry, md=f'<rs:md capability="{capability}"/>'))

    [found] = told.entries
    assert isinstance(found, kind)
    foreign = found.resource.foreign if isinstance(found, Change) else found.foreign
    assert foreign == ('<a xmlns="urn:a"/>',)


def test_what_is_over_the_budget_is_left_out_and_told_and_the_entry_stays() -> None:
    limits = Limits(foreign=100)
    small, large = '<a xmlns="urn:a"/>', f'<b xmlns="urn:b">{"x" * 100}</b>'

    told = tell(document(url("http://a/1", small, large, small)), limits)

    [entry] = told.entries
    assert isinstance(entry, Resource)
    assert entry.foreign == (small, small)
    assert [(found.code, found.rule, found.line) for found in told.tolerated] == [
        ("foreign-dropped", "", 4)
    ]


def test_the_budget_is_for_each_entry_and_for_the_root_alone() -> None:
    limits = Limits(foreign=30)
    element = '<a xmlns="urn:a">12345678</a>'

    told = tell(document(element, *[url("http://a/1", element)] * 3), limits)

    assert told.header.foreign == (element,)
    assert told.entries == [Resource(uri="http://a/1", foreign=(element,))] * 3
    assert told.codes == []


def test_elements_too_deep_are_a_limit_of_the_document() -> None:
    with pytest.raises(DocumentLimitError):
        kept('<a xmlns="urn:a">' * 20 + "</a>" * 20)


names = st.text("abz", min_size=1, max_size=2)
namespaces = st.sampled_from(["", "urn:a", "urn:b&c"])
texts = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"
    ),
    max_size=5,
)
trees = st.recursive(
    st.tuples(namespaces, names, st.dictionaries(st.tuples(namespaces, names), texts), texts),
    lambda inner: st.tuples(
        namespaces,
        names,
        st.dictionaries(st.tuples(namespaces, names), texts),
        st.lists(inner, max_size=3),
    ),
    max_leaves=5,
)


def element(tree: object) -> ET.Element:
    assert isinstance(tree, tuple)
    namespace, name, attributes, inside = tree
    made = ET.Element(
        f"{{{namespace}}}{name}" if namespace else name,
        {
            f"{{{place}}}{word}" if place else word: text
            for (place, word), text in attributes.items()
        },
    )
    if isinstance(inside, str):
        made.text = inside or None
    else:
        made.extend(element(item) for item in inside)
    return made


def same(element: ET.Element, other: ET.Element) -> bool:
    return (
        (element.tag, element.attrib, element.text) == (other.tag, other.attrib, other.text)
        and len(element) == len(other)
        and all(map(same, element, other))
    )


@given(trees)
def test_a_fragment_says_what_the_element_said(tree: object) -> None:
    root = ET.Element(f"{{{SITEMAP_NS}}}urlset")
    entry = ET.SubElement(root, f"{{{SITEMAP_NS}}}url")
    ET.SubElement(entry, f"{{{SITEMAP_NS}}}loc").text = "http://a/1"
    entry.append(element(tree))

    [found] = tell(ET.tostring(root, encoding="utf-8")).entries

    assert isinstance(found, Resource)
    [fragment] = found.foreign
    assert same(ET.fromstring(fragment), element(tree))
