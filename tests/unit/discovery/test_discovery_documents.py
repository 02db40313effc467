"""Any document of a Source leads to the lists of its set, in every version of the format."""

import pytest

from resourcesync.errors import NotAListError
from tests.support.worlds.discovering import HOST, SITEMAP, WELL_KNOWN, Host, Said, listing
from tests.support.worlds.network import Answer

UP = [("up", "/caps.xml")]
CAPS = listing(
    "capabilitylist",
    ("/resourcelist.xml", "resourcelist"),
    ("/changelist.xml", "changelist"),
    ("/resourcedump.xml", "resourcedump"),
    ("/new.xml", "not-yet-known"),
)
KINDS = [
    "resourcelist",
    "resourcedump",
    "resourcedump-manifest",
    "changelist",
    "changedump",
    "changedump-manifest",
    "resourcelist-archive",
    "changelist-archive",
    "resourcedump-archive",
    "changedump-archive",
    "change-notification",
    "framework-notification",
]


@pytest.mark.founding("0.9 §9.2", "Every document leads to its Capability List", "`pull DOCUMENT`")
@pytest.mark.parametrize("kind", KINDS)
def test_any_document_leads_to_the_lists_of_its_set(kind: str) -> None:
    host = Host({"/any.xml": listing(kind, links=UP), "/caps.xml": CAPS})

    found = host.find("/any.xml")

    assert found.capability_list == f"{HOST}/caps.xml"
    assert found.resource_list == f"{HOST}/resourcelist.xml"
    assert found.change_list == f"{HOST}/changelist.xml"
    assert found.entry == f"{HOST}/any.xml"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "-" in kind])
def test_what_is_no_list_and_leads_to_none_is_told_so(kind: str) -> None:
    with pytest.raises(NotAListError, match="leads to no list"):
        Host({"/any.xml": listing(kind)}).find("/any.xml")


@pytest.mark.parametrize(
    "above",
    [
        Answer(status=404),
        Answer(status=503),
        Answer(body=b"<urlset"),
        Answer(body=listing("description")),
        Answer(body=SITEMAP),
    ],
    ids=["404", "503", "cut", "description", "sitemap"],
)
def test_a_list_whose_set_cannot_be_had_is_used_alone(above: Answer) -> None:
    found = Host({"/any.xml": listing("resourcelist", links=UP), "/caps.xml": above}).find(
        "/any.xml"
    )

    assert (found.resource_list, found.capability_list) == (f"{HOST}/any.xml", None)


@pytest.mark.parametrize("length", [1, 2, 50])
def test_links_that_go_round_or_on_and_on_end(length: int) -> None:
    said: Said = {
        f"/{number}.xml": listing(
            "resourcelist", links=[("up", f"/{(number + 1) % length}.xml")], index=True
        )
        for number in range(length)
    }
    host = Host(said)

    assert host.find("/0.xml").resource_list == f"{HOST}/0.xml"
    assert len(host.asked) <= 6


def test_indexes_that_hold_each_other_end() -> None:
    said: Said = {
        f"/{number}.xml": listing(
            "description", *((f"/{part}.xml", "") for part in range(10)), index=True
        )
        for number in range(10)
    }
    host = Host(said)

    with pytest.raises(NotAListError):
        host.find("/0.xml")
    assert len(host.asked) <= 110


def test_what_is_known_by_another_address_counts_from_there() -> None:
    moved = Answer(
        body=listing("description", ("caps.xml", "")).replace(
            f"{HOST}caps.xml".encode(), b"caps.xml"
        ),
        uri=f"{HOST}/deep/description.xml",
    )
    host = Host({WELL_KNOWN: moved, "/deep/caps.xml": CAPS})

    assert host.find().capability_list == f"{HOST}/deep/caps.xml"


def test_channels_and_unknown_things_in_a_description_are_no_sets() -> None:
    description = listing(
        "description",
        ("/channel.xml", "framework-notification"),
        ("/later.xml", "not-yet-known"),
        ("/caps.xml", ""),
    )

    assert Host({WELL_KNOWN: description, "/caps.xml": CAPS}).find().capability_list == (
        f"{HOST}/caps.xml"
    )


def test_a_description_that_lists_the_lists_themselves_is_understood() -> None:
    description = listing("description", ("/resourcelist.xml", "resourcelist"))

    assert Host({WELL_KNOWN: description}).find().resource_list == f"{HOST}/resourcelist.xml"
