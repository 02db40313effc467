"""XML Patch does what RFC 5261 shows, and what it puts in keeps its namespaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from resourcesync.errors import PatchError
from tests.support.documents.text import patched

# --- the structures of the examples in appendix A of RFC 5261, with data of our own ---------------

TEA = '<menu><tea id="t1">Assam</tea></menu>'
LONG = '<menu>\n  <tea kind="1">Assam</tea>\n  <!-- hot --><?brew min="3"?>\n  <tea/>\n</menu>'
SPACED = '<menu>\n  <tea n="1">\n    <!-- hot -->\n  </tea>\n  <cup xmlns:q="urn:q"/>\n</menu>'
NAMED = (
    '<menu xmlns="urn:menu" xmlns:z="urn:shop">\n  <note>old</note>\n'
    '  <tea kind="green"><leaf/></tea>\n  <tea kind="black">\n    <z:leaf/>\n  </tea>\n</menu>'
)


@pytest.mark.parametrize(
    ("before", "operations", "after"),
    [
        pytest.param(*item[1:], id=item[0])
        for item in [
            (
                "1 an element",
                TEA,
                '<add sel="menu"><cup id="c1">small</cup></add>',
                '<menu><tea id="t1">Assam</tea><cup id="c1">small</cup></menu>',
            ),
            (
                "2 an attribute",
                TEA,
                '<add sel="menu/tea[@id=\'t1\']" type="@by">Ann</add>',
                '<menu><tea id="t1" by="Ann">Assam</tea></menu>',
            ),
            (
                "3 a namespace",
                TEA,
                '<add sel="menu" type="namespace::shop">urn:shop</add>',
                '<menu xmlns:shop="urn:shop"><tea id="t1">Assam</tea></menu>',
            ),
            (
                "4 a comment",
                TEA,
                '<add sel="menu/tea[@id=\'t1\']" pos="before"><!-- hot --></add>',
                '<menu><!-- hot --><tea id="t1">Assam</tea></menu>',
            ),
            (
                "5 an instruction",
                TEA,
                '<add sel="menu" pos="before"><?brew min="3"?></add>',
                '<?brew min="3"?><menu><tea id="t1">Assam</tea></menu>',
            ),
            (
                "6 several nodes",
                '<menu><tea id="t1"/></menu>',
                "<add sel=\"menu/tea[@id='t1']\">\n <!-- hot -->\n <cup>a\n </cup></add>",
                '<menu><tea id="t1">\n <!-- hot -->\n <cup>a\n </cup></tea></menu>',
            ),
            (
                "7 an element for another",
                LONG,
                '<replace sel="menu/tea[@kind=\'1\']"><cup kind="2"/></replace>',
                LONG.replace('<tea kind="1">Assam</tea>', '<cup kind="2"/>'),
            ),
            (
                "8 the value of an attribute",
                LONG,
                '<replace sel="menu/tea[1]/@kind">x y</replace>',
                LONG.replace('"1"', '"x y"'),
            ),
            (
                "9 the URI of a namespace",
                SPACED,
                '<replace sel="menu/cup/namespace::q">urn:new</replace>',
                SPACED.replace("urn:q", "urn:new"),
            ),
            (
                "10 a comment for another",
                LONG,
                '<replace sel="menu/comment()[1]"><!-- cold --></replace>',
                LONG.replace("hot", "cold"),
            ),
            (
                "11 an instruction for another",
                LONG,
                '<replace sel=\'menu/processing-instruction("brew")\'><?brew max="5"?></replace>',
                LONG.replace("min", "max").replace("3", "5"),
            ),
            (
                "12 a text for another",
                LONG,
                '<replace sel="menu/tea[1]/text()[1]">Ceylon</replace>',
                LONG.replace("Assam", "Ceylon"),
            ),
            (
                "13 no element, and no white space after it",
                LONG,
                '<remove sel="menu/tea[@kind=\'1\']" ws="after"/>',
                LONG.replace('<tea kind="1">Assam</tea>\n  ', ""),
            ),
            (
                "14 no attribute",
                LONG,
                '<remove sel="menu/tea[1]/@kind"/>',
                LONG.replace(' kind="1"', ""),
            ),
            (
                "15 no namespace",
                SPACED,
                '<remove sel="menu/cup/namespace::q"/>',
                SPACED.replace(' xmlns:q="urn:q"', ""),
            ),
            (
                "16 no comment",
                LONG,
                '<remove sel="menu/comment()[1]"/>',
                LONG.replace("<!-- hot -->", ""),
            ),
            (
                "17 no instruction",
                LONG,
                "<remove sel=\"menu/processing-instruction('brew')\"/>",
                LONG.replace('<?brew min="3"?>', ""),
            ),
            (
                "17 no text",
                LONG,
                '<remove sel="menu/tea[1]/text()[1]"/>',
                LONG.replace("Assam", ""),
            ),
            (
                "18 several operations with namespaces",
                NAMED,
                (
                    '<p:add sel="*/tea[@kind=\'green\']"><!-- new --><leaf id="l"><y:cup/></leaf>'
                    '</p:add><p:replace sel="menu/note/text()">new</p:replace>'
                    '<p:remove sel="*/tea[@kind=\'black\']/y:leaf" ws="both"/>'
                    '<p:add sel="*/tea[@kind=\'black\']" type="@by">Ann</p:add>'
                ),
                NAMED.replace("<leaf/>", '<leaf/><!-- new --><leaf id="l"><z:cup/></leaf>')
                .replace("old", "new")
                .replace('kind="black">\n    <z:leaf/>\n  ', 'kind="black" by="Ann">'),
            ),
        ]
    ],
)
def test_what_the_standard_shows_is_done(before: str, operations: str, after: str) -> None:
    own = (
        "<diff>"
        if "<p:" not in operations
        else ('<p:diff xmlns="urn:menu" xmlns:y="urn:shop" xmlns:p="urn:ietf:params:xml:ns:diff">')
    )
    patch = f"{own}{operations}</{own[1:].partition(' ')[0].rstrip('>')}>"

    assert patched(before.encode(), patch.encode()).decode() == after


# --- namespaces ---


@pytest.mark.parametrize(
    ("place", "scope", "content", "put"),
    [
        ("<r/>", 'xmlns:a="urn:a"', "<a:x/>", '<a:x xmlns:a="urn:a"/>'),
        ("<r/>", 'xmlns="urn:a"', "<x><y/></x>", '<x xmlns="urn:a"><y/></x>'),
        ('<r xmlns:a="urn:a"/>', 'xmlns:a="urn:a"', "<a:x></a:x >", "<a:x></a:x >"),
        ('<r xmlns:b="urn:a"/>', 'xmlns:a="urn:a"', "<a:x>t</a:x >", "<b:x>t</b:x>"),
        ('<r xmlns="urn:a"/>', 'xmlns:a="urn:a"', "<a:x a:k='1'/>", "<x a:k='1'/>"),
        ('<r xmlns="urn:a"/>', "", "<x/>", '<x xmlns=""/>'),
        ('<r xmlns:b="urn:a"/>', 'xmlns="urn:a"', "<x k='1'/>", "<b:x k='1'/>"),
        (
            "<r/>",
            'xmlns:a="urn:a"',
            "<a:x/>t<a:y/>",
            '<a:x xmlns:a="urn:a"/>t<a:y xmlns:a="urn:a"/>',
        ),
        ("<r/>", 'xmlns:a="urn:a"', "<x xmlns:a='urn:b'><a:y/></x>", None),
        ('<r xmlns:a="urn:b"/>', 'xmlns:a="urn:a" xmlns:b="urn:b"', "<b:y a:k=''/>", None),
    ],
)
def test_what_is_put_in_keeps_its_namespaces(
    place: str, scope: str, content: str, put: str | None
) -> None:
    patch = f'<d><add sel="*" {scope}>{content}</add></d>'

    result = patched(place.encode(), patch.encode()).decode()

    assert names_in(result) == names_in(f"<w {scope}>{content}</w>")
    if put is not None and "a:k" not in put:
        assert f">{put}</r>" in result


def names_in(text: str) -> list[tuple[str, dict[str, str]]]:
    """All that is in a document, by names with their namespaces."""
    inner = list(etree.fromstring(text).iter("*"))[1:]
    return [(str(item.tag), {str(k): str(v) for k, v in item.attrib.items()}) for item in inner]


PREFIXES = st.sampled_from(["", "a", "b", "c"])
BINDINGS = st.dictionaries(PREFIXES, st.sampled_from(["urn:1", "urn:2", "urn:3"]), max_size=3)


@st.composite
def elements(draw: st.DrawFn, bound: frozenset[str], depth: int = 0) -> str:
    own = draw(BINDINGS) if draw(st.integers(0, 3)) == 0 else {}
    usable = sorted(bound | own.keys() | {""})
    prefix = draw(st.sampled_from(usable))
    attribute = draw(st.sampled_from(usable))
    name = f"{prefix}{prefix and ':'}{draw(st.sampled_from('xy'))}"
    bindings = "".join(f' xmlns{name and ":"}{name}="{own[name]}"' for name in own)
    head = f"<{name}{bindings} {attribute}{attribute and ':'}k='{depth}'"
    count = draw(st.integers(0, 2)) if depth < 2 else 0
    inner = [draw(elements(bound | own.keys(), depth + 1)) for _ in range(count)]
    if not inner and draw(st.booleans()):
        return f"{head}/>"
    return f"{head}>{'t'.join(inner)}</{name}>"


@given(target=BINDINGS, scope=BINDINGS, data=st.data())
def test_whatever_is_bound_to_what_names_mean_the_same_after_a_patch(
    target: dict[str, str], scope: dict[str, str], data: st.DataObject
) -> None:
    def bound(bindings: dict[str, str]) -> str:
        return "".join(f' xmlns{name and ":"}{name}="{uri}"' for name, uri in bindings.items())

    content = data.draw(elements(frozenset(scope)))
    document = f"<r{bound(target)}><!--c--><old/></r>"
    operation = data.draw(
        st.sampled_from(
            [
                "<p:add sel='*'{}>{}</p:add>",
                "<p:add sel='*/comment()' pos='before'{}>{}</p:add>",
                "<p:replace sel='*/*[1]'{}>{}</p:replace>",
            ]
        )
    )
    patch = f"<p:d xmlns:p='urn:p'>{operation.format(bound(scope), content)}</p:d>"

    result = patched(document.encode(), patch.encode()).decode()

    wanted = names_in(f"<w{bound(scope)}>{content}</w>")
    found = [item for item in names_in(result) if not item[0].endswith("old")]
    assert found == wanted


@given(target=BINDINGS, prefix=st.sampled_from("abc"), uri=st.sampled_from(["urn:1", "urn:2"]))
def test_an_attribute_that_is_added_keeps_its_namespace_or_is_refused(
    target: dict[str, str], prefix: str, uri: str
) -> None:
    bound = "".join(f' xmlns{name and ":"}{name}="{text}"' for name, text in target.items())
    patch = f"<d><add sel='*' type='@{prefix}:k' xmlns:{prefix}='{uri}'>v</add></d>"
    try:
        result = patched(f"<r{bound}/>".encode(), patch.encode())
    except PatchError:
        assert prefix in target
        assert uri not in {text for name, text in target.items() if name}
        return
    assert dict(etree.fromstring(result).attrib) == {f"{{{uri}}}k": "v"}
    again = (
        patch.replace("add", "replace", 2).replace("'*'", f"'*/@{prefix}:k'").replace("v<", "w<")
    )
    assert b'k="w"' in patched(result, again.encode())
