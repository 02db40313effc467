"""What ``doctor`` says of the answer of a Source: nothing is asked here."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.adapters.server_probe import Probe
from resourcesync.app.diagnosis import judge_answer

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ORIGIN = "https://museum.example"
ANSWER = Probe(date=NOW, tls="TLSv1.3", expires=NOW + timedelta(days=60, hours=1))


@pytest.mark.parametrize(
    ("change", "check", "level", "told"),
    [
        ({"failure": "refused"}, "clock", "problem", "does not answer: refused"),
        ({"failure": "self-signed", "is_tls_failure": True}, "tls", "problem", "self-signed"),
        ({"tls": ""}, "tls", "warning", "no TLS"),
        ({"expires": NOW + timedelta(days=13, hours=23)}, "tls", "warning", "in 13 days"),
        ({"date": None}, "clock", "warning", "no time"),
        ({"date": NOW - timedelta(seconds=61)}, "clock", "warning", "61 s ahead of"),
        ({"date": NOW + timedelta(hours=25)}, "clock", "problem", "90,000 s behind"),
    ],
)
def test_what_is_wrong_with_a_source_is_said(
    change: dict[str, Any], check: str, level: str, told: str
) -> None:
    verdicts = judge_answer(ORIGIN, replace(ANSWER, **change), NOW)
    (found,) = (verdict for verdict in verdicts if verdict.level != "ok")

    assert (found.check, found.level) == (check, level)
    assert told in found.text
