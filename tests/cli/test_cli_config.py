"""The forms of values, and what the environment asks for."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import resolve_moment
from resourcesync.settings import environment, schema

NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)


def moment(text: str) -> datetime:
    return resolve_moment(schema.parse_moment(text), NOW)


Parser = Callable[[str], Any]
GOOD: Final[dict[Parser, dict[str, Any]]] = {
    schema.parse_duration: {
        "90s": 90, "15m": 900, "2h": 7200, "7d": 604800, "1w": 604800, "1.5h": 5400,
    },
    schema.parse_size: {
        "0": 0, "500": 500, "500B": 500, "10k": 10_000, "10K": 10_000, "2G": 2_000_000_000,
        "1T": 10**12, "64KiB": 65_536, "1.5MiB": 1_572_864, "2 GB": 2_000_000_000,
    },
    schema.parse_rate: {"5": 5, "5/s": 5, "30/m": 0.5, "0.5": 0.5},
    moment: {
        "2026": datetime(2026, 1, 1, tzinfo=UTC),
        "2026-11-20T11:04:09Z": datetime(2026, 11, 20, 11, 4, 9, tzinfo=UTC),
        "2026-11-20T11:04:09+02:00": datetime(2026, 11, 20, 9, 4, 9, tzinfo=UTC),
        "-7d": NOW - timedelta(days=7),
        "yesterday": NOW - timedelta(days=1),
        "-999999999d": datetime.min.replace(tzinfo=UTC),
    },
    schema.parse_limit: {
        "0": Limit(number=0), "250": Limit(number=250), "2.5 %": Limit(percent=2.5),
        "100%": Limit(percent=100.0),
    },
    schema.parse_header: {
        "Authorization: Bearer abc:def": ("Authorization", "Bearer abc:def"),
        "X-Empty:": ("X-Empty", ""),
        "Accept-Language:cs": ("Accept-Language", "cs"),
    },
}  # fmt: skip
BAD: Final[dict[Parser, tuple[str, ...]]] = {
    schema.parse_duration: ("", "30", "5min", "-1s", "s", "1h30m", "1e3s", "٣s", "1 h"),
    schema.parse_size: ("", "k", "-1", "5x", "1ib", "1 000", "0x10", "1e6", "5 parsecs"),
    schema.parse_rate: ("0", "0/s", "", "5/d", "-5", "fast"),
    schema.parse_moment: ("", "tomorrow", "2026-13-01", "-7", "7d", "--1d"),
    schema.parse_limit: ("", "%", "101%", "-1", "ten", "1,000"),
    schema.parse_header: ("", "nothing", ": value", "a b: c", "X: a\r\nY: b", "X: a\x00"),
}


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [(parse, text, value) for parse, told in GOOD.items() for text, value in told.items()],
)
def test_a_value_has_a_form_that_people_write(parse: Parser, text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"), [(parse, text) for parse, texts in BAD.items() for text in texts]
)
def test_what_could_be_understood_in_two_ways_is_refused(parse: Parser, text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_a_configuration_error(text: str) -> None:
    for parse in BAD:
        with suppress(ConfigurationError):
            parse(text)


def test_trusted_authorities_come_from_the_usual_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/ca.pem")
    assert environment.ca_file() == "/etc/ca.pem"
