"""Laws of publishing by policy: whatever is dropped, nobody who may start is left without a way."""

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.model.timestamps import from_microseconds
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import GRACE, PublicationStep
from resourcesync.source.publication_settings import ChangeLists, Policy
from tests.support.sources.publishing import DyingDocuments, Killed, Reader, Source, View

AGE = st.sampled_from([0, 3_600, 5 * 3_600, 30 * 3_600])
POLICIES = st.builds(
    Policy,
    change_lists=st.sampled_from(ChangeLists),
    rotate=AGE,
    keep=AGE,
    rebase_every=AGE,
    archive=AGE,
    sitemap=st.booleans(),
    rebase_up_to=st.sampled_from([0, 3]),
)
EDITS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", "1", "2", "gone"])), max_size=4
)
ROUNDS = st.lists(
    st.tuples(
        EDITS,
        st.sampled_from([0, 1, 7, 26, -3]),  # hours that pass, or that the clock is set back
        st.sampled_from(
            [PublicationStep.DUE, PublicationStep.DUE, PublicationStep.DUE, *PublicationStep]
        ),
        st.integers(0, 30),  # where it is killed, if it comes that far
    ),
    min_size=1,
    max_size=8,
)
LIMITS = st.builds(PageLimits, max_entries=st.sampled_from([2, 3, 50]))


def apply(source: Source, edits: list[tuple[str, str]], hours: int) -> None:
    source.clock.set(source.clock.now() + timedelta(hours=hours))
    for name, content in edits:
        if content == "gone":
            source.remove(name)
        else:
            source.put(name, content=content)


@settings(max_examples=30)
@given(ROUNDS, POLICIES, LIMITS)
def test_a_reader_finds_the_truth_after_every_run_and_a_consistent_set_after_every_kill(
    rounds: list[tuple[list[tuple[str, str]], int, PublicationStep, int]],
    policy: Policy,
    limits: PageLimits,
) -> None:
    source = Source(limits=limits, policy=policy)
    source.put("a", "b")
    source.publish()
    for edits, hours, step, steps in rounds:
        apply(source, edits, hours)
        try:
            source.publish(DyingDocuments(source.documents, steps), step)
        except Killed:
            Reader(source.documents).view().current()
            source.publish()
        assert Reader(source.documents).view().current() == source.truth()
    if not policy.is_per_run and not policy.rebase_every and not policy.rotate:
        assert source.publish().written == ()


@settings(max_examples=30)
@given(ROUNDS, POLICIES, LIMITS)
def test_who_read_a_resource_list_within_a_day_finds_every_change_since(
    rounds: list[tuple[list[tuple[str, str]], int, PublicationStep, int]],
    policy: Policy,
    limits: PageLimits,
) -> None:
    source = Source(limits=limits, policy=policy)
    source.put("a", "b")
    source.publish()
    views: list[tuple[datetime, View]] = []
    for edits, hours, step, _ in rounds:
        if step is PublicationStep.INITIALISE:
            views.clear()  # it starts over: everybody has to
        apply(source, edits, max(hours, 0))
        source.publish(step=step)
        now = source.clock.now()
        found = Reader(source.documents).view()
        views.append((now, found))
        recent = from_microseconds(0) + (now - from_microseconds(GRACE))
        for read, view in views:
            if read >= recent:
                assert found.start <= view.at


@settings(max_examples=30)
@given(ROUNDS, st.sampled_from(ChangeLists), LIMITS)
def test_a_change_list_that_was_closed_is_never_another(
    rounds: list[tuple[list[tuple[str, str]], int, PublicationStep, int]],
    shape: ChangeLists,
    limits: PageLimits,
) -> None:
    source = Source(
        limits=limits, policy=Policy(change_lists=shape, rotate=3_600, rebase_every=5 * 3_600)
    )
    source.put("a")
    source.publish()
    closed: dict[str, bytes] = {}
    for edits, hours, step, _ in rounds:
        apply(source, edits, hours)
        source.publish(step=step)
        for name, content in source.contents().items():
            is_list = b'capability="changelist" from=' in content and b"<urlset" in content
            if is_list and b" until=" in content:
                assert closed.setdefault(name, content) == content
