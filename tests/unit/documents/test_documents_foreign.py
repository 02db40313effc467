"""Elements of other communities are kept as XML that stands alone (§7)."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.model.entries import Resource
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS
from tests.support.documents.text import document, tell, url


def kept(*rest: str) -> tuple[str, ...]:
    [entry] = tell(document(url("http://a/1", *rest))).entries
    assert isinstance(entry, Resource)
    return entry.foreign


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
