"""XML Patch: what lxml writes again byte for byte is patched, and everything else is refused."""

import io
import sys

import pytest

from resourcesync.app import plugins
from resourcesync.documents.patches.xml_patch import apply
from resourcesync.errors import PatchError

DOCUMENT = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<!-- head -->\n'
    b'<doc a="1">\n  <!-- <note> -->\n  <note id="n1">first</note>\n'
    b'  <note id="n2">second <b/> tail</note><empty/>\n  '
    b'<note id="n3"><?x <note>?></note>\n</doc>\n'
)


def patched(document: bytes, patch: bytes, limit: int = 1 << 20) -> bytes:
    result = io.BytesIO()
    apply(io.BytesIO(document), io.BytesIO(patch), result, limit)
    return result.getvalue()


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
        (b'<add sel="/doc" pos="prepend"><x/></add>', b'a="1">', b'a="1"><x/>'),
        (b'<add sel="/doc" pos="prepend">t</add>', b'a="1">', b'a="1">t'),
        (b'<add sel="doc/note[2]" pos="before"><x/></add>', b'<note id="n2"', b'<x/><note id="n2"'),
        (b'<add sel="doc/note[2]" pos="after">t</add>', b"</note><empty/>", b"</note>t<empty/>"),
        (b'<add sel="doc/note[1]" pos="after"><x/>t</add>', b"first</note>", b"first</note><x/>t"),
        (
            b'<add sel="doc/empty">a<x/>b<!--c--></add>',
            b"<empty/>",
            b"<empty>a<x/>b<!--c--></empty>",
        ),
        (b'<add sel="doc/*[2]" type="@k">v"v</add>', b'"n2">', b'"n2" k="v&quot;v">'),
        (b'<add sel="doc/empty" type="@xml:lang">de</add>', b"<empty/>", b'<empty xml:lang="de"/>'),
        (b'<replace sel="doc/note[1]"> <n/> </replace>', b'<note id="n1">first</note>', b"<n/>"),
        (b'<replace sel="doc/note[1]/@id">n&apos;9</replace>', b'"n1"', b'"n\'9"'),
        (b'<replace sel="doc/note[1]/text()">1st</replace>', b">first<", b">1st<"),
        (b"<replace sel=\"doc/note[@id='n2']/text()[2]\">!</replace>", b" tail", b"!"),
        (b'<remove sel="doc/note[@id=&quot;n1&quot;]"/>', b'<note id="n1">first</note>', b""),
        (b'<remove sel="doc/note[1]" ws="after"/>', b'<note id="n1">first</note>\n  ', b""),
        (b'<remove sel="doc/note[1]" ws="before"/>', b'\n  <note id="n1">first</note>', b""),
        (b'<remove sel="doc/comment()" ws="both"/>', b"\n  <!-- <note> -->\n  ", b""),
        (b'<replace sel="/doc/comment()"> <!--x--> </replace>', b"<!-- <note> -->", b"<!--x-->"),
        (b'<add sel="doc/comment()" pos="after"><a/></add>', b"> -->", b"> --><a/>"),
        (b'<remove sel="doc/note[3]/processing-instruction()"/>', b"><?x <note>?></note>", b"/>"),
        (
            b"<replace sel=\"doc/note[3]/processing-instruction('x')[1]\"><?y?></replace>",
            b"<?x <note>?>",
            b"<?y?>",
        ),
        (b'<remove sel="doc/note[2]/@id"/>', b' id="n2"', b""),
        (b'<remove sel="doc/note[2]/text()[1]"/>', b"second ", b""),
        (b"<remove sel=\"doc/note[@id='n2'][1]/b\"/>", b"<b/>", b""),
    ],
)
def test_an_operation_changes_its_place_and_no_other_byte(
    operation: bytes, old: bytes, new: bytes
) -> None:
    assert DOCUMENT.count(old) == 1
    assert one(DOCUMENT, operation) == DOCUMENT.replace(old, new)


def test_names_are_compared_with_their_namespaces_and_content_keeps_them() -> None:
    document = b'<r xmlns="urn:a" xmlns:b="urn:b"><x/><b:x b:k="1"/></r>'
    patch = (
        b'<d xmlns:q="urn:b" xmlns="urn:a"><remove sel="r/q:x[@q:k=\'1\']"/>'
        b'<add sel="r"><q:z q:k="2"/><y/></add><add sel="r/x" type="@q:k">3</add></d>'
    )
    assert patched(document, patch) == (
        b'<r xmlns="urn:a" xmlns:b="urn:b"><x b:k="3"/><b:z b:k="2"/><y/></r>'
    )


@pytest.mark.parametrize(
    "operation",
    [
        b'<remove sel="doc"/>',
        b'<remove sel="doc/note"/>',
        b'<remove sel="doc/note[4]"/>',
        b'<remove sel="other/note[1]"/>',
        b'<remove sel="doc/note[1]/@gone"/>',
        b'<remove sel="doc//note[1]"/>',
        b"<remove sel=\"id('n1')\"/>",
        b'<remove sel="doc/note[last()]"/>',
        b'<remove sel="doc/note[count(//*)]"/>',
        b'<remove sel="doc/comment()/x"/>',
        b'<remove sel="comment()"/>',
        b'<remove sel="doc/note[2]/text()"/>',
        b'<remove sel="doc/namespace::k"/>',
        b'<remove sel="doc/note[1]" ws="all"/>',
        b'<remove sel="doc/note[2]" ws="after"/>',
        b'<remove sel="doc/note[2]/b" ws="before"/>',
        b'<remove sel="doc/note[2]/@id" ws="before"/>',
        b'<remove sel="p:doc"/>',
        b'<remove sel="' + b"/*" * 101 + b'"/>',
        b'<remove sel=""/>',
        b"<remove/>",
        b'<add sel="doc/note[1]/@id">x</add>',
        b'<add sel="doc/note[1]" type="@id">x</add>',
        b'<add sel="doc/note[1]" type="@k"><x/></add>',
        b'<add sel="doc/note[1]" type="@k" pos="after">x</add>',
        b'<add sel="doc/note[1]" type="namespace::k">urn:k</add>',
        b'<add sel="doc/note[1]" type="@q:k">v</add>',
        b'<add xmlns:q="urn:q" sel="doc/note[1]" type="@q:k">v</add>',
        b'<add sel="doc/comment()">x</add>',
        b'<add sel="doc" pos="before"><x/></add>',
        b'<add sel="doc/note[1]" pos="inside">x</add>',
        b'<replace sel="doc"><x/></replace>',
        b'<replace sel="doc/empty"><x/><y/></replace>',
        b'<replace sel="doc/empty"/>',
        b'<replace sel="doc/comment()"> </replace>',
        b'<replace sel="doc/note[1]/text()"><x/></replace>',
        b'<move sel="doc/note[1]"/>',
    ],
)
def test_what_does_not_fit_or_is_not_followed_is_refused(operation: bytes) -> None:
    with pytest.raises(PatchError, match="operation 1 of the XML Patch"):
        one(DOCUMENT, operation)


@pytest.mark.parametrize(
    "bad",
    [
        b'<!DOCTYPE doc [<!ENTITY e "x">]><doc><note/></doc>',
        b'<!DOCTYPE doc SYSTEM "http://127.0.0.1:9/x.dtd"><doc><note/></doc>',
        b'<?xml version="1.0" encoding="iso-8859-1"?><doc><note/></doc>',
        b"<doc><note/>",
        b"<doc><note/></doc><doc/>",
        b"<doc><note/>\xff</doc>",
        b"<doc>" + b"<a>" * 2_000 + b"</a>" * 2_000 + b"<note/></doc>",
        b"",
    ],
)
def test_hostile_xml_is_refused_as_version_before_and_as_patch(bad: bytes) -> None:
    with pytest.raises(PatchError):
        one(bad, b'<remove sel="doc/note"/>')
    with pytest.raises(PatchError):
        patched(DOCUMENT, bad)


@pytest.mark.parametrize("bad", [b"<doc  a='1'/>", b"<doc></doc>", b"<doc>\r\n</doc>"])
def test_a_version_that_lxml_writes_in_another_way_is_not_patched(bad: bytes) -> None:
    with pytest.raises(PatchError, match="not written as lxml writes it"):
        one(bad, b'<add sel="doc"><x/></add>')


def test_reading_a_large_document_again_and_again_ends_at_a_budget() -> None:
    document = b"<d>" + b"<a>text</a>" * 300_000 + b"</d>"
    patch = b"<p>" + b'<add sel="d" type="@k">v</add><remove sel="d/@k"/>' * 40 + b"</p>"
    with pytest.raises(PatchError, match="too many operations"):
        patched(document, patch, 1 << 23)


def test_a_result_over_the_limit_is_not_written() -> None:
    result = io.BytesIO()
    patch = io.BytesIO(b'<p><add sel="d">xxxxxxxxxxxxxx</add></p>')
    with pytest.raises(PatchError, match="longer than listed"):
        apply(io.BytesIO(b"<d/>"), patch, result, 10)
    assert result.getvalue() == b""


def test_without_lxml_the_format_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "application/xml-patch+xml" in plugins.patch_formats()
    monkeypatch.setitem(sys.modules, "lxml", None)

    assert {*plugins.patch_formats()} == {"application/json-patch+json", "application/json-patch"}
