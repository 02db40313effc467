"""Which sets a Source offers, what they are called, and which of them is meant."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.discovery.sets import OfferedSet, SetChoice, choose, names_of
from resourcesync.errors import ConfigurationError, SourceNotFoundError
from tests.support.worlds.discovering import HOST, WELL_KNOWN, Host, Said, capability_list, listing

TWO: Said = {
    WELL_KNOWN: listing("description", ("/maps/c.xml", ""), ("/texts/c.xml", ""), about="/about"),
    "/maps/c.xml": capability_list("/maps"),
    "/texts/c.xml": capability_list("/texts"),
}


def offered(*uris: str) -> tuple[OfferedSet, ...]:
    return tuple(OfferedSet(uri=uri) for uri in uris)


@given(st.lists(st.text(max_size=80), max_size=8, unique=True))
def test_names_are_safe_folders_and_no_two_are_alike(paths: list[str]) -> None:
    names = names_of(offered(*(f"{HOST}/{path}" for path in paths)))

    assert len(names) == len(paths)
    assert len({name.lower() for name in names}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,70}", name) for name in names)


@given(st.integers(0, 2), st.sampled_from(["uri", "name", "number"]))
def test_every_set_can_be_chosen_in_every_way(index: int, way: str) -> None:
    sets = offered(f"{HOST}/a/c.xml", f"{HOST}/2/c.xml", f"{HOST}/b/c.xml")
    word = {"uri": sets[index].uri, "name": names_of(sets)[index], "number": str(index + 1)}[way]

    chosen = choose(sets, SetChoice(requested=word), HOST)

    # A name wins over a number: the set called 2 is the second one here by chance.
    assert chosen == sets[index]


def test_the_only_set_below_the_path_that_was_given_is_meant() -> None:
    sets = offered(f"{HOST}/a/resourcesync/c.xml", f"{HOST}/b/resourcesync/c.xml")

    assert names_of(sets) == ("a", "b")
    assert choose(sets, SetChoice(), f"{HOST}/b") == sets[1]
    for address in (HOST, f"{HOST}/", f"{HOST}/a/resourcesync/c", f"{HOST}/c/"):
        with pytest.raises(ConfigurationError):
            choose(sets, SetChoice(), address)
    with pytest.raises(ConfigurationError):
        choose(sets, SetChoice(pinned=f"{HOST}/gone.xml"), f"{HOST}/b")


def test_the_set_followed_so_far_stays_as_long_as_it_is_offered() -> None:
    sets = offered(f"{HOST}/a/c.xml", f"{HOST}/b/c.xml")

    assert choose(sets, SetChoice(pinned=sets[1].uri), HOST) == sets[1]
    with pytest.raises(ConfigurationError):
        choose(sets, SetChoice(pinned=f"{HOST}/gone.xml"), HOST)
    assert choose(sets[:1], SetChoice(pinned=f"{HOST}/gone.xml"), HOST) == sets[0]


def test_no_other_set_takes_the_place_of_one_that_was_chosen() -> None:
    bound = SetChoice(pinned=f"{HOST}/gone.xml", is_bound=True)

    for sets in (offered(f"{HOST}/a/c.xml"), offered(f"{HOST}/a/c.xml", f"{HOST}/b/c.xml")):
        with pytest.raises(ConfigurationError) as caught:
            choose(sets, bound, HOST)
        assert caught.value.code == "set-gone"


def test_a_thousand_sets_are_not_all_told() -> None:
    sets = offered(*(f"{HOST}/{number}/c.xml" for number in range(1_000)))

    with pytest.raises(ConfigurationError) as caught:
        choose(sets, SetChoice(folder="here"), HOST)

    assert [name for name, _ in caught.value.evidence].count("set") == 21
    assert ("set", "and 980 more") in caught.value.evidence
    assert [name for name, _ in caught.value.evidence].count("run") == 21


@pytest.mark.founding("0.9 §9.1", "A Description Index is followed", "`pull`")
def test_the_sets_of_several_descriptions_are_told_together() -> None:
    said: Said = {
        WELL_KNOWN: listing("description", ("/1.xml", ""), ("/2.xml", ""), index=True),
        "/1.xml": listing("description", ("/maps/c.xml", ""), ("/texts/c.xml", "")),
        "/2.xml": capability_list("/films"),
    }

    assert [offered_set.uri for offered_set in Host(said).sets()] == [
        f"{HOST}/maps/c.xml",
        f"{HOST}/texts/c.xml",
        f"{HOST}/2.xml",
    ]


@pytest.mark.founding(
    "D-Lib §5", "A Capability List Index groups collections", "`pull SITE --set NAME`"
)
@pytest.mark.parametrize("beside", [(), (("/films/c.xml", ""),)])
def test_each_set_of_a_capability_list_index_can_be_chosen_as_it_is_proposed(
    beside: tuple[tuple[str, str], ...],
) -> None:
    inner = listing("capabilitylist", ("/maps/c.xml", ""), ("/texts/c.xml", ""), index=True)
    host = Host(
        {
            **TWO,
            WELL_KNOWN: listing("description", *beside, ("/sets.xml", "")),
            "/sets.xml": inner,
            "/films/c.xml": capability_list("/films"),
        }
    )
    offered_sets = host.sets()

    assert [at.uri for at in offered_sets][len(beside) :] == [
        f"{HOST}/maps/c.xml",
        f"{HOST}/texts/c.xml",
    ]
    for number, (offered_set, name) in enumerate(
        zip(offered_sets, names_of(offered_sets), strict=True), start=1
    ):
        for word in (offered_set.uri, name, str(number)):
            found = host.find("", SetChoice(requested=word))
            assert found.set_uri == offered_set.uri


def test_a_set_that_an_index_beside_it_lists_too_is_one_set() -> None:
    index = listing("capabilitylist", ("/sets.xml", ""), ("/maps/c.xml", ""), index=True)
    both = listing("description", ("/maps/c.xml", ""), ("/sets.xml", ""))
    host = Host({**TWO, WELL_KNOWN: both, "/sets.xml": index})

    assert [at.uri for at in host.sets()] == [f"{HOST}/maps/c.xml"]
    assert host.find("").set_uri == f"{HOST}/maps/c.xml"


def test_a_set_that_cannot_be_read_leaves_the_others_on_offer() -> None:
    host = Host({**TWO, WELL_KNOWN: listing("description", ("/maps/c.xml", ""), ("/no.xml", ""))})

    assert [at.uri for at in host.sets()] == [f"{HOST}/maps/c.xml", f"{HOST}/no.xml"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/maps/c.xml", "/maps/c.xml"),
        ("/list.xml", "/maps/c.xml"),
        ("/sitemap.xml", "/sitemap.xml"),
    ],
)
def test_an_address_inside_a_set_offers_that_set(path: str, uri: str) -> None:
    said: Said = {
        **TWO,
        "/list.xml": listing("resourcelist", links=[("up", "/maps/c.xml")]),
        "/sitemap.xml": listing(""),
    }

    assert [offered_set.uri for offered_set in Host(said).sets(path)] == [HOST + uri]


def test_a_named_set_of_the_host_is_taken_whatever_is_below_the_address() -> None:
    host = Host({**TWO, "/metadata/": "<html><title>no list</title></html>"})

    with pytest.raises(SourceNotFoundError) as caught:
        host.find("/metadata/")

    assert caught.value.code == "whole-site"
    chosen = host.find("/metadata/", SetChoice(requested="maps"))
    assert chosen.capability_list == f"{HOST}/maps/c.xml"
