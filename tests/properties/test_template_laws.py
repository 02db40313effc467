"""Places by a rule: no two URIs share one, each leads back, and a clash is refused, not written."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.names import normalise_rule
from resourcesync.destination.mapping.rules import TemplateMapping
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ConfigurationError, OutOfScopeError
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

RULES = [
    "bitstream/{item}/{name} => {item}/{name}",
    "{a}/{b} => {b}/{a}",
    "{a}/{b} => {a}-{b}",
    "{a}-{b} => {a}/{b}",
    "{a*}.html => pages/{a*}",
    "x/{rest*} => {rest*}",
    "{rest*} => y/{rest*}",
    "{a}/{b*} => {b*}.{a}",
]
names = st.text("abAB1-._~!", min_size=1, max_size=4)
tails = st.builds(
    lambda folders, query: "/".join(folders) + query,
    st.lists(names, min_size=1, max_size=4),
    st.sampled_from(["", "", "?q=1", "?a/b-c.html"]),
)


def mapping(rule: str, profile: FileSystemProfile = FileSystemProfile.POSIX) -> TemplateMapping:
    return TemplateMapping(rule, BASE, profile)


@given(
    rule=st.sampled_from(RULES),
    tails=st.lists(tails, max_size=30, unique=True),
    profile=st.sampled_from(FileSystemProfile),
)
def test_no_two_uris_share_a_place_and_each_place_leads_back(
    rule: str, tails: list[str], profile: FileSystemProfile
) -> None:
    ours = mapping(rule, profile)
    places: dict[str, str] = {}
    for tail in tails:
        uri = BASE + tail
        try:
            place = ours.path(uri)
        except OutOfScopeError:
            continue  # a clash, or no address at all: refused by itself
        key = place if profile is FileSystemProfile.POSIX else place.lower()
        assert places.setdefault(key, uri) == uri
        assert ours.uri(place) == uri or place.startswith("!7/")  # a digest: the state knows
        assert not any(part.startswith(".") or not part for part in place.split("/"))
    folders = {place.rpartition("/")[0] for place in places}
    ancestors = {"/".join(f.split("/")[:n]) for f in folders for n in range(1, 9)} - {""}
    assert not ancestors.intersection(places), "a file is where a folder belongs"


@given(rule=st.sampled_from(RULES), tails=st.lists(tails, min_size=1, max_size=20, unique=True))
def test_what_is_refused_does_not_depend_on_what_else_is_listed(
    rule: str, tails: list[str]
) -> None:
    def told(tail: str, ours: TemplateMapping) -> str:
        try:
            return ours.path(BASE + tail)
        except OutOfScopeError:
            return ""

    together = mapping(rule)
    forward = {tail: told(tail, together) for tail in tails}

    assert forward == {tail: told(tail, mapping(rule)) for tail in reversed(tails)}


@pytest.mark.parametrize(
    "rule",
    [
        "a => b",
        "{a} => {b}",
        "{a}/{b} => {a}",
        "{a}/{a} => {a}",
        "{a} => {a}{a}",
        "{a}{b} => {b}/{a}",
        "{A} => {A}",
        "{a} => {a}?x",
        "{a} => {a} b",
        "{a => {a",
        "=> {a}",
        "{a} =>",
        "".join(f"{{a{n}}}/" for n in range(30)) + "=>x",
    ],
)
def test_a_rule_that_cannot_be_undone_is_refused(rule: str) -> None:
    if rule == "a => b":
        assert mapping(rule).path(BASE + "a") == "b!9"  # one resource has another name: that can
        return
    with pytest.raises(ConfigurationError, match="is not a valid rule") as caught:
        mapping(rule)
    assert caught.value.code == "map"
    assert caught.value.hint


def test_a_mirror_keeps_its_rule_and_refuses_clashes_before_anything_is_written(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    for name in ("bitstream/1/a.txt", "bitstream/2/b.txt", "1/a.txt", "c.txt"):
        world.source.put(name, name)
    world.source.publish()

    report = world.pull(mapper="/bitstream/{item}/{name}=>{item}/{name}")

    assert (report.created, report.listed.refused, report.state) == (3, 1, MirrorState.BEHIND)
    here = {place: body.decode() for place, body in world.home.files_on_disk().items()}
    assert here == {
        "1/a.txt": "bitstream/1/a.txt",
        "2/b.txt": "bitstream/2/b.txt",
        "c.txt": "c.txt",
    }
    (refused,) = [mapping for mapping in world.told("item") if mapping["action"] == "refuse"]
    assert (refused["uri"], refused["code"]) == (BASE + "1/a.txt", "mapper")
    world.source.remove("1/a.txt")
    world.source.put("bitstream/3/d.txt", "d")
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.audit().in_sync
    assert world.pull(mapper=normalise_rule(RULES[0])).state is MirrorState.IN_SYNC
    with pytest.raises(ConfigurationError, match="paths come from the mapping"):
        world.pull(mapper="{rest*} => {rest*}")


def test_a_hostile_address_costs_no_more_than_its_length() -> None:
    rule = (
        "-".join(f"{{a{n}*}}" for n in range(20))
        + "/x => "
        + "/".join(f"{{a{n}*}}" for n in range(20))
    )
    uri = BASE + "-" * 2_000

    assert mapping(rule).path(uri)  # tried every way, it would take for ever


def test_a_mistake_in_a_rule_makes_no_mirror(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    world.source.put("a.txt", "a")
    world.source.publish()

    with pytest.raises(ConfigurationError, match=re.escape("'{a} => {b}' is not a valid rule")):
        world.pull(mapper="{a} => {b}")

    assert world.home.files_on_disk() == {}
    assert world.pull().state is MirrorState.IN_SYNC
