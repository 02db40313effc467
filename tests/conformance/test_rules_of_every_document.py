"""The rules for every document, held by everything that we publish (§6, §7)."""

import re
import xml.etree.ElementTree as ET
from urllib.parse import urlsplit

import pytest

from tests.support.sources.published import (
    DESCRIPTION,
    SITEMAP,
    TERMS,
    Entry,
    Published,
    entries_of,
    everything,
    of,
    sites,
    times,
)

DIGEST_LENGTHS = {"md5": 32, "sha-1": 40, "sha-224": 56, "sha-256": 64, "sha-384": 96}
KNOWN = {"description", "capabilitylist", "resourcelist", "changelist"}
ATTRIBUTES = {
    *("capability", "at", "completed", "from", "until", "datetime", "change"),
    *("hash", "length", "type", "encoding", "path", "href", "rel", "pri", "modified"),
}


def all_entries() -> list[Entry]:
    return [entry for document in everything() for entry in document.entries]


def terms(kind: str) -> list[ET.Element]:
    """Every ``rs:md`` or ``rs:ln``, of roots and of entries."""
    found = [
        element for document in everything() for element in document.root.iter(f"{TERMS}{kind}")
    ]
    assert found
    return found


def with_attribute(name: str) -> list[str]:
    found = [entry.md[name] for entry in all_entries() if name in entry.md]
    assert found
    return found


def capabilities_with(name: str) -> set[str]:
    """The capabilities of the documents whose entries carry an attribute."""
    return {
        published.md["capability"]
        for published in everything()
        for e in published.entries
        if name in e.md
    }


@pytest.mark.conformance("G01")
def test_what_we_publish_is_utf_8_xml_without_a_doctype() -> None:
    for document in everything():
        assert document.content.decode("utf-8").startswith('<?xml version="1.0" encoding="UTF-8"?>')
        assert b"<!" not in document.content


@pytest.mark.conformance("G02", "G03")
def test_roots_are_lists_or_indexes_and_hold_their_own_kind_of_entry() -> None:
    kinds = {f"{SITEMAP}urlset": f"{SITEMAP}url", f"{SITEMAP}sitemapindex": f"{SITEMAP}sitemap"}

    assert {published.root.tag for published in everything()} == set(kinds)
    for document in everything():
        sitemap = [element.tag for element in document.root if element.tag.startswith(SITEMAP)]
        assert set(sitemap) <= {kinds[document.root.tag]}


@pytest.mark.conformance("G04")
def test_all_other_elements_are_in_the_namespace_of_resourcesync() -> None:
    tags = {element.tag for document in everything() for element in document.root.iter()}

    assert {tag for tag in tags if not tag.startswith(SITEMAP)} == {f"{TERMS}md", f"{TERMS}ln"}


@pytest.mark.conformance("G05", "G06", "G07")
def test_every_root_has_one_md_that_names_a_known_capability() -> None:
    for document in everything():
        assert len(document.root.findall(f"{TERMS}md")) == 1
    assert {published.md["capability"] for published in everything()} == KNOWN


@pytest.mark.conformance("G08", "CA08")
def test_a_document_has_the_capability_that_was_announced() -> None:
    for site in sites():
        announced = [
            (e, published)
            for published in site.values()
            for e in published.entries
            if "capability" in e.md
        ]
        assert len(announced) == 3
        for entry, document in announced:
            assert site[entry.loc].md["capability"] == entry.md["capability"]
            assert site[entry.loc].link("up") == document.uri


@pytest.mark.conformance("G09", "G10")
def test_attributes_are_those_of_resourcesync_without_a_prefix() -> None:
    used = {name for kind in ("md", "ln") for term in terms(kind) for name in term.attrib}

    assert used <= ATTRIBUTES


@pytest.mark.conformance("G11", "G12", "G14", "G15")
def test_an_entry_has_one_address_and_nothing_twice() -> None:
    for entry in all_entries():
        children = [element.tag for element in entry.element]
        assert entry.element.attrib == {}
        assert children.count(f"{SITEMAP}loc") == 1
        assert entry.loc
        for tag in (f"{SITEMAP}lastmod", f"{SITEMAP}changefreq", f"{TERMS}md"):
            assert children.count(tag) <= 1


@pytest.mark.conformance("G13")
def test_addresses_are_absolute_and_short_and_have_no_fragment() -> None:
    for entry in all_entries():
        parts = urlsplit(entry.loc)
        assert parts.scheme == "https"
        assert parts.netloc
        assert "#" not in entry.loc
        assert len(entry.loc) < 2048


@pytest.mark.conformance("G17", "G18")
def test_times_are_in_utc_to_the_second_or_finer() -> None:
    told = [time for document in everything() for time in times(document)]

    assert len(told) > 50
    assert [
        name for name in told if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", name)
    ] == []


@pytest.mark.conformance("G21")
def test_an_index_lists_no_index() -> None:
    for site in sites():
        for index in [published for published in site.values() if published.is_index]:
            assert [site[entry.loc].is_index for entry in index.entries] == [False] * len(
                index.entries
            )
    assert of("changelist", index=True)


@pytest.mark.conformance("G22")
def test_elements_come_in_the_order_of_the_schema() -> None:
    inside = [f"{SITEMAP}loc", f"{SITEMAP}lastmod", f"{TERMS}md", f"{TERMS}ln"]
    for document in everything():
        own = [element.tag.startswith(TERMS) for element in document.root]
        assert own == sorted(own, reverse=True)
        for entry in document.entries:
            order = [inside.index(element.tag) for element in entry.element]
            assert order == sorted(order)


@pytest.mark.conformance("G23", "G24", "G41", "G42")
def test_links_say_where_they_lead_and_why_and_none_is_given_twice() -> None:
    for link in terms("ln"):
        assert set(link.attrib) == {"href", "rel"}
        assert link.attrib["href"].startswith("https://")
        assert link.attrib["rel"] in {"up", "index", "describedby"}
    for document in everything():
        rels = [element.get("rel") for element in document.root.findall(f"{TERMS}ln")]
        assert len(rels) == len(set(rels))


@pytest.mark.conformance("G26", "G27", "G28", "G29", "G30")
def test_lengths_hashes_and_types_have_their_form() -> None:
    for length in with_attribute("length"):
        assert re.fullmatch(r"0|[1-9]\d*", length)
    for value in with_attribute("hash"):
        pairs = [name.split(":") for name in value.split()]
        assert pairs
        assert len({algorithm for algorithm, _ in pairs}) == len(pairs)
        for algorithm, digest in pairs:
            assert re.fullmatch(f"[0-9a-f]{{{DIGEST_LENGTHS[algorithm]}}}", digest)
    for media_type in with_attribute("type"):
        assert re.fullmatch(r"[\w.+-]+/[\w.+-]+", media_type)


@pytest.mark.conformance("G31", "G32", "G33", "G34", "G35", "G36")
def test_attributes_of_one_kind_of_document_stand_in_no_other() -> None:
    assert capabilities_with("path") == set()
    assert capabilities_with("modified") == set()
    assert capabilities_with("change") == {"changelist"}
    assert capabilities_with("datetime") == {"changelist"}
    assert capabilities_with("capability") == {"description", "capabilitylist"}
    assert {entry.md["change"] for _, entry in entries_of("changelist")} == {
        "created",
        "updated",
        "deleted",
    }


def attributes(document: Published) -> set[str]:
    return {*document.md, *(name for entry in document.entries for name in entry.md)}


@pytest.mark.conformance("G37", "G38")
def test_moments_belong_to_lists_of_resources_and_intervals_to_lists_of_changes() -> None:
    for document in (*of("changelist"), *of("changelist", index=True)):
        assert not attributes(document) & {"at", "completed"}
    for document in (*of("resourcelist"), *of("resourcelist", index=True)):
        assert not attributes(document) & {"from", "until"}


@pytest.mark.conformance("G40")
def test_an_interval_that_ends_has_begun_before() -> None:
    marks = [published.md for published in of("changelist")]
    marks += [entry.md for _, entry in entries_of("changelist", index=True)]
    closed = [mark for mark in marks if "until" in mark]

    assert closed
    assert [fields for fields in closed if not fields["from"] <= fields["until"]] == []


@pytest.mark.conformance("G43")
def test_going_up_leads_to_the_source_description() -> None:
    for site in sites():
        for document in site.values():
            steps = []
            here = document
            while (above := here.link("up")) is not None:
                steps.append(above)
                here = site[above]
                assert len(steps) < 4
            assert here.uri == DESCRIPTION
