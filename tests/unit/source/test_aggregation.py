"""What an aggregator may say of a copy, from what the upstream entry says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.mirror_state.rows import EntryLink
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.entries import Link
from resourcesync.source.republished_links import UpstreamEntry, republished_links

OURS = (Digest("sha-256", "a" * 64),)
SAME, OTHER = "sha-256:" + "a" * 64, "sha-256:" + "b" * 64
HERE = {"http://up/meta": "http://mine/meta"}
ORIGIN = EntryLink("via", "http://origin/x", "text/html", SAME, 3, 1_000_000)


def told(*links: EntryLink) -> tuple[Link, ...]:
    upstream = UpstreamEntry(uri="http://up/x", modified=2_000_000, hash=SAME, links=links)
    return republished_links(upstream, 3, OURS, HERE.get, all_hops=False)


def plain(rel: str, href: str) -> EntryLink:
    return EntryLink(rel, href, "text/xml", OTHER, 9, 1)


@pytest.mark.parametrize(
    "wrong", [ORIGIN._replace(hash=OTHER), ORIGIN._replace(length=4), ORIGIN._replace(hash="md5:x")]
)
def test_a_hop_that_tells_of_other_bytes_is_told_without_what_it_says_of_them(
    wrong: EntryLink,
) -> None:
    assert told(wrong) == (Link(rel="via", href="http://origin/x"),)


@pytest.mark.parametrize(
    ("link", "href"),
    [
        (plain("describedby", "http://up/meta"), "http://mine/meta"),
        (plain("describedby", "http://up/far"), "http://up/far"),
        (plain("describes", "http://up/far"), "http://up/far"),
        (plain("profile", "http://up/meta"), "http://up/meta"),
        (plain("license", "http://far/by"), "http://far/by"),
        (plain("collection", "http://up/meta"), "http://mine/meta"),
        (plain("collection", "http://up/far"), None),
        (plain("alternate", "http://up/meta"), "http://mine/meta"),
        (plain("alternate", "http://up/far"), None),
        (plain("canonical", "http://up/meta"), None),
    ],
)
def test_a_link_is_kept_where_it_is_true_of_our_copy(link: EntryLink, href: str | None) -> None:
    expected = () if href is None else (Link(rel=link.rel, href=href, media_type="text/xml"),)
    assert told(link)[1:] == expected


RELATIONS = st.sampled_from(
    ["via", "describedby", "describes", "profile", "collection", "alternate", "license", "memento",
     "timegate", "duplicate", "canonical", "http://www.openarchives.org/rs/terms/patch", "next"]
)  # fmt: skip


@given(st.lists(st.builds(plain, RELATIONS, st.sampled_from([*HERE, "http://far/1"])), max_size=9))
def test_there_is_one_via_and_no_link_claims_bytes_that_are_not_ours(
    links: list[EntryLink],
) -> None:
    made = told(*links)
    assert [link.rel for link in made].count("via") == 1
    assert all(link.digests in ((), parse_digests(SAME)) for link in made)
    assert {link.rel for link in made} <= {
        "via", "describedby", "describes", "profile", "collection", "alternate", "license"
    }  # fmt: skip
