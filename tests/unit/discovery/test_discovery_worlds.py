"""Hosts of any shape: discovery ends, costs a bounded number of requests, and fails by name."""

from hypothesis import given, settings, target
from hypothesis import strategies as st

from resourcesync.discovery.sets import SetChoice, SourceLists
from resourcesync.errors import ResourceSyncError
from tests.support.worlds.discovering import HOST, SITEMAP, WELL_KNOWN, Host, listing
from tests.support.worlds.network import Answer

NAMES = ["/a.xml", "/b.xml", "/c.xml", "/d.xml", "/", "/page"]
PLACES = [*NAMES, WELL_KNOWN, "/robots.txt", "/sitemap.xml"]
FOREIGN = "https://evil.example/x.xml"
KINDS = ["description", "capabilitylist", "resourcelist", "changelist", "resourcedump", ""]
MOST = 60

targets = st.sampled_from([*NAMES, WELL_KNOWN, FOREIGN])
told = st.tuples(st.sampled_from(NAMES), st.sampled_from([*KINDS, "unheard-of"]))
links = st.tuples(st.sampled_from(["up", "index", "resourcesync"]), st.sampled_from(NAMES))


def page_of(wanted: list[str]) -> Answer:
    return Answer(
        body="".join(f"<link rel=resourcesync href='{name}'>" for name in wanted).encode()
    )


def field_of(target: str) -> Answer:
    field = f'<{target}>; rel="resourcesync"'
    return Answer(body=b"<html>", headers={"link": field})


ROBOTS = st.lists(targets, max_size=5).map("\nSitemap: ".join)
documents = st.builds(
    lambda kind, entries, above, index: Answer(
        body=listing(kind, *entries, links=above, index=index)
    ),
    st.sampled_from(KINDS),
    st.lists(told, max_size=4),
    st.lists(links, max_size=3),
    st.booleans(),
)
answers = st.one_of(
    documents,
    documents,
    st.builds(page_of, st.lists(targets, max_size=3)),
    st.builds(field_of, st.sampled_from(NAMES)),
    ROBOTS.map(lambda names: Answer(body=f"Sitemap: {names}".encode())),
    st.sampled_from([Answer(status=status) for status in (403, 404, 503)]),
    st.sampled_from([Answer(body=chunk) for chunk in (b"", b"{}", b"<urlset", SITEMAP)]),
)
worlds = st.dictionaries(st.sampled_from(PLACES), answers, max_size=len(PLACES))
wishes = st.sampled_from(["", "a", "1", f"{HOST}/b.xml"])


def outcome(host: Host, start: str, choice: SetChoice) -> SourceLists | ResourceSyncError:
    try:
        return host.find(start, choice)
    except ResourceSyncError as error:
        return error


@settings(max_examples=150, deadline=None)
@given(worlds, st.sampled_from(["", *NAMES]), wishes)
def test_every_search_ends_soon_and_by_name_and_the_same_whenever_it_is_made(
    world: dict[str, Answer], start: str, wish: str
) -> None:
    host = Host(world)
    choice = SetChoice(requested=wish)

    found = outcome(host, start, choice)

    target(float(len(host.asked)))
    assert len(host.asked) <= MOST
    assert FOREIGN not in host.asked
    again = outcome(host, start, choice)
    if isinstance(found, SourceLists):
        assert FOREIGN not in found.documents
        assert found == again
    else:
        assert (type(found), str(found)) == (type(again), str(again))


@settings(max_examples=75, deadline=None)
@given(worlds, st.sampled_from(["", *NAMES]))
def test_each_set_that_is_offered_can_be_chosen(world: dict[str, Answer], start: str) -> None:
    host = Host(world)
    try:
        offered = host.sets(start)
    except ResourceSyncError:
        return

    assert len(host.asked) <= MOST
    for offered_set in offered:
        found = outcome(host, start, SetChoice(requested=offered_set.uri))
        # The set itself may turn out to be broken; it is never said not to be offered.
        assert isinstance(found, SourceLists) or found.code != "no-such-set"
