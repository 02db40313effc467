"""What ``doctor`` says of what was found: nothing is looked at here."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.app.checks.diagnosis import (
    CheckResult,
    FolderFacts,
    MachineFacts,
    SourceFacts,
    check_folder,
    check_machine,
    check_source,
)
from resourcesync.errors import ConfigurationError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MACHINE = MachineFacts(
    versions={"Python": "3.12.1", "libcurl": "8.10.0", "SQLite": "3.45.1", "expat": "2.6.4"},
    http2=True,
    descriptors=1024,
    now=NOW,
    scratch="/tmp",
    scratch_room=5_000_000_000,
    config="resourcesync.toml",
)
PLACE = FolderFacts(
    folder="museum",
    is_mirror=True,
    is_case_sensitive=True,
    preserves_unicode_forms=True,
    room=5_000_000_000,
    inodes=1_000_000,
)
REACH = SourceFacts(
    origin="https://museum.example",
    date=NOW,
    now=NOW,
    tls="TLSv1.3",
    expires=NOW + timedelta(days=60, hours=1),
)


def bad(verdicts: Any) -> list[CheckResult]:
    return [verdict for verdict in verdicts if verdict.level != "ok"]


@pytest.mark.parametrize(
    ("change", "check", "level", "told"),
    [
        ({"versions": {"expat": "2.5.0"}}, "expat", "warning", "2.6.0"),
        ({"versions": {"libcurl": "8.3.0"}}, "libcurl", "warning", "8.4.0"),
        ({"versions": {"libcurl": "7.29.0"}}, "libcurl", "problem", "too old"),
        ({"versions": {"SQLite": "3.37.2"}}, "sqlite", "problem", "3.38"),
        ({"http2": False}, "http2", "warning", "HTTP/2"),
        ({"descriptors": 255}, "descriptors", "warning", "255"),
        ({"now": datetime(1970, 1, 1, tzinfo=UTC)}, "clock", "problem", "never set"),
        ({"scratch_room": None}, "temporary", "problem", "/tmp"),
        ({"scratch_room": 99_999_999}, "temporary", "problem", "100.0 MB"),
        ({"scratch_room": 999_999_999}, "temporary", "warning", "1,000.0 MB"),
        ({"mistakes": ("`x` is wrong",)}, "configuration", "problem", "`x` is wrong"),
        ({"warnings": ("no secret",)}, "configuration", "warning", "no secret"),
        (
            {"proxy_fault": ConfigurationError("HTTPS_PROXY is none", hint="unset it")},
            "proxy",
            "problem",
            "HTTPS_PROXY",
        ),
        ({"ca_file": "a.pem", "ca_fault": "gone"}, "authorities", "problem", "a.pem"),
    ],
)
def test_what_is_wrong_with_a_machine_is_said_with_what_to_do(
    change: dict[str, Any], check: str, level: str, told: str
) -> None:
    (found,) = bad(check_machine(replace(MACHINE, **change)))

    assert (found.check, found.level) == (check, level)
    assert told in found.text
    assert found.next_step


@pytest.mark.parametrize(
    ("change", "check", "level"),
    [
        ({"refusal": "Permission denied"}, "writing", "problem"),
        ({"room": 1}, "room", "problem"),
        ({"inodes": 999}, "inodes", "problem"),
        ({"inodes": 99_999}, "inodes", "warning"),
        ({"damage": "malformed", "repair": "move it away"}, "memory", "problem"),
        ({"has_marker": False}, "marker", "problem"),
        ({"lock_owner": "pid 1 on ops1"}, "lock", "warning"),
        ({"stale": 3, "stale_bytes": 9}, "stale", "warning"),
    ],
)
def test_what_is_wrong_with_a_mirror_is_said_with_what_to_do(
    change: dict[str, Any], check: str, level: str
) -> None:
    (found,) = bad(check_folder(replace(PLACE, **change)))

    assert (found.check, found.level) == (check, level)
    assert found.next_step


@pytest.mark.parametrize(
    ("change", "check", "level"),
    [
        ({"failure": "refused"}, "reach", "problem"),
        ({"failure": "self-signed", "is_tls_failure": True}, "tls", "problem"),
        ({"expires": NOW + timedelta(days=13, hours=23)}, "tls", "warning"),
        ({"date": None}, "clock", "warning"),
        ({"date": NOW - timedelta(seconds=61)}, "clock", "warning"),
        ({"date": NOW + timedelta(hours=25)}, "clock", "problem"),
        ({"robots_refuse": True}, "robots", "problem"),
        ({"crawl_delay": 30.0}, "robots", "warning"),
    ],
)
def test_what_is_wrong_with_a_source_is_said(
    change: dict[str, Any], check: str, level: str
) -> None:
    (found,) = bad(check_source(replace(REACH, **change)))

    assert (found.check, found.level) == (check, level)


def test_what_lies_behind_a_proxy_is_not_judged() -> None:
    (found,) = check_source(replace(REACH, proxy="http://proxy:3128", failure="refused"))

    assert (found.check, found.level) == ("proxy", "ok")
