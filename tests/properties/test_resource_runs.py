"""Entries taken by the hundred, as columns, are what they are when they are taken one by one."""

from datetime import UTC, datetime, timedelta
from itertools import chain
from xml.sax.saxutils import quoteattr

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.lists.selection import Refusals, ResourceSelection
from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.names import NameMapping
from resourcesync.destination.scope_and_filters import Scope
from resourcesync.mirror_state.rows import RefusedRow
from resourcesync.model.entries import ResourceRun
from tests.support.documents.hostile_uris import BASE, hostile_uris
from tests.support.documents.text import document, open_document

SHA = "sha-256:" + "0a" * 32
HASHES = ["", SHA, SHA.upper(), f"md5:{'b' * 32} {SHA}", "md5:ab", "x", f" {SHA} "]
TIMES = ["2013-01-02T13:00:00Z", "2013-01-02", "2013-01-02T13:00:00", "soon", " 2013 "]
LENGTHS = ["5", "", "-1", " 7 "]
LOCS = ["http://a/1", "http://a/b/2", " http://a/3 ", "b", ""]
LEFT_OUT = st.just("")


def entries_of(*places: str) -> st.SearchStrategy[list[str]]:
    """Draw lists in which many entries in a row say the same things."""
    entry = st.builds(
        "<url><loc>{}</loc>{}<rs:md{}{}/>{}</url>".format,
        st.sampled_from(LOCS),
        LEFT_OUT | st.sampled_from(TIMES).map("<lastmod>{}</lastmod>".format),
        LEFT_OUT | st.sampled_from(HASHES).map(lambda name: f" hash={quoteattr(name)}"),
        LEFT_OUT | st.sampled_from(LENGTHS).map(lambda name: f" length={quoteattr(name)}"),
        LEFT_OUT | st.sampled_from(places),
    )
    repeated = st.tuples(entry, st.integers(1, 40)).map(lambda item: [item[0]] * item[1])
    return st.lists(repeated, max_size=5).map(lambda item: list(chain.from_iterable(item)))


@given(entries_of("<priority>0.5</priority>", "<changefreq>daily</changefreq>"))
def test_the_groups_of_a_document_hold_its_entries(entries: list[str]) -> None:
    data = document(*entries)
    alone, grouped = open_document(data), open_document(data)

    assert list(chain.from_iterable(grouped.batches())) == list(alone.entries())
    assert grouped.refused == alone.refused
    assert grouped.tolerated == alone.tolerated


def selection(
    profile: FileSystemProfile, told: list[RefusedRow], **filters: object
) -> ResourceSelection:
    scope = Scope(origins=frozenset({BASE[:-1]}), **filters)  # type: ignore[arg-type]  # drawn
    return ResourceSelection(scope, NameMapping(base=BASE, profile=profile), Refusals(told.append))


MOMENTS = st.none() | st.integers(0, 3).map(
    lambda days: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=days)
)
NAMES = st.sampled_from(
    [
        "a",
        "a.b",
        "A.b",
        ".a",
        "a.",
        "con",
        "nul.x",
        "a~",
        "a%20b",
        "a?b",
        "a#b",
        "",
        "a b",
        "x" * 300,
    ]
)
FOLDERS = st.sampled_from(["", "a/", "A/", "a.b/", "aux/", "%7e/", "~/", "a//", "../", "a/b/"])
NEARBY = st.builds("{}{}{}".format, st.sampled_from([BASE, BASE.upper()]), FOLDERS, NAMES)


@given(
    st.lists(st.tuples(NEARBY | hostile_uris(), MOMENTS, st.none() | st.integers(0, 9))),
    st.sampled_from(FileSystemProfile),
    st.sampled_from([{}, {"max_size": 5}, {"exclude": ("*.b",)}]),
)
def test_a_selection_of_many_is_that_of_each(
    drawn: list[tuple[str, datetime | None, int | None]],
    profile: FileSystemProfile,
    filters: dict[str, object],
) -> None:
    run = ResourceRun(
        uris=[uri for uri, _, _ in drawn],
        lastmods=[moment for _, moment, _ in drawn],
        lengths=[length for _, _, length in drawn],
        hashes=[HASHES[1 + (length or 0) % 2].lower() for _, _, length in drawn],
        media_types=["text/plain"] * len(drawn),
    )
    refused: tuple[list[RefusedRow], list[RefusedRow]] = ([], [])
    alone, together = (selection(profile, told, **filters) for told in refused)

    expected = [row for resource in run if (row := alone.resource_row(resource)) is not None]

    assert list(together.resource_rows(run)) == expected
    assert refused[0] == refused[1]
    assert alone.refusals.count == together.refusals.count


def test_a_source_speaks_for_no_neighbour_in_a_run_either() -> None:
    told: list[RefusedRow] = []
    scope = Scope(origins=frozenset({"https://other.example"}))
    chosen = ResourceSelection(
        scope, NameMapping(base=BASE, profile=FileSystemProfile.POSIX), Refusals(told.append)
    )
    uris = [f"{BASE}a/{number}.txt" for number in range(3)]
    nothing = [None] * 3

    rows = list(
        chosen.resource_rows(
            ResourceRun(
                uris=uris, lastmods=nothing, lengths=nothing, hashes=[""] * 3, media_types=[""] * 3
            )
        )
    )

    assert rows == []
    assert [(row.uri, row.code) for row in told] == [(uri, "foreign") for uri in uris]
