"""XML Patch: bytes are cut and pasted, everything else keeps its bytes."""

import io
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from resourcesync.documents.patches.xml_patch import apply
from resourcesync.errors import PatchError
from tests.support.documents.text import patched

DOCUMENT = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<doc  a='1'>\n  <!-- <note> -->\n  <note id='n1'>first</note>\n"
    b'  <note id="n2" >second <b/> tail</note><empty/>\n  '
    b'<note id="n3"><?x <note>?></note>\n</doc>\n'
)


def one(document: bytes, operation: bytes) -> bytes:
    return patched(document, b"<diff>" + operation + b"</diff>")


@pytest.mark.parametrize(
    ("operation", "old", "new"),
    [
        (
            b'<add sel="doc"><x y="&lt;"/></add>',
            b"</note>\n</doc>",
            b'</note>\n<x y="&lt;"/></doc>',
        ),
        (b'<add sel="/doc" pos="prepend"><x/></add>', b"a='1'>", b"a='1'><x/>"),
        (b'<add sel="doc/note[2]" pos="before"><x/></add>', b'<note id="n2"', b'<x/><note id="n2"'),
        (b'<add sel="doc/note[2]" pos="after">t</add>', b"</note><empty/>", b"</note>t<empty/>"),
        (b'<add sel="doc/empty"><x/></add>', b"<empty/>", b"<empty><x/></empty>"),
        (b'<add sel="doc/*[2]" type="@k">v"v</add>', b'"n2" >', b'"n2" k="v&quot;v" >'),
        (b'<add sel="doc/empty" type="@k">v</add>', b"<empty/>", b'<empty k="v"/>'),
        (b'<replace sel="doc/note[1]"> <n/> </replace>', b"<note id='n1'>first</note>", b"<n/>"),
        (b'<replace sel="doc/note[1]/@id">n&apos;9</replace>', b"'n1'", b"'n&apos;9'"),
        (b'<replace sel="doc/@a">2</replace>', b"a='1'", b"a='2'"),
        (b'<replace sel="doc/note[1]/text()">1st</replace>', b">first<", b">1st<"),
        (b"<replace sel=\"doc/note[@id='n2']/text()[2]\">!</replace>", b" tail", b"!"),
        (b'<remove sel="doc/note[@id=&quot;n1&quot;]"/>', b"<note id='n1'>first</note>", b""),
        (b'<remove sel="doc/note[1]" ws="after"/>', b"<note id='n1'>first</note>\n  ", b""),
        (b'<remove sel="doc/comment()" ws="both"/>', b"\n  <!-- <note> -->\n  ", b""),
        (b'<remove sel="doc/comment()[1]"/>', b"<!-- <note> -->", b""),
        (b'<replace sel="/doc/comment()"> <!--x--> </replace>', b"<!-- <note> -->", b"<!--x-->"),
        (b'<add sel="doc/comment()" pos="after"><a/></add>', b"> -->", b"> --><a/>"),
        (b'<remove sel="doc/note[3]/processing-instruction()"/>', b"<?x <note>?>", b""),
        (
            b"<replace sel=\"doc/note[3]/processing-instruction('x')[1]\"><?y?></replace>",
            b"<?x <note>?>",
            b"<?y?>",
        ),
        (b'<add sel="doc" pos="before"><?p q?></add>', b"<doc  ", b"<?p q?><doc  "),
        (b'<add sel="doc" pos="after"><!--end--></add>', b"</doc>\n", b"</doc><!--end-->\n"),
        (
            b'<add sel="doc/empty" type="namespace::k">urn:k</add>',
            b"<empty/>",
            b'<empty xmlns:k="urn:k"/>',
        ),
        (
            b'<add xmlns:k="urn:k" sel="doc/empty" type="@k:a">v</add>',
            b"<empty/>",
            b'<empty xmlns:k="urn:k" k:a="v"/>',
        ),
        (b'<add sel="doc/empty" type="@xml:lang">de</add>', b"<empty/>", b'<empty xml:lang="de"/>'),
        (b'<remove sel="doc/note[1]" ws="both"/>', b"\n  <note id='n1'>first</note>\n  ", b""),
        (b'<remove sel="doc/note[2]/@id"/>', b' id="n2"', b""),
        (b'<remove sel="doc/note[2]/text()[1]"/>', b"second ", b""),
        (b'<remove sel="doc/note[2]/b"/>', b"<b/>", b""),
        (b"<remove sel=\"doc/note[@id='n3'][1]\"/>", b'<note id="n3"><?x <note>?></note>', b""),
    ],
)
def test_an_operation_changes_its_place_and_no_other_byte(
    operation: bytes, old: bytes, new: bytes
) -> None:
    assert DOCUMENT.count(old) == 1
    assert one(DOCUMENT, operation) == DOCUMENT.replace(old, new)


def test_operations_are_done_one_after_the_other() -> None:
    patch = (
        b'<p:patch xmlns:p="urn:ietf:rfc:7351"><p:add sel="doc/empty"><in/></p:add>'
        b'<p:replace sel="doc/empty/in"><out/></p:replace></p:patch>'
    )
    assert patched(DOCUMENT, patch) == DOCUMENT.replace(b"<empty/>", b"<empty><out/></empty>")


def test_names_are_compared_with_their_namespaces() -> None:
    document = b'<r xmlns="urn:a" xmlns:b="urn:b"><x/><b:x b:k="1"/></r>'
    patch = b'<d xmlns:q="urn:b" xmlns="urn:a"><remove sel="r/q:x[@q:k=\'1\']"/></d>'
    assert patched(document, patch) == b'<r xmlns="urn:a" xmlns:b="urn:b"><x/></r>'


@pytest.mark.parametrize(
    "operation",
    [
        b'<remove sel="doc"/>',
        b'<remove sel="doc/note"/>',
        b'<remove sel="doc/note[4]"/>',
        b'<remove sel="other/note[1]"/>',
        b'<remove sel="doc/note[1]/@gone"/>',
        b'<remove sel="doc/note[1]/text()[2]"/>',
        b'<remove sel="doc//note[1]"/>',
        b"<remove sel=\"id('n1')\"/>",
        b'<remove sel="doc/note[last()]"/>',
        b'<remove sel="doc/comment()[2]"/>',
        b"<remove sel=\"doc/comment()[@a='1']\"/>",
        b'<remove sel="doc/comment()/x"/>',
        b"<remove sel=\"doc/note[3]/processing-instruction('y')\"/>",
        b'<remove sel="doc/note[2]/text()"/>',
        b'<remove sel="doc/namespace::k"/>',
        b'<remove sel="text()"/>',
        b'<remove sel="doc/note[1]" ws="all"/>',
        b'<remove sel="doc/note[2]" ws="after"/>',
        b'<remove sel="doc/note[2]/b" ws="before"/>',
        b'<remove sel="doc/note[2]/@id" ws="before"/>',
        b'<remove sel="doc/note[2]/text()[1]" ws="before"/>',
        b'<remove sel="p:doc"/>',
        b'<remove sel="@a"/>',
        b'<remove sel=""/>',
        b"<remove/>",
        b'<remove sel="doc/note[0]"/>',
        b'<add sel="doc/note[1]/@id">x</add>',
        b'<add sel="doc/note[1]" type="@id">x</add>',
        b'<add sel="doc/note[1]" type="@k"><x/></add>',
        b'<add sel="doc/note[1]" type="namespace::k"/>',
        b'<add sel="doc/note[1]" type="namespace::a b">urn:k</add>',
        b'<add sel="doc/note[1]" type="@q:k">v</add>',
        b'<add sel="doc/note[1]" type="@a=\'1\' b">v</add>',
        b'<add sel="doc/comment()">x</add>',
        b'<add sel="doc" pos="before"><x/></add>',
        b'<add sel="doc" pos="after">text</add>',
        b'<replace sel="doc"><x/><y/></replace>',
        b'<replace sel="doc/empty"/>',
        b'<replace sel="doc/comment()"> </replace>',
        b'<add sel="doc/note[1]" pos="inside">x</add>',
        b'<add sel="doc/note[1]/text()">x</add>',
        b'<move sel="doc/note[1]"/>',
    ],
)
def test_what_does_not_fit_or_is_not_followed_is_refused(operation: bytes) -> None:
    with pytest.raises(PatchError):
        one(DOCUMENT, operation)


@pytest.mark.parametrize(
    "bad",
    [
        b'<!DOCTYPE doc [<!ENTITY e "x">]><doc><note/></doc>',
        b'<?xml version="1.0" encoding="iso-8859-1"?><doc><note/></doc>',
        b"<doc><note/>",
        b"<doc><note/></doc><doc/>",
        b"<doc><note/>\xff</doc>",
        b'<doc><note a="' + b"x" * 200_000 + b'"/></doc>',
        b"<doc>" + b"<a>" * 2_000 + b"</a>" * 2_000 + b"<note/></doc>",
        b"",
    ],
)
def test_hostile_xml_is_refused_as_version_before_and_as_patch(bad: bytes) -> None:
    with pytest.raises(PatchError):
        one(bad, b'<remove sel="doc/note"/>')
    if b"<a><a>" not in bad:
        with pytest.raises(PatchError):
            patched(DOCUMENT, bad)


def test_an_entity_of_a_doctype_is_never_expanded_in_a_patch() -> None:
    patch = b'<!DOCTYPE d [<!ENTITY e "x">]><d><add sel="doc">&e;</add></d>'
    with pytest.raises(PatchError, match="DOCTYPE"):
        patched(DOCUMENT, patch)


def test_reading_a_large_document_again_and_again_ends_at_a_budget() -> None:
    document = b"<d>" + b"<a>text</a>" * 300_000 + b"</d>"
    patch = b"<p>" + b'<add sel="d" type="@k">v</add><remove sel="d/@k"/>' * 40 + b"</p>"
    with pytest.raises(PatchError, match="too many operations"):
        patched(document, patch, 1 << 23)


def test_a_result_over_the_limit_is_not_written() -> None:
    result = io.BytesIO()
    patch = io.BytesIO(b'<p><add sel="d">xxxxxxxxxxxxxx</add></p>')
    with pytest.raises(PatchError, match="longer than listed"):
        apply(io.BytesIO(b"<d></d>"), patch, result, 10)
    assert result.getvalue() == b""


# --- whatever comes ---

TREES: st.SearchStrategy[Any] = st.recursive(
    st.just([]), lambda inner: st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=4)
)


def build(children: list[tuple[str, Any]], name: str) -> etree._Element:
    element = etree.Element(name)
    for number, (tag, inner) in enumerate(children):
        child = build(inner, tag)
        child.tail = "t" if number % 2 else None
        element.append(child)
    return element


@given(tree=TREES, data=st.data())
def test_removing_and_replacing_agree_with_lxml(
    tree: list[tuple[str, Any]], data: st.DataObject
) -> None:
    root = build(tree, "root")
    before = etree.tostring(root)
    nodes = [item for item in root.iter() if item is not root]
    if not nodes:
        return
    node = data.draw(st.sampled_from(nodes))
    path = etree.ElementTree(root).getpath(node).removeprefix("/")
    replaces = data.draw(st.booleans())
    parent, tail = node.getparent(), node.tail or ""
    assert parent is not None
    new = etree.Element("new")
    new.tail = tail
    parent.replace(node, new)
    expected = etree.tostring(root)
    if not replaces:
        expected = expected.replace(b"<new/>", b"", 1)
    operation = f'<replace sel="{path}"><new/></replace>' if replaces else f'<remove sel="{path}"/>'
    after = one(before, operation.encode())
    assert etree.tostring(etree.fromstring(after)) == etree.tostring(etree.fromstring(expected))


PATCHED = (
    b'<d xmlns:q="urn:q"><add sel="doc/note[1]" pos="before"><x/></add>'
    b'<replace sel="doc/note[@id=\'n2\']/text()[1]">t</replace><remove sel="doc/@a"/>'
    b'<remove sel="doc/comment()" ws="both"/><add sel="doc" type="namespace::k">urn:k</add>'
    b'<add sel="doc/empty"><q:x q:y="1"><z/></q:x></add></d>'
)


def spoilt(data: bytes) -> st.SearchStrategy[bytes]:
    """Return the bytes with a few places changed."""
    places = st.integers(0, len(data) - 1)
    bits = st.sampled_from([b"", b"<", b">", b'"', b"&", b"]", b"/", b"\0", b"\xff", b"<!--", b"@"])
    return st.lists(st.tuples(places, bits), max_size=3).map(
        lambda changes: _changed(data, changes)
    )


def _changed(data: bytes, changes: list[tuple[int, bytes]]) -> bytes:
    for at, bit in changes:
        data = data[:at] + bit + data[at + 1 :]
    return data


@settings(max_examples=150)
@given(document=spoilt(DOCUMENT), patch=spoilt(PATCHED))
def test_whatever_is_spoilt_a_patch_is_done_or_refused(document: bytes, patch: bytes) -> None:
    with suppress(PatchError):
        etree.fromstring(patched(document, patch))


PIECES = st.sampled_from(
    [
        "<x/>", "<q:x/>", "<q:x q:y='&lt;'>t</q:x>", "text", "&amp;", "&#9;", "]]>", "<!--c-->",
        "<?p i?>", "<?xml version='1.0'?>", "<![CDATA[<]]>", " ", "urn:new", "", "--", "q",
    ]
)  # fmt: skip
SELECTORS = st.sampled_from(
    [
        "doc", "doc/note[1]", "doc/note[2]/@id", "doc/empty", "doc/namespace::q", "*/*[1]",
        "doc/comment()", "doc/note[3]/processing-instruction()", "doc/note[2]/text()[1]",
        "doc/text()[2]", "q:made", "doc/q:x[1]", "doc/x", "doc/@q:a", "comment()",
    ]
)  # fmt: skip
KINDS = st.sampled_from(
    ["", " type='@k'", " type='@q:a'", " type='namespace::q'", " type='namespace::xml'",
     " pos='before'", " pos='after'", " pos='prepend'", " ws='both'", " ws='after'"]
)  # fmt: skip
OPERATIONS = st.tuples(
    st.sampled_from(["add", "replace", "remove"]), SELECTORS, KINDS, st.lists(PIECES, max_size=3)
).map(lambda item: f'<{item[0]} sel="{item[1]}"{item[2]}>{"".join(item[3])}</{item[0]}>')


@settings(max_examples=300)
@given(st.lists(OPERATIONS, max_size=4), st.sampled_from(["", " xmlns='urn:d'"]))
def test_a_result_is_well_formed_or_there_is_none(operations: list[str], default: str) -> None:
    patch = f"<d xmlns:q='urn:q'{default}>{''.join(operations)}</d>".encode()
    with suppress(PatchError):
        etree.fromstring(patched(DOCUMENT, patch))
