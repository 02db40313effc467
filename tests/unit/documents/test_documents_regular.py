"""Entries that are all alike are read many at a time; a fault among them still costs but one."""

from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.model.digests import Digest
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind, Dialect
from tests.support.documents.text import CHANGE_LIST, document, open_document, rows, tell, uris

SHA = "sha-256:" + "0a" * 32
MANY = 1500


def entry(
    loc: str = "http://a/1",
    lastmod: str = "2013-01-02T13:00:00Z",
    hashes: str = SHA,
    length: str = "5",
) -> str:
    return (
        f"<url><loc>{loc}</loc><lastmod>{lastmod}</lastmod>"
        f'<rs:md hash="{hashes}" length="{length}" type="a/b"/></url>'
    )


def change(word: str = "updated", time: str = "2013-01-03T09:00:00Z") -> str:
    return f'<url><loc>http://a/1</loc><rs:md change="{word}" datetime="{time}"/></url>'


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        (entry(loc="http://a/\u202e"), "uri-illegal"),
        (entry(loc="http://a/\t1"), "uri-illegal"),
        (entry(loc="   "), "entry-invalid"),
        (entry(loc="http://a/".ljust(2049, "x")), "uri-too-long"),
    ],
)
def test_one_fault_among_many_costs_one_entry(odd: str, code: str) -> None:
    told = tell(document(*[entry()] * MANY, odd, *[entry()] * MANY))

    assert len(told.entries) == 2 * MANY
    assert set(told.entries) == set(tell(document(entry())).entries)
    assert [(refusal.code, refusal.line) for refusal in told.refusals] == [(code, MANY + 4)]


@pytest.mark.parametrize(
    ("odd", "code", "name"),
    [
        (entry(lastmod="soon"), "time-invalid", "lastmod"),
        (entry(length="-5"), "length-invalid", "length"),
        (entry(length=""), "length-invalid", "length"),
        (entry(length="1" * 20), "length-invalid", "length"),
        (entry(length=str(2**63)), "length-invalid", "length"),
        (entry(length="\u0663"), "length-invalid", "length"),
        (entry(hashes=f"{SHA} sha-256:{'00' * 32}"), "hash-disagrees", "digests"),
        (entry(hashes="sha-256:zz"), "hash-invalid", "digests"),
        (entry(hashes=f"sha-256:{'zz' * 32}"), "hash-invalid", "digests"),
        (entry(hashes=f"sha-256:{'a' * 31} {'b' * 32}"), "hash-invalid", "digests"),
        (entry(hashes="x" * 72), "hash-invalid", "digests"),
        (
            entry(hashes="sha-256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
            "hash-invalid",
            "digests",
        ),
    ],
)
def test_a_value_that_cannot_be_read_costs_itself_alone(odd: str, code: str, name: str) -> None:
    opened = open_document(document(*[entry()] * MANY, odd, *[entry()] * MANY))

    *_, sound = entries = list(opened.entries())

    assert isinstance(sound, Resource)
    missing: dict[str, Any] = {name: () if name == "digests" else None}
    assert entries[MANY] == replace(sound, **missing)
    assert entries.count(sound) == 2 * MANY
    assert (opened.refused, opened.dropped) == (0, 1)
    assert [(tolerated.code, tolerated.line) for tolerated in opened.tolerated] == [
        (code, MANY + 4)
    ]


@pytest.mark.parametrize(
    ("odd", "count"),
    [(entry(loc="http://a/\u202e"), 0), (entry(loc=" "), 0), (entry(length="-5"), 1)],
)
def test_rows_tell_faults_of_the_loc_and_leave_the_others(odd: str, count: int) -> None:
    opened = open_document(document(*[entry()] * MANY, odd, *[entry()] * MANY))

    assert len(list(opened.rows())) == 2 * MANY + count
    assert opened.refused == 1 - count


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (entry(loc=" http://a/1\n"), {}),
        (entry(length=" 5 "), {}),
        (entry(lastmod=" 2013-01-02T13:00:00.000000Z "), {}),
        (entry(hashes=f" {SHA} "), {}),
        (entry(hashes=SHA.upper()), {}),
        (entry(hashes=f"md5:{'ab' * 16}"), {"digests": (Digest("md5", "ab" * 16),)}),
        (entry(hashes="x:" * 36), {"digests": (Digest("x", "x:" * 35),)}),
        (entry(hashes=""), {"digests": ()}),
        (entry(loc="http://a/\u6c34"), {"uri": "http://a/\u6c34"}),
        (entry(loc="http://a/a b"), {"uri": "http://a/a b"}),
        (entry(lastmod=""), {"lastmod": None}),
    ],
)
def test_one_unusual_entry_among_many_says_what_it_says(
    odd: str, expected: dict[str, object]
) -> None:
    [usual] = tell(document(entry())).entries
    assert isinstance(usual, Resource)

    told = tell(document(*[entry()] * MANY, odd, *[entry()] * MANY))

    assert told.refusals == []
    unusual = told.entries.pop(MANY)
    assert isinstance(unusual, Resource)
    assert {name: getattr(unusual, name) for name in Resource.__struct_fields__} == {
        name: getattr(usual, name) for name in Resource.__struct_fields__
    } | expected
    assert told.entries == [usual] * (2 * MANY)


@pytest.mark.parametrize(("word", "kind"), [("Delete", "deleted"), (" create ", "created")])
def test_a_change_in_another_spelling_among_many_is_understood(word: str, kind: str) -> None:
    data = document(*[change()] * MANY, change(word), *[change()] * MANY, md=CHANGE_LIST)

    told = tell(data)

    kinds = [entry.kind for entry in told.entries if isinstance(entry, Change)]
    assert kinds == [ChangeKind.UPDATED] * MANY + [ChangeKind(kind)] + [ChangeKind.UPDATED] * MANY
    assert [row.change for row in rows(data)] == kinds
    assert told.dialect is Dialect.V1_1


def test_a_change_whose_time_cannot_be_read_is_one_without_a_time() -> None:
    told = tell(
        document(*[change()] * MANY, change(time="soon"), *[change()] * MANY, md=CHANGE_LIST)
    )

    times = [entry.time for entry in told.entries if isinstance(entry, Change)]
    assert [index for index, time in enumerate(times) if time is None] == [MANY]
    assert len(times) == 2 * MANY + 1
    assert (told.refusals, told.codes) == ([], ["time-invalid"])


@pytest.mark.parametrize("word", ["odd", ""])
@pytest.mark.parametrize("as_rows", [True, False])
def test_an_unknown_change_among_many_costs_its_entry_alone(word: str, as_rows: bool) -> None:
    data = document(*[change()] * MANY, change(word), *[change()] * MANY, md=CHANGE_LIST)
    opened = open_document(data)

    given = [found.uri for found in (opened.rows() if as_rows else opened.entries())]

    assert (given, opened.refused) == (["http://a/1"] * 2 * MANY, 1)


@pytest.mark.parametrize("dated", [True, False])
def test_rows_show_the_dialect_as_entries_do(dated: bool) -> None:
    time = ' datetime="2013"' if dated else ""
    plain = (
        f'<url><loc>http://a/1</loc><lastmod>2013</lastmod><rs:md change="updated"{time}/></url>'
    )
    data = document(*[plain] * MANY, md=CHANGE_LIST)
    by_entry, by_row = open_document(data), open_document(data)

    assert len(list(by_entry.entries())) == len(list(by_row.rows())) == MANY

    assert by_entry.dialect is by_row.dialect is (Dialect.V1_1 if dated else Dialect.V1_0)


def test_forms_in_turn_are_all_read_in_order() -> None:
    kinds = [
        entry("http://a/1"),
        "<url><loc>http://a/2</loc></url>",
        "<url> <loc>http://a/3</loc> </url>",
    ]

    told = tell(document(*kinds * MANY))

    assert uris(told.entries) == ["http://a/1", "http://a/2", "http://a/3"] * MANY
