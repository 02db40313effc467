"""Whether a package or single requests: by cost, and never when it cannot help."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.dumps.dump_policy import (
    REQUEST_COST,
    AgeIndex,
    PackageEstimate,
    ResourceCount,
    cost_of_requests,
    is_package_worth_fetching,
)
from resourcesync.destination.lists.manifests import (
    ManifestRow,
    join_wanted,
    new_fetch_sorter,
    new_manifest_sorter,
)
from resourcesync.destination.options import DumpPolicy
from resourcesync.destination.planner import Fetch, ListedEntry

POLICIES: Sequence[DumpPolicy] = ("auto", "never", "always")
A = "sha-256:" + "a" * 64


@st.composite
def needs(draw: st.DrawFn) -> ResourceCount:
    count = draw(st.integers(0, 100_000))
    unsized = draw(st.integers(0, count))
    size = draw(st.integers(0, 10**12)) if count > unsized else 0
    return ResourceCount(count=count, size=size, unsized=unsized)


@st.composite
def prospects(draw: st.DrawFn) -> PackageEstimate:
    wanted = draw(needs())
    length = draw(st.none() | st.integers(0, 10**12))
    held = draw(st.none() | st.integers(wanted.count, 200_000))
    return PackageEstimate(length=length, wanted=wanted, entries=held)


@given(prospects(), st.sampled_from(POLICIES), st.none() | st.integers(0, 10**13))
def test_a_package_is_taken_only_for_a_reason(
    estimate: PackageEstimate, policy: DumpPolicy, room: int | None
) -> None:
    if not is_package_worth_fetching(estimate, policy, room):
        return
    assert policy != "never"
    assert estimate.wanted.count
    assert room is None or (estimate.length or 0) + estimate.wanted.total <= room
    if policy == "auto" and estimate.length is not None:
        assert REQUEST_COST + estimate.length < cost_of_requests(estimate.wanted)
    if policy == "auto" and estimate.entries is not None:
        assert estimate.wanted.count * 10 >= estimate.entries


@given(prospects(), st.integers(0, 10**12))
def test_what_is_worth_taking_is_so_at_a_lower_price_as_well(
    estimate: PackageEstimate, length: int
) -> None:
    if (
        estimate.length is not None
        and length <= estimate.length
        and is_package_worth_fetching(estimate, "auto", None)
    ):
        cheaper = PackageEstimate(length=length, wanted=estimate.wanted, entries=estimate.entries)
        assert is_package_worth_fetching(cheaper, "auto", None)


@given(prospects(), st.none() | st.integers(0, 10**13))
def test_always_takes_whatever_auto_takes(estimate: PackageEstimate, room: int | None) -> None:
    if is_package_worth_fetching(estimate, "auto", room):
        assert is_package_worth_fetching(estimate, "always", room)


MOMENTS = st.integers(0, 20)


@given(
    st.lists(MOMENTS, min_size=1, max_size=6),
    st.lists(st.tuples(st.none() | MOMENTS, st.none() | st.integers(0, 9))),
    st.data(),
)
def test_ages_count_what_a_reading_of_all_would_count(
    moments: list[int], wanted: list[tuple[int | None, int | None]], data: st.DataObject
) -> None:
    ages = AgeIndex(moments)
    for lastmod, length in wanted:
        ages.add(lastmod, length)
    for _ in range(3):
        after = data.draw(st.none() | st.sampled_from(moments))
        upto = data.draw(st.none() | st.sampled_from(moments))
        if after is not None and upto is not None and after > upto:
            continue

        need = ages.between(after, upto)

        chosen = [
            length
            for lastmod, length in wanted
            if lastmod is None
            or ((after is None or lastmod > after) and (upto is None or lastmod <= upto))
        ]
        assert need.count == len(chosen)
        assert need.size == sum(length or 0 for length in chosen)
        assert need.unsized == chosen.count(None)


def listed(uri: str = "u", **says: Any) -> ListedEntry:
    values: dict[str, Any] = {"hash": A, "length": 10, "lastmod": 1_000_000, "change": ""} | says
    return ListedEntry(uri=uri, loc=uri, path=uri, **values)


def held(uri: str = "u", package: int = 0, position: int = 0, **says: Any) -> ManifestRow:
    values: dict[str, Any] = {"hash": A, "length": 10, "lastmod": 1_000_000} | says
    return ManifestRow(uri=uri, package=package, position=position, **values)


NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@given(st.sets(st.sampled_from("abcdefgh")), NAMES)
def test_each_thing_wanted_meets_all_that_is_held_of_it_in_order(
    wanted: set[str], names: list[str]
) -> None:
    with new_fetch_sorter(BytesIO) as fetches, new_manifest_sorter(BytesIO) as holdings:
        for name in wanted:
            fetches.add(Fetch(listed(name), None))
        for position, name in enumerate(names):
            holdings.add(held(name, position=position))

        found = {
            fetch.listed.uri: [row.position for row in group]
            for fetch, group in join_wanted(fetches, holdings)
        }

    assert found == {
        name: [n for n, text in enumerate(names) if text == name] for name in wanted & set(names)
    }
