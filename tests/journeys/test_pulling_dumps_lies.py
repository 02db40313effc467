"""Whatever a dump holds, the mirror is what it would be without it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.destination.reports import MirrorState
from tests.support.worlds.dump_source import (
    AT,
    DumpSource,
    Packed,
    Told,
    manifest_of,
    tarred,
    zipped,
)
from tests.support.worlds.world import World

OLDER = "2025-06-01T00:00:00Z"
COUNT = 10
TRUTH = [Told(name=f"r/{n}", data=f"truth {n}".encode() * 3) for n in range(COUNT)]


@dataclass(frozen=True)
class Dumped:
    """What stands in the dumps, and what of the truth the list leaves out."""

    told: tuple[tuple[Told, ...], ...]
    bare: frozenset[int]
    copied: tuple[int, ...]
    broken: tuple[int, ...]
    packing: str


def said_of(told: Told, how: str) -> list[Told]:
    lie = b"lies of any length"
    same_length = b"x" * len(told.data)
    return {
        "right": [told],
        "left out": [],
        "no digest": [told.wrong(hash="")],
        "nothing": [told.wrong(hash="", length=-1, lastmod="")],
        "stale": [told.wrong(data=b"old", lastmod=OLDER)],
        "stale and as long": [told.wrong(data=same_length, lastmod=OLDER)],
        "damaged": [told.wrong(packed=lie)],
        "damaged and as long": [told.wrong(packed=same_length)],
        "wrong digest": [told.wrong(hash="sha-256:" + "0" * 64)],
        "twice": [told, told.wrong(data=b"old", lastmod=OLDER, path=f"old/{told.name}")],
        "unknown": [told, Told(name=f"more/{told.name}", data=lie)],
    }[how]


LIES = {
    "lying": lambda item: item.wrong(hash="", packed=b"x" * len(item.data)),
    "lying of nothing": lambda item: item.wrong(hash="", length=-1, lastmod="", packed=b"lie"),
}
"""What only a digest in the list tells from the truth."""

HONEST = (
    "right", "left out", "no digest", "nothing", "stale", "stale and as long", "damaged",
    "damaged and as long", "wrong digest", "twice", "unknown",
)  # fmt: skip


@st.composite
def dumps(draw: st.DrawFn) -> Dumped:
    packages = draw(st.integers(1, 3))
    bare = draw(st.frozensets(st.integers(0, COUNT - 1)))
    told: list[list[Told]] = [[] for _ in range(packages)]
    for number, item in enumerate(TRUTH):
        choices = HONEST if number in bare else (*HONEST, *LIES)
        for package in draw(st.sets(st.integers(0, packages - 1), max_size=2)):
            how = draw(st.sampled_from(choices))
            told[package] += [LIES[how](item)] if how in LIES else said_of(item, how)
    numbers = st.integers(0, packages - 1)
    return Dumped(
        told=tuple(map(tuple, told)),
        bare=bare,
        copied=tuple(draw(st.sets(numbers))),
        broken=tuple(draw(st.sets(numbers, max_size=1))),
        packing=draw(st.sampled_from(["zip", "zip", "w:gz"])),
    )


def listed(bare: frozenset[int], truth: list[Told]) -> list[Told]:
    return [told.wrong(hash="") if n in bare else told for n, told in enumerate(truth)]


def pack(dumped: Dumped, number: int) -> Packed:
    told = dumped.told[number]
    body = zipped(told) if dumped.packing == "zip" else tarred(told, dumped.packing)
    if number in dumped.broken:
        body = body[: len(body) * 2 // 3]
    copied = f"{number}.xml" if number in dumped.copied else ""
    return Packed(name=f"{number}.pack", body=body, contents=copied)


@contextmanager
def new_world() -> Iterator[World[DumpSource]]:
    with TemporaryDirectory() as folder:
        yield World(Path(folder) / "mirror", DumpSource())


def remembered(world: World[DumpSource]) -> list[tuple[object, ...]]:
    """What the mirror's memory says of its copies, but when and by which answer they came."""
    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        return [
            (copy.uri, copy.path, copy.length, copy.digests, copy.listed, copy.lastmod, copy.fixity)
            for copy in mirror.state.copies()
        ]


@settings(max_examples=20, deadline=None)
@given(dumps())
def test_a_mirror_made_with_dumps_is_the_mirror_made_without(dumped: Dumped) -> None:
    mirrors = []
    for policy in ("always", "never"):
        with new_world() as world:
            world.source.put_all(TRUTH)
            world.source.list_resources(listed(dumped.bare, TRUTH))
            for number in range(len(dumped.told)):
                if number in dumped.copied:
                    world.source.say(f"{number}.xml", manifest_of(dumped.told[number]))
            world.source.dump(*(pack(dumped, number) for number in range(len(dumped.told))))

            report = world.pull(dumps=policy)

            assert report.state is MirrorState.IN_SYNC
            assert (report.created, report.updated, report.failed) == (COUNT, 0, 0)
            assert world.in_sync()
            mirrors.append(remembered(world))
            again = world.pull(dumps=policy)
            assert (again.created, again.updated, again.deleted) == (0, 0, 0)
    assert mirrors[0] == mirrors[1]


KINDS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["updated", "deleted", "created"])), max_size=12
)


def history(kinds: list[tuple[int, str]]) -> list[Told]:
    changes = []
    for minute, (number, kind) in enumerate(kinds, 1):
        moment = f"2026-01-01T00:{minute:02}:00Z"
        changes.append(
            TRUTH[number].wrong(
                data=f"version {minute}".encode(),
                change=kind,
                time=moment,
                lastmod=moment,
                path=f"{minute}/{number}",
            )
        )
    return changes


@settings(max_examples=12, deadline=None)
@given(KINDS, st.integers(0, 12), st.booleans(), st.data())
def test_changes_with_dumps_lead_where_changes_without_lead(
    kinds: list[tuple[int, str]], cut: int, has_list: bool, data: st.DataObject
) -> None:
    changes = history(kinds)
    middle = f"2026-01-01T00:{cut:02}:30Z"
    lost = {change.name for change in changes if data.draw(st.booleans())} if has_list else set()
    with new_world() as world:
        world.source.publish(TRUTH)
        empty = Packed(name="e.zip", body=zipped([], from_=AT, until=AT), from_=AT, until=AT)
        if has_list:
            world.source.list_changes([])
        world.source.dump_changes(empty)
        world.pull()
        for change in changes:
            if change.change == "deleted":
                world.source.resources.pop(f"http://source.example/{change.name}", None)
                world.source.served.pop(f"http://source.example/{change.name}", None)
            else:
                world.source.put_all([change])
        if has_list:
            world.source.list_changes(changes)
        parts = ((changes[:cut], AT, middle), (changes[cut:], middle, "2026-01-01T01:00:00Z"))
        packages = []
        for number, (part, from_, until) in enumerate(parts):
            body = zipped(part, missing=sorted(lost), from_=from_, until=until)
            packages.append(Packed(name=f"{number}.zip", body=body, from_=from_, until=until))
        world.source.dump_changes(empty, *packages)

        assert world.pull(dumps="always", delete="signalled").state is MirrorState.IN_SYNC
        assert world.in_sync()
        if not lost:
            assert not any(name.startswith("r/") for name in world.asked())
