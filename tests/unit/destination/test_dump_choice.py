"""Whether a package or single requests: by cost, and never when it cannot help."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.dumps.dump_policy import (
    DEFAULT_SIZE,
    MIN_FETCHES,
    REQUEST_COST,
    AgeIndex,
    PackageEstimate,
    ResourceCount,
    are_manifests_worth_fetching,
    cost_of_requests,
    is_dump_worth_checking,
    is_package_worth_fetching,
)
from resourcesync.destination.dumps.dump_transfer import DumpEstimate, interval_ends
from resourcesync.destination.lists.manifests import (
    ManifestRow,
    PackageTrust,
    join_wanted,
    new_fetch_sorter,
    new_manifest_sorter,
    new_order_sorter,
    provides,
)
from resourcesync.destination.lists.packages import DumpPackage
from resourcesync.destination.options import DumpPolicy
from resourcesync.destination.planner import Fetch, ListedEntry
from resourcesync.mirror_state.rows import Copy
from resourcesync.model.capabilities import Header, Package
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Capability

POLICIES: Sequence[DumpPolicy] = ("auto", "never", "always")
A = "sha-256:" + "a" * 64
B = "sha-256:" + "b" * 64
OTHER_KIND = "md5:" + "c" * 32
FAR = PackageTrust(complete_until=10**18, is_near=True, is_list=False)


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


def test_a_package_of_unknown_size_is_taken_only_for_half_of_what_it_holds() -> None:
    need = ResourceCount(count=50, size=50_000)

    assert is_package_worth_fetching(
        PackageEstimate(length=None, wanted=need, entries=100), "auto", None
    )
    assert not is_package_worth_fetching(
        PackageEstimate(length=None, wanted=need, entries=101), "auto", None
    )
    assert not is_package_worth_fetching(PackageEstimate(length=None, wanted=need), "auto", None)


def test_a_look_at_a_dump_is_worth_it_for_a_few_resources_at_least() -> None:
    assert not is_dump_worth_checking(ResourceCount(count=MIN_FETCHES - 1), "auto")
    assert is_dump_worth_checking(ResourceCount(count=MIN_FETCHES), "auto")
    assert is_dump_worth_checking(ResourceCount(count=1), "always")
    assert not is_dump_worth_checking(ResourceCount(), "always")
    assert not is_dump_worth_checking(ResourceCount(count=10**6), "never")


def test_manifests_that_cost_more_than_they_may_save_are_not_looked_at() -> None:
    of_24 = [PackageEstimate(length=10**6, wanted=ResourceCount(count=67), entries=10_000)] * 24

    assert not are_manifests_worth_fetching(of_24, ResourceCount(count=1_620), "auto")
    assert are_manifests_worth_fetching(of_24, ResourceCount(count=240_000), "auto")
    assert are_manifests_worth_fetching(of_24, ResourceCount(count=1), "always")
    assert not are_manifests_worth_fetching(of_24, ResourceCount(count=240_000), "never")
    changes = [PackageEstimate(length=10**6, wanted=ResourceCount(count=500))]
    assert are_manifests_worth_fetching(changes, ResourceCount(count=500), "auto")


def test_what_has_no_length_is_taken_for_as_long_as_the_others() -> None:
    assert ResourceCount(count=4, size=300, unsized=1).total == 400
    assert ResourceCount(count=2, unsized=2).total == 2 * DEFAULT_SIZE
    assert ResourceCount().total == 0


# --- by age ---

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


def offered(
    *, length: int | None = None, at: int = 0, from_: int = 0, until: int = 0
) -> DumpPackage:
    def moment(value: int) -> Any:
        return from_microseconds(value * 1_000_000) if value else None

    entry = Package(
        uri="http://h/p.zip", length=length, at=moment(at), from_=moment(from_), until=moment(until)
    )
    kind = Capability.CHANGE_DUMP if from_ else Capability.RESOURCE_DUMP
    return DumpPackage(
        uri=entry.uri, entry=entry, dump=Header(capability=kind), contents="", is_near=True
    )


def estimate(
    packages: list[DumpPackage], *lastmods: int | None, resources: int = 100
) -> DumpEstimate:
    ages = AgeIndex(interval_ends(packages))
    for lastmod in lastmods:
        ages.add(None if lastmod is None else lastmod * 1_000_000, 10)
    return DumpEstimate(packages, ages, resources)


def test_packages_that_disappoint_lower_what_is_expected_of_the_next_ones() -> None:
    found = estimate([offered(length=1), offered(length=1)], *[None] * 100)
    assert found.for_package(1).wanted.count == 50

    found.learn(50, 5)

    assert found.for_package(1).wanted.count == 5
    found.learn(0, 0)
    assert found.for_package(1).wanted.count == 5
    found.learn(5, 500)
    assert found.for_package(1).wanted.count == 50


# --- which versions ---


def listed(uri: str = "u", **says: Any) -> ListedEntry:
    values: dict[str, Any] = {"hash": A, "length": 10, "lastmod": 1_000_000, "change": ""} | says
    return ListedEntry(uri=uri, loc=uri, path=uri, **values)


def held(uri: str = "u", package: int = 0, position: int = 0, **says: Any) -> ManifestRow:
    values: dict[str, Any] = {"hash": A, "length": 10, "lastmod": 1_000_000} | says
    return ManifestRow(uri=uri, package=package, position=position, **values)


def test_the_same_digest_is_the_same_version_whatever_the_times_say() -> None:
    assert provides(held(lastmod=5), listed(), FAR)
    assert provides(held(lastmod=None), listed(lastmod=None), FAR._replace(is_near=False))
    assert not provides(held(hash=B), listed(), FAR)
    assert not provides(held(length=11), listed(), FAR)


def test_without_a_common_digest_the_times_may_not_differ_and_the_bytes_will_tell() -> None:
    assert provides(held(hash=""), listed(), FAR)
    assert provides(held(hash=OTHER_KIND), listed(), FAR)
    assert provides(held(hash="", lastmod=None), listed(), FAR)
    assert not provides(held(hash="", lastmod=2), listed(), FAR)


def test_where_no_digest_is_listed_only_the_time_of_a_package_of_the_source_counts() -> None:
    bare = listed(hash="")

    assert provides(held(), bare, FAR)
    assert not provides(held(), bare, FAR._replace(is_near=False))
    assert not provides(held(), bare, FAR._replace(complete_until=1_999_999))
    assert provides(held(), bare, FAR._replace(complete_until=2_000_000))
    assert provides(held(), bare, FAR._replace(complete_until=0, is_list=True))
    assert not provides(held(lastmod=2), bare, FAR)
    assert not provides(held(lastmod=None), bare, FAR)
    assert not provides(held(), listed(hash="", lastmod=None), FAR)


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


def test_orders_come_back_in_the_order_of_the_manifest_and_as_they_were() -> None:
    copy = Copy("u", "p", 1, A, A, None, "", "", "s", "verified", 7)
    orders = [
        (12, Fetch(listed("b"), copy, is_conditional=True)),
        (3, Fetch(listed("c", mirrors=("m",), memento="n"), None)),
        (100, Fetch(listed("a"), None)),
    ]
    with new_order_sorter(BytesIO) as spool:
        for order in orders:
            spool.add(order)
        assert list(spool) == sorted(orders, key=lambda order: order[0])
