"""The rules of the standard, held by everything that we publish (§6-§10, §12)."""

import itertools
from datetime import datetime

import pytest

from resourcesync.source.paging import PageLimits
from resourcesync.validator.cross_document import judge_together
from resourcesync.validator.examination import Examination
from tests.support.sources.published import (
    DESCRIPTION,
    entries_of,
    large_site,
    of,
    site_of,
    sites,
    small_site,
)
from tests.support.sources.publishing import Source


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.conformance("G01", "G02", "G03", "G04", "G05", "G06", "G07", "G08", "G09", "G10")
@pytest.mark.conformance("G11", "G12", "G13", "G14", "G15", "G17", "G18", "G21", "G22", "G23")
@pytest.mark.conformance("G24", "G26", "G27", "G28", "G29", "G30", "G31", "G32", "G33", "G34")
@pytest.mark.conformance("G35", "G36", "G37", "G38", "G40", "G41", "G42", "G43")
@pytest.mark.conformance("SD04", "SD05", "SD07", "SD11", "SD12")
@pytest.mark.conformance("CA01", "CA07", "CA08")
@pytest.mark.conformance("RL01", "RL02", "RL04", "RI01", "RI02", "RI03", "RI04", "RI06")
@pytest.mark.conformance("CH03", "CH09", "CH12", "CH13", "CI04", "CI07")
def test_no_document_breaks_a_rule_alone_or_beside_the_others() -> None:
    for site in sites():
        examined = [Examination([found.content], uri=uri) for uri, found in site.items()]
        assert [finding for examination in examined for finding in examination] == []
        summaries = [examination.summary for examination in examined]
        together = [finding.rule.id for finding in judge_together(summaries, whole_source=True)]
        assert together == ["SD08"]  # the test's Source lives in a folder, not at its host's top


@pytest.mark.founding("0.9 §9.3.1", "A Description stands at the well-known address", "`publish`")
@pytest.mark.conformance("SD01", "SD03", "SD08", "SD09")
def test_every_source_has_one_description_at_the_well_known_address() -> None:
    for site in sites():
        found = [
            published for published in site.values() if published.md["capability"] == "description"
        ]
        assert [published.uri for published in found] == [DESCRIPTION]
        assert found[0].link("up") is None


@pytest.mark.founding("0.9 §9.2", "A Capability List has one entry per capability", "`publish`")
@pytest.mark.conformance("CA03", "CA04", "CA05", "CA06", "CA10")
def test_a_capability_list_names_each_capability_once() -> None:
    for document in of("capabilitylist"):
        named = [entry.md["capability"] for entry in document.entries]
        assert sorted(named) == ["changelist", "resourcelist"]
        assert [entry.lastmod for entry in document.entries] == [None, None]


@pytest.mark.founding("0.9 §4.2", "Parts lead to their Resource List Index", "`publish`")
@pytest.mark.conformance("RL03", "RI05")
def test_parts_of_a_resource_list_point_back_to_their_index() -> None:
    (index,) = of("resourcelist", index=True)
    parts = [large_site()[entry.loc] for entry in index.entries]

    assert len(parts) > 1
    assert {part.link("index") for part in parts} == {index.uri}
    assert {part.md["capability"] for part in parts} == {"resourcelist"}
    (whole,) = (
        published
        for published in small_site().values()
        if published.md["capability"] == "resourcelist"
    )
    assert whole.link("index") is None


@pytest.mark.founding("0.9 §4.1", "Each resource has time, hash and length", "`publish`")
@pytest.mark.conformance("RL05", "RL06", "RL07")
def test_a_listed_resource_says_enough_for_an_audit_and_nothing_of_a_change() -> None:
    for document, entry in entries_of("resourcelist"):
        assert entry.lastmod is not None
        assert moment(entry.lastmod) <= moment(document.md["at"])
        assert {"hash", "length"} <= set(entry.md) <= {"hash", "length", "type"}


@pytest.mark.founding("0.9 §6.1", "A Change List Index groups Change Lists", "`publish`")
@pytest.mark.conformance("CH01", "CH02", "CI01")
def test_a_change_list_tells_its_beginning_and_points_up() -> None:
    (index,) = of("changelist", index=True)
    for document in (*of("changelist"), index):
        assert moment(document.md["from"]).tzinfo is not None
        assert (document.link("up") or "").endswith("/capabilitylist.xml")
    parts = [large_site()[entry.loc] for entry in index.entries]
    assert len(parts) > 2
    assert {part.link("index") for part in parts} == {index.uri}


@pytest.mark.founding(
    "0.9 §6.1", "Changes are listed oldest first, within the interval", "`publish`"
)
@pytest.mark.conformance("CH05", "CH06", "CH08")
def test_changes_come_in_order_of_time_and_lie_in_the_interval_of_their_list() -> None:
    for document in of("changelist"):
        told = [moment(entry.md["datetime"]) for entry in document.entries]
        assert told
        assert all(moment < other for moment, other in itertools.pairwise(told))
        assert moment(document.md["from"]) <= told[0]
        if "until" in document.md:
            assert told[-1] <= moment(document.md["until"])


@pytest.mark.conformance("CH10", "CH11")
def test_a_closed_list_never_changes_and_an_open_one_only_grows() -> None:
    source = Source(limits=PageLimits(max_entries=3))
    source.publish()
    before = site_of(source)
    closed = grown = 0
    for number in range(12):
        source.put(f"n{number}", "a", content=str(number))
        source.publish()
        now = site_of(source)
        for uri, document in before.items():
            if document.md["capability"] != "changelist" or document.is_index:
                continue
            if "until" in document.md:
                closed += 1
                assert now[uri].content == document.content
            elif not now[uri].is_index:
                old = [(entry.loc, entry.md) for entry in document.entries]
                new = [(entry.loc, entry.md) for entry in now[uri].entries]
                grown += len(new) > len(old)
                assert new[: len(old)] == old
        before = now

    assert closed > 10
    assert grown > 5


@pytest.mark.founding("D-Lib §2", "Change Lists follow each other without a hole", "`publish`")
@pytest.mark.conformance("CI02", "CI03", "CI05", "CI06", "CI08", "CI09")
def test_the_lists_of_an_index_follow_each_other_and_only_the_last_is_open() -> None:
    (index,) = of("changelist", index=True)
    *closed, last = [entry.md for entry in index.entries]

    assert len(closed) > 1
    assert index.md["from"] == closed[0]["from"]
    assert "until" not in index.md
    assert "until" not in last
    for fields, other in itertools.pairwise([*closed, last]):
        assert fields["from"] < fields["until"] == other["from"]
    lists = {
        published.uri
        for published in large_site().values()
        if published.md["capability"] == "changelist"
    }
    assert lists == {index.uri, *(entry.loc for entry in index.entries)}
