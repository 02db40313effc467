"""Server-Sent Events are read as HTML says; those of Wikimedia tell what became of pages."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import Change
from resourcesync.ports.originals import Omission
from resourcesync_eventstreams.event_stream import MAX_EVENT, EventReader, ServerSentEvent
from resourcesync_eventstreams.recent_changes import RecentChangeFilter, decode_recent_change
from tests.support.storage.memory_use import memory_use


def read(*chunks: bytes, last_id: str = "") -> list[ServerSentEvent]:
    reader = EventReader(last_id)
    return [event for chunk in chunks for event in reader.read(chunk)]


def whole(*chunks: bytes) -> list[tuple[str, bytes, str]]:
    return [(event.kind, event.data, event.last_id) for event in read(*chunks) if event.has_data]


def test_what_the_standard_shows_is_read_as_it_says() -> None:
    assert whole(b"data: YHOO\ndata: +2\ndata: 10\n\n") == [("message", b"YHOO\n+2\n10", "")]
    stream = (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n"
    )
    assert whole(stream) == [
        ("message", b"first event", "1"),
        ("message", b"second event", ""),
        ("message", b" third", ""),
    ]
    assert whole(b"data\n\ndata\ndata\n\ndata:") == [("message", b"", ""), ("message", b"\n", "")]
    assert whole(b"data:test\n\ndata: test\n\n") == [("message", b"test", "")] * 2


def test_an_id_holds_until_another_one_comes_and_alone_is_no_event() -> None:
    (alone, event) = read(b"id: 7\n\ndata: a\n\n")
    assert (alone.last_id, alone.has_data) == ("7", False)
    assert (event.last_id, event.has_data) == ("7", True)
    assert [event.last_id for event in read(b"data: a\n\n", last_id="3")] == ["3"]
    assert [event.last_id for event in read(b"id: a\0b\ndata: a\n\n", last_id="3")] == ["3"]
    assert read(b"event: x\n\n:\n\n\n\n") == []


def test_a_mark_of_the_byte_order_is_passed_over_and_a_retry_is_heard() -> None:
    reader = EventReader()
    (event,) = reader.read(b"\xef\xbb\xbfretry: 1500\nretry: soon\nevent: updated\ndata: x\n\n")

    assert (event.kind, event.data, reader.retry) == ("updated", b"x", 1.5)


LINES = st.sampled_from(
    [b"data: a", b"data:b", b"data", b"id: 1", b"id: 22", b"event: x", b": hm", b"", b"", b"odd"]
)


STARTS = st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2, b"\xef", b"\xef\xbb"])


@given(STARTS, st.lists(LINES, max_size=20), st.lists(st.integers(0, 200), max_size=12))
@example(b"\xef\xbb\xbf", [b"data: a", b"", b"data:b", b""], [0, 1, 2])
def test_however_it_is_cut_and_its_lines_end_it_says_the_same(
    start: bytes, lines: list[bytes], cuts: list[int]
) -> None:
    whole = start + b"".join(line + b"\n" for line in lines)
    expected = read(whole)
    for end in (b"\n", b"\r", b"\r\n"):
        other = start + b"".join(line + end for line in lines) + b"data: never dispatched"
        places = sorted({min(cut, len(other)) for cut in cuts})
        parts = [other[a:b] for a, b in zip([0, *places], [*places, len(other)], strict=True)]
        assert read(*parts) == expected


def test_an_event_that_is_too_large_loses_its_data_and_nothing_else() -> None:
    many = [b"data: " + b"x" * 1000 + b"\n"] * 2_000
    (event, after) = read(b"id: 1\n", *many, b"id: 2\n\n", b"data: a\n\n")
    assert (event.is_whole, event.last_id, event.has_data) == (False, "2", True)
    assert len(event.data) <= MAX_EVENT
    assert (after.is_whole, after.data) == (True, b"a")

    reader = EventReader()
    events = list(reader.read(b"id: 5\ndata: "))
    with memory_use() as used:
        for _ in range(16):
            events += reader.read(b"y" * 262_144)
            assert used() <= MAX_EVENT + 2 * 262_144
    events += reader.read(b"\n\ndata: b\n\n")
    assert [(event.is_whole, event.last_id) for event in events] == [(False, "5"), (True, "5")]
    assert events[0].data == b"y" * 200


PAGE = "https://en.wikipedia.org/wiki/"


def said(title: str = "Grace Hopper", **more: Any) -> dict[str, Any]:
    """Return an event with the fields of Wikimedia's that tell of a page."""
    uri = PAGE + title.replace(" ", "_")
    return {
        "$schema": "/mediawiki/recentchange/1.0.0",
        "meta": {"uri": uri, "domain": "en.wikipedia.org", "dt": "2026-03-03T11:15:25.048Z"},
        "type": "edit",
        "namespace": 0,
        "title": title,
        "title_url": uri,
        "timestamp": 1772536523,
        "server_url": "https://en.wikipedia.org",
        "server_name": "en.wikipedia.org",
        "wiki": "enwiki",
        **more,
    }


def log(kind: str, action: str, title: str = "Grace Hopper", **more: Any) -> dict[str, Any]:
    return said(title, type="log", log_type=kind, log_action=action, log_id=7, **more)


def told(event: dict[str, Any], **values: str) -> list[tuple[str, str]]:
    heard = _hear(json.dumps(event).encode(), **values)
    assert all(isinstance(entry, Change) for entry in heard.entries)
    return [(entry.kind.value, entry.uri) for entry in heard.entries if isinstance(entry, Change)]


def _hear(data: bytes, kind: str = "message", **values: str) -> Any:
    event = ServerSentEvent(
        kind=kind, data=data, last_id="1", size=len(data), is_whole=True, has_data=True
    )
    return decode_recent_change(event, None, chosen=RecentChangeFilter.parse(values))


@pytest.mark.founding(
    "WWW §2.2", "Edits, moves, uploads and deletions of a wiki", "`publish eventstreams:URL`"
)
@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (said(type="new"), "created"),
        (said(type="edit"), "updated"),
        (log("delete", "delete"), "deleted"),
        (log("delete", "restore"), "created"),
        (log("upload", "upload", "File:A.jpg", namespace=6), "created"),
        (log("upload", "overwrite", "File:A.jpg", namespace=6), "updated"),
        (log("import", "interwiki"), "created"),
        (log("delete", "revision"), ""),
        (log("block", "block", "User:X", namespace=2), ""),
        (said(type="categorize", namespace=14), ""),
        (said(type="external"), ""),
        (said(type="log"), ""),
    ],
)
def test_each_kind_of_event_means_one_thing(event: dict[str, Any], kind: str) -> None:
    assert told(event) == ([(kind, event["meta"]["uri"])] if kind else [])


def test_a_move_creates_the_new_page_and_the_old_one_leads_there_or_is_gone() -> None:
    there = ("created", f"{PAGE}Admiral_Hopper")
    params = {"target": "Admiral Hopper", "noredir": "0"}
    assert told(log("move", "move", log_params=params)) == [
        ("updated", f"{PAGE}Grace_Hopper"),
        there,
    ]
    for noredir in ("1", 1):
        gone = log("move", "move_redir", log_params={**params, "noredir": noredir})
        assert told(gone) == [("deleted", f"{PAGE}Grace_Hopper"), there]
    assert told(log("move", "move", log_params={**params, "target": "A/Bä & c?"}))[1] == (
        "created",
        f"{PAGE}A/B%C3%A4_%26_c%3F",
    )
    assert told(log("move", "move", log_params="[]")) == [("updated", f"{PAGE}Grace_Hopper")]
    elsewhere = log("move", "move", log_params=params)
    elsewhere["meta"]["uri"] = "https://en.wikipedia.org/?curid=5"
    assert told(elsewhere)[1] == there


def test_canaries_and_what_was_not_chosen_are_dropped() -> None:
    assert told(said(namespace=1), namespace="0,14") == told(said(), wiki="dewiki") == []
    assert told(said(namespace=14), namespace="0,14", wiki="dewiki,enwiki") != []
    canary = said()
    canary["meta"]["domain"] = "canary"
    assert told(canary) == []
    assert _hear(json.dumps(said()).encode(), kind="heartbeat").entries == ()


def test_a_template_gives_the_uris() -> None:
    here = "https://mirror.example/{wiki}/{title}?ns={namespace}&of={server_name}"
    assert told(said("Öl & Gas/Ä"), uri=here) == [
        ("updated", "https://mirror.example/enwiki/%C3%96l_%26_Gas/%C3%84?ns=0&of=en.wikipedia.org")
    ]
    params = {"target": "There", "noredir": "1"}
    assert told(log("move", "move", log_params=params), uri="{server_url}/w/{title}") == [
        ("deleted", "https://en.wikipedia.org/w/Grace_Hopper"),
        ("created", "https://en.wikipedia.org/w/There"),
    ]


@pytest.mark.parametrize(
    "values",
    [
        {"uri": "https://h/{wiki}"},
        {"uri": "https://h/{title"},
        {"uri": "https://h/{}{title}"},
        {"uri": "https://h/{title.x}"},
        {"namespace": "main"},
    ],
)
def test_what_cannot_be_chosen_is_a_mistake(values: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        RecentChangeFilter.parse(values)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{]",
        b'{"meta": 5}',
        b'{"meta": {"uri": 7}}',
        b'{"meta": {"dt": "yesterday"}}',
        b'{"timestamp": 999999999999999}',
        b'{"namespace": "x"}',
    ],
)
def test_what_is_no_such_event_is_left_out(data: bytes) -> None:
    heard = _hear(data)
    assert [type(entry) for entry in heard.entries] == [Omission]
    assert heard.moment is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(said())), JSON)
def test_whatever_a_field_holds_nothing_is_raised(name: str, value: object) -> None:
    for event in (said(), log("move", "move", log_params={"target": "T"})):
        heard = _hear(json.dumps({**event, name: value}).encode())
        assert len(heard.entries) <= 2


def test_an_event_that_is_nested_without_end_is_left_out() -> None:
    (omission,) = _hear(b'{"log_params":' + b"[" * 200_000).entries

    assert isinstance(omission, Omission)
