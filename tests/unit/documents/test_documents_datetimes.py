"""The datetimes of X22: one strict profile, whatever else Python would take."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import end_of_lastmod, format_w3c, parse_w3c, to_microseconds
from tests.support.documents.text import document, tell, uris, url


def utc(*parts: int) -> datetime:
    year, month, day, *rest = parts
    return datetime(year, month, day, tzinfo=UTC) + timedelta(
        **dict(zip(("hours", "minutes", "seconds", "microseconds"), rest, strict=False))
    )


GOOD = {
    "2013": utc(2013, 1, 1),
    "2013-02": utc(2013, 2, 1),
    "2013-02-03": utc(2013, 2, 3),
    "2013-02-03T04:05Z": utc(2013, 2, 3, 4, 5),
    "2013-02-03T04:05:06Z": utc(2013, 2, 3, 4, 5, 6),
    "2013-02-03T04:05:06.7Z": utc(2013, 2, 3, 4, 5, 6, 700_000),
    "2013-02-03T04:05:06.123456Z": utc(2013, 2, 3, 4, 5, 6, 123_456),
    "2013-02-03T04:05:06.1234569Z": utc(2013, 2, 3, 4, 5, 6, 123_456),
    "2013-02-03T04:05:06+01:00": utc(2013, 2, 3, 3, 5, 6),
    "2013-02-03T04:05:06-14:00": utc(2013, 2, 3, 18, 5, 6),
    "2013-02-03T04:05:06.500000-00:30": utc(2013, 2, 3, 4, 35, 6, 500_000),
    "2013-02-03T04:05:06": utc(2013, 2, 3, 4, 5, 6),
    "2018-11-06T17:41:16.901455": utc(2018, 11, 6, 17, 41, 16, 901_455),
    "0001-01-01T00:00:00Z": utc(1, 1, 1),
    "9999-12-31T23:59:59.999999Z": utc(9999, 12, 31, 23, 59, 59, 999_999),
    "2012-02-29": utc(2012, 2, 29),
}

LOOSE = {
    "2013-02-03 04:05:06": utc(2013, 2, 3, 4, 5, 6),
    "2013-02-03 04:05": utc(2013, 2, 3, 4, 5),
    "2013-02-03 04:05:06Z": utc(2013, 2, 3, 4, 5, 6),
    "2013-02-03 04:05:06 UTC": utc(2013, 2, 3, 4, 5, 6),
    "2013-02-03 04:05:06 GMT": utc(2013, 2, 3, 4, 5, 6),
    "2013-02-03 04:05:06+00": utc(2013, 2, 3, 4, 5, 6),
    "2013-02-03 04:05:06.789-05": utc(2013, 2, 3, 9, 5, 6, 789_000),
    "2013-02-03 04:05:06 +0130": utc(2013, 2, 3, 2, 35, 6),
    "2013-02-03t04:05:06Z": utc(2013, 2, 3, 4, 5, 6),
    "2013-02-03T04:05:06z": utc(2013, 2, 3, 4, 5, 6),
    "2013-02-03T04:05:06+0100": utc(2013, 2, 3, 3, 5, 6),
    "2013-02-03T04:05:06+01": utc(2013, 2, 3, 3, 5, 6),
    "2013-02-03T04:05:06,5Z": utc(2013, 2, 3, 4, 5, 6, 500_000),
    "2013-02-03T04:05:06,500000Z": utc(2013, 2, 3, 4, 5, 6, 500_000),
    "2013-2-3": utc(2013, 2, 3),
    "2013/02/03": utc(2013, 2, 3),
    "2013-02-03Z": utc(2013, 2, 3),
    "2013-02-03+02:00": utc(2013, 2, 3),
    "2013-02-03 4:05:06": utc(2013, 2, 3, 4, 5, 6),
    "Sun, 03 Feb 2013 04:05:06 GMT": utc(2013, 2, 3, 4, 5, 6),
    "Sun, 3 Feb 2013 04:05:06 +0200": utc(2013, 2, 3, 2, 5, 6),
    "03 Feb 2013 04:05 EST": utc(2013, 2, 3, 9, 5),
    "Sunday, 03-Feb-2013 4:05:06 UTC": utc(2013, 2, 3, 4, 5, 6),
    "3 February 2013": utc(2013, 2, 3),
}
"""What is not a W3C Datetime, and means one moment beyond doubt."""

BAD = [
    "0000-00-00",
    "0000-00-00 00:00:00",
    "Mon, 06 May 2024 07:08:09 A",
    "Mon, 06 Mai 2024 07:08:09 GMT",
    "06 May 24 07:08:09 GMT",
    "06/05/2024",
    "1714979289",
    "2013-02-03 24:00:00",
    "2013-02-03 04:05.5",
    "2013-02-03  04:05:06",
    "2013-02-03 04:05:06 CET",
    "2013-02-03 04:05:06 +1500",
    "",
    "0000-01-01",
    "10000-01-01",
    "2013-13-01",
    "2013-02-30",
    "2013-02-29",
    "2013-2/3",
    "13-02-03",
    "2013-02-03T24:00:00Z",
    "2013-02-03T24:00:00.000000Z",
    "2013-02-03T23:60:00Z",
    "2013-02-03T04:05:06+24:00",
    "2013-02-03T04:05:06+14:60",
    "2013-02-03T04:05:06.Z",
    "2013-02-03T04:05:06." + "1" * 1000 + "Z",
    "2013-W05-7",
    "2013-W05-7T04:05:06Z",
    "2013034T040506Z",
    "20130203T040506Z",
    "2013-02-03T040506Z",
    "2013-02-03T040506.1Z",
    "2013-02-03T04:05:06Z\n",
    " 2013-02-03T04:05:06Z",
    "2013-02-03T04:05:06ZZ",
    "2013-02-03T04:05:06.12345ZZ",
    "2013-02-03T04:05:06.1+0100Z",
    "2013-02-03T04:05:06.1+01:0Z",
    "2013-02-03T04Z",
    "\uff12\uff10\uff11\uff13-02-03T04:05:06Z",
    "2013-02-03T04:05:0\u0663Z",
    "-013-02-03T04:05:06Z",
    "+013-02-03T04:05:06Z",
    "2013-02-03T-4:05:06Z",
    "2013-02-03T 4:05:06Z",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
    "2013-01-03T11200:00Z",
    "now",
]


@pytest.mark.parametrize(("text", "moment"), GOOD.items())
def test_a_w3c_datetime_is_a_moment_in_utc(text: str, moment: datetime) -> None:
    parsed = parse_w3c(text)

    assert parsed == moment
    assert parsed.utcoffset() == timedelta()
    assert parse_w3c(format_w3c(parsed)) == parsed
    assert isinstance(to_microseconds(parsed), int)


@pytest.mark.parametrize("text", [*BAD, *LOOSE])
def test_anything_else_is_no_datetime(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_w3c(text)


W3C = re.compile(  # of W3C Datetime, with times of no zone, and as many digits as there may be
    r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}"
    r"(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,30})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)


@given(
    st.text("0123456789-:TZ.W+, ", min_size=8, max_size=28)
    | st.from_regex(W3C, fullmatch=True)
    | st.from_regex(r"[0-9]{4}(.[0-9]{2}){5}(.[0-9]{6})?.", fullmatch=True)
    | st.from_regex(r".{4}-.{2}-.{2}T.{2}:.{2}:.{2}(\..{6})?Z", fullmatch=True)
)
def test_the_quick_way_of_reading_a_time_takes_only_what_the_grammar_takes(text: str) -> None:
    try:
        moment = parse_w3c(text)
    except ValueError:
        return
    assert W3C.fullmatch(text)
    assert moment.utcoffset() is not None


def plain(text: str, number: int = 0) -> str:
    return url(f"http://a/{number}", f"<lastmod>{text}</lastmod>")


@pytest.mark.parametrize("text", [text for text in BAD if text == text.strip() != ""])
def test_a_bad_datetime_among_many_good_ones_costs_itself_alone(text: str) -> None:
    good = "2013-02-03T04:05:06Z" if len(text) != 27 else "2013-02-03T04:05:06.123456Z"
    before = [plain(good, number) for number in range(1000)]
    data = document(*before, plain(text, 9999), *before[:200])

    told = tell(data)

    assert told.refusals == []
    assert Resource(uri="http://a/9999") in told.entries
    assert (
        len([entry for entry in told.entries if isinstance(entry, Resource) and entry.lastmod])
        == 1200
    )
    assert [(tolerated.code, tolerated.line) for tolerated in told.tolerated] == [
        ("time-invalid", 1004)
    ]


@pytest.mark.parametrize(("text", "moment"), LOOSE.items())
def test_a_time_that_a_database_wrote_is_read_alone_and_among_many(
    text: str, moment: datetime
) -> None:
    told = tell(document(*(plain(text, number) for number in range(1500))))

    assert {entry.lastmod for entry in told.entries if isinstance(entry, Resource)} == {moment}
    assert (told.codes, told.refusals) == (["time-spelled"], [])
    assert set(tell(document(plain(text, 1))).entries) == {
        Resource(uri="http://a/1", lastmod=moment)
    }


def test_times_of_different_length_that_look_alike_when_joined_are_told_apart() -> None:
    name, other = "2013-02-03T04:05:06", "Z2013-02-03T04:05:06Z"
    data = document(*(plain(name if n % 2 == 0 else other, n) for n in range(1500)))

    told = tell(data)

    timed = [
        entry for entry in told.entries if isinstance(entry, Resource) and entry.lastmod is not None
    ]
    assert uris(timed) == [f"http://a/{n}" for n in range(0, 1500, 2)]
    assert len(told.entries) == 1500


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2013-02-03", utc(2013, 2, 4, 12)),  # in the last time zone it is still that day
        ("2013-02-03T00:00:00Z", utc(2013, 2, 4, 12)),  # most who write this know the day only
        ("2013-02-03T04:05Z", utc(2013, 2, 3, 4, 6)),
        ("2013-02-03T04:05:06Z", utc(2013, 2, 3, 4, 5, 7)),
        ("2013-02-03T04:05:06.7Z", utc(2013, 2, 3, 4, 5, 7)),
        ("1950-02-03T04:05:06.7Z", utc(1950, 2, 3, 4, 5, 7)),
    ],
)
def test_a_lastmod_is_over_when_all_that_it_may_name_has_passed(text: str, end: datetime) -> None:
    assert end_of_lastmod(to_microseconds(parse_w3c(text))) == to_microseconds(end)
