"""The forms of values, and what the environment asks for."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError
from resourcesync.settings import environment, values
from resourcesync.settings.values import Limit

NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604800), ("1w", 604800), ("1.5h", 5400)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert values.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "5min", "-1s", "s", "1h30m", "1e3s", "٣s", "1 h"])
def test_a_number_without_a_unit_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        values.parse_duration(text)

    assert "90s" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("500", 500),
        ("500B", 500),
        ("10k", 10_000),
        ("10K", 10_000),
        ("5M", 5_000_000),
        ("2G", 2_000_000_000),
        ("1T", 10**12),
        ("64KiB", 65_536),
        ("1.5MiB", 1_572_864),
        ("2 GB", 2_000_000_000),
    ],
)
def test_a_size_counts_in_thousands_unless_it_says_otherwise(text: str, size: int) -> None:
    assert values.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "-1", "5x", "1ib", "1 000", "0x10", "1e6", "5 parsecs"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        values.parse_size(text)


@pytest.mark.parametrize(("text", "rate"), [("5", 5), ("5/s", 5), ("30/m", 0.5), ("0.5", 0.5)])
def test_a_rate_is_requests_in_a_time(text: str, rate: float) -> None:
    assert values.parse_rate(text) == rate


@pytest.mark.parametrize("text", ["0", "0/s", "", "5/d", "-5", "fast"])
def test_a_rate_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        values.parse_rate(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-11-20T11:04:09Z", datetime(2026, 11, 20, 11, 4, 9, tzinfo=UTC)),
        ("2026-11-20T11:04:09+02:00", datetime(2026, 11, 20, 9, 4, 9, tzinfo=UTC)),
        ("-7d", NOW - timedelta(days=7)),
        ("-90s", NOW - timedelta(seconds=90)),
        ("yesterday", NOW - timedelta(days=1)),
    ],
)
def test_a_moment_is_a_w3c_time_or_lies_before_now(text: str, moment: datetime) -> None:
    assert values.resolve_moment(values.parse_moment(text), NOW) == moment


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-13-01", "-7", "7d", "-999999999d", "--1d"])
def test_what_is_no_moment_is_refused_or_lies_before_all_time(text: str) -> None:
    if text == "-999999999d":
        moment = values.resolve_moment(values.parse_moment(text), NOW)
        assert moment == datetime.min.replace(tzinfo=UTC)
    else:
        with pytest.raises(ConfigurationError):
            values.parse_moment(text)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("0", Limit(number=0)),
        ("250", Limit(number=250)),
        ("10%", Limit(percent=10.0)),
        ("2.5 %", Limit(percent=2.5)),
        ("100%", Limit(percent=100.0)),
    ],
)
def test_a_limit_is_a_number_or_a_share(text: str, limit: Limit) -> None:
    assert values.parse_limit(text) == limit


@pytest.mark.parametrize("text", ["", "%", "101%", "-1", "ten", "1,000"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        values.parse_limit(text)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("Authorization: Bearer abc:def", ("Authorization", "Bearer abc:def")),
        ("X-Empty:", ("X-Empty", "")),
        ("Accept-Language:cs", ("Accept-Language", "cs")),
    ],
)
def test_a_header_is_a_name_and_a_value(text: str, header: tuple[str, str]) -> None:
    assert values.parse_header(text) == header


@pytest.mark.parametrize("text", ["", "nothing", ": value", "a b: c", "X: a\r\nY: b", "X: a\x00"])
def test_a_header_that_could_hide_another_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        values.parse_header(text)


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_a_configuration_error(text: str) -> None:
    parsers = (
        values.parse_duration,
        values.parse_size,
        values.parse_rate,
        values.parse_moment,
        values.parse_limit,
        values.parse_header,
    )
    for parse in parsers:
        with suppress(ConfigurationError):
            parse(text)


@given(st.integers(0, 10**9), st.sampled_from("smhdw"))
def test_durations_never_come_out_negative(number: int, unit: str) -> None:
    if number < 10**9:
        assert values.parse_duration(f"{number}{unit}") >= number


def test_trusted_authorities_come_from_the_usual_variable() -> None:
    assert environment.ca_file({"SSL_CERT_FILE": "/etc/ca.pem"}) == "/etc/ca.pem"
    assert environment.ca_file({}) == ""
