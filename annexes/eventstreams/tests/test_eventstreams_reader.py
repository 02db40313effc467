"""Server-Sent Events are read as HTML says, however they are cut, and in bounded memory."""

from hypothesis import example, given
from hypothesis import strategies as st

from resourcesync_eventstreams.event_stream import MAX_EVENT, EventReader, ServerSentEvent
from tests.support.storage.memory_use import memory_use


def read(*chunks: bytes, last_id: str = "") -> list[ServerSentEvent]:
    reader = EventReader(last_id)
    return [event for chunk in chunks for event in reader.read(chunk)]


def said(*chunks: bytes) -> list[tuple[str, bytes, str]]:
    return [(event.kind, event.data, event.last_id) for event in read(*chunks) if event.has_data]


def test_what_the_standard_shows_is_read_as_it_says() -> None:
    assert said(b"data: YHOO\ndata: +2\ndata: 10\n\n") == [("message", b"YHOO\n+2\n10", "")]
    stream = (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n"
    )
    assert said(stream) == [
        ("message", b"first event", "1"),
        ("message", b"second event", ""),
        ("message", b" third", ""),
    ]
    assert said(b"data\n\ndata\ndata\n\ndata:") == [("message", b"", ""), ("message", b"\n", "")]
    assert said(b"data:test\n\ndata: test\n\n") == [("message", b"test", "")] * 2


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
