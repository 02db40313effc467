"""Entries that are all alike are read many at a time; a fault among them still costs but one."""

from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.model.entries import Change, Resource
from tests.support.documents.text import CHANGE_LIST, document, open_document, tell

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


def test_a_change_whose_time_cannot_be_read_is_one_without_a_time() -> None:
    told = tell(
        document(*[change()] * MANY, change(time="soon"), *[change()] * MANY, md=CHANGE_LIST)
    )

    times = [entry.time for entry in told.entries if isinstance(entry, Change)]
    assert [index for index, time in enumerate(times) if time is None] == [MANY]
    assert len(times) == 2 * MANY + 1
    assert (told.refusals, told.codes) == ([], ["time-invalid"])
