"""Links by rule: where they lead, and which rules are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import Link, Resource
from resourcesync.source.link_rules import LinkedOriginals, links_by_rule, parse_rule
from resourcesync.source.scan_for_changes import scan
from tests.support.in_memory import ManualClock, MemoryOriginals

BASE = "https://library.example/data/"


def links(rule: str, path: str, *there: str) -> list[Link]:
    resource = Resource(uri=BASE + path)
    found = {BASE + name for name in there}
    return list(links_by_rule(resource, [parse_rule(rule)], BASE, found.__contains__))


@pytest.mark.founding(
    "0.9 §8.2", "A Source tells alternate representations", "`--link alternate:…`"
)
@pytest.mark.founding("0.9 §8.2", "A specific URI leads to its generic one", "`--link canonical:…`")
@pytest.mark.founding("0.9 §8.6", "A resource tells its collection", "`--link collection:…`")
@pytest.mark.parametrize(
    ("rule", "found"),
    [
        *(
            (f"describedby:{template} always", Link(rel="describedby", href=href))
            for template, href in (
                ("{path}.xml", BASE + "a/b/c.tar.gz.xml"),
                ("{dir}meta/{name}", BASE + "a/b/meta/c.tar.gz"),
                ("{dir}{stem}.xml", BASE + "a/b/c.tar.xml"),
                ("{stem}{ext}", BASE + "c.tar.gz"),
                ("https://mirror.example/{path}", "https://mirror.example/a/b/c.tar.gz"),
                ("https://gate.example/{uri}", f"https://gate.example/{BASE}a/b/c.tar.gz"),
                ("/top.html", "https://library.example/top.html"),
                ("all.html", BASE + "all.html"),
            )
        ),
        *(  # their addresses are never files
            (f"{relation}:{{stem}}", Link(rel=relation, href=BASE + "c.tar"))
            for relation in ("canonical", "collection")
        ),
        (
            "duplicate:http://m.example/{name} pri=3 type=text/plain",
            Link(
                rel="duplicate",
                href="http://m.example/c.tar.gz",
                media_type="text/plain",
                priority=3,
            ),
        ),
    ],
)
def test_a_rule_says_where_a_link_leads(rule: str, found: Link) -> None:
    assert links(rule, "a/b/c.tar.gz") == [found]


def test_a_link_to_what_is_not_there_is_not_told_unless_it_is_wanted() -> None:
    assert links("describedby:{path}.xml", "a.pdf") == []
    assert len(links("describedby:{path}.xml", "a.pdf", "a.pdf.xml")) == 1
    assert len(links("describedby:{path}.xml always", "a.pdf")) == 1
    assert len(links("describedby:https://elsewhere.example/{path}.xml", "a.pdf")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "describedby",
        "describedby:",
        ":{path}",
        "describedby:{path",
        "describedby:{paths}",
        "describedby:{}",
        "describedby:{0}",
        "describedby:{path.__class__}",
        "describedby:{path!r}",
        "describedby:{path:>9999999}",
        "Described By:{path}",
        "up:{path}",
        "http://www.openarchives.org/rs/terms/patch {path}.patch",
        "describedby:{path}.xml pri=0",
        "describedby:{path}.xml pri=1000000",
        "describedby:{path}.xml type=xml",
        "describedby:{path}.xml only=",
        "describedby:{path}.xml sometimes",
        "http://example.org/rel",
    ],
)
def test_what_is_no_rule_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_rule(text)

    assert "describedby:{path}.xml only=*.pdf" in caught.value.hint


@given(st.text() | st.text("{}: =/.abcdefghilmnopstuvy").map("describedby:".__add__))
def test_any_text_is_a_rule_or_is_refused(text: str) -> None:
    try:
        rule = parse_rule(text)
    except ConfigurationError:
        return
    links_by_rule(Resource(uri=BASE + "a/b.c"), [rule], BASE, lambda _: True)


def test_another_link_is_a_change_of_the_resource_and_another_time_of_equal_bytes_is_none() -> None:
    """Where there is no Resource List, nothing but the Change List tells of it."""
    clock, catalogue = ManualClock(), SourceCatalogue()
    originals = MemoryOriginals(clock)
    originals.put(BASE + "a.pdf", b"same")
    scan(originals, catalogue, clock.now())
    linked = LinkedOriginals(originals, [parse_rule("license:https://license.example/")], BASE)

    first = scan(linked, catalogue, clock.now(), anew=True)
    originals.put(BASE + "a.pdf", b"same")
    second = scan(linked, catalogue, clock.now())

    assert (first.updated, first.touched) == (1, 0)
    assert (second.updated, second.touched) == (0, 1)
    with catalogue.snapshot() as snapshot:
        ((_, change),) = snapshot.changes(after=0)
    assert [link.rel for link in change.resource.links] == ["license"]
