"""The alert rules that ``config alerts`` prints: each fires when it is to, and only then."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said

PROMTOOL = shutil.which("promtool") or ""
pytestmark = pytest.mark.skipif(not PROMTOOL, reason="promtool (of Prometheus) is not installed")

MIRROR = '{mirror="a", instance="h:1", job="rs"}'
BUILD = 'resourcesync_build_info{version="1", command="watch", instance="h:1", job="rs"}'
SERVE = 'resourcesync_build_info{version="1", command="serve", instance="h:2", job="rs"}'
DAYS = 86_400


class Case(NamedTuple):
    """Series of one value a minute, and the alert that fires at the end of ten hours; or none."""

    alert: str
    fires: bool
    series: Mapping[str, str]
    summary: str = ""
    labels: Mapping[str, str] = {}


def state(word: str, value: str = "1+0x600") -> dict[str, str]:
    return {f'resourcesync_mirror_state{{mirror="a", state="{word}"}}': value}


def of(name: str, value: float | str) -> dict[str, str]:
    text = value if isinstance(value, str) else f"{value:g}+0x600"
    return {f"resourcesync_mirror_{name}{MIRROR}": text}


CASES = [
    Case(
        "ResourcesyncDown",
        True,
        {SERVE: "1+0x600"},
        "no metrics of `resourcesync watch`: it does not run, or cannot be reached",
        {"command": "watch"},
    ),
    Case("ResourcesyncDown", False, {BUILD: "1+0x600"}),
    Case(  # one of two
        "ResourcesyncDown",
        True,
        {BUILD: "1+0x600", BUILD.replace("h:1", "h:3"): "1+0x60 stale"},
        "no metrics of `resourcesync watch`: it does not run, or cannot be reached",
        {"instance": "h:3", "job": "rs"},
    ),
    Case(  # an upgrade
        "ResourcesyncDown",
        False,
        {BUILD: "1+0x60 stale", BUILD.replace('"1"', '"2"'): "_x60 1+0x540"},
    ),
    Case("MirrorUnreadable", True, of("readable", 0), "the state of a cannot be read"),
    Case("MirrorUnreadable", False, of("readable", 1)),
    Case(
        "MirrorLate",
        True,
        of("lag_seconds", 7_300) | of("max_lag_seconds", 3_600),
        "a was last found in sync 2h 1m 40s ago",
    ),
    Case("MirrorLate", False, of("lag_seconds", 7_200) | of("max_lag_seconds", 3_600)),
    Case(
        "MirrorLate",
        True,
        of("lag_seconds", 2 * DAYS + 60),
        "a was last found in sync 2d 0h 1m 0s ago",
    ),
    Case("MirrorLate", False, of("lag_seconds", 2 * DAYS)),
    Case("MirrorLate", False, of("lag_seconds", 3 * DAYS) | of("max_lag_seconds", 2 * DAYS)),
    Case(
        "MirrorWithoutSuccess",
        True,
        of("last_success_timestamp_seconds", 0) | of("interval_seconds", 3_600),
        "a: three pulls did not find it in sync",
    ),
    Case(
        "MirrorWithoutSuccess",
        False,
        of("last_success_timestamp_seconds", "0+60x600") | of("interval_seconds", 3_600),
    ),
    *(
        Case(
            "MirrorNeverInSync",
            True,
            state(word),
            f"a was never in sync; now it is: {word}",
            {"state": word},
        )
        for word in ("new", "behind", "failing", "stopped")
    ),
    Case("MirrorNeverInSync", False, state("syncing")),
    Case(
        "MirrorNeverInSync",
        False,
        state("behind")
        | {'resourcesync_mirror_last_success_timestamp_seconds{mirror="a"}': "1x600"},
    ),
    Case("MirrorFailing", True, state("failing"), "the pulls of a fail", {"state": "failing"}),
    Case("MirrorFailing", False, state("failing", "0+0x590 1+0x10")),
    Case(
        "MirrorStopped",
        True,
        state("stopped"),
        "a: a safety limit holds deletions back",
        {"state": "stopped"},
    ),
    Case(  # once, though both say it; and also if the last pull failed
        "MirrorStopped",
        True,
        state("stopped") | {'resourcesync_mirror_held_deletions{mirror="a"}': "4+0x600"},
        "a: a safety limit holds deletions back",
    ),
    Case("MirrorStopped", False, state("stopped", "0+0x600") | of("held_deletions", 0)),
    Case(
        "MirrorDamaged",
        True,
        {f"resourcesync_audit_accuracy_ratio{MIRROR}": "0.999+0x600"},
        "an audit found copies of a that are not as listed",
    ),
    Case("MirrorDamaged", False, {f"resourcesync_audit_accuracy_ratio{MIRROR}": "1+0x600"}),
    Case(
        "MirrorDiskFull",
        True,
        of("filesystem_avail_bytes", 4e9) | of("filesystem_size_bytes", 100e9),
        "the disk of a is nearly full",
    ),
    Case(
        "MirrorDiskFull",
        True,
        of("filesystem_avail_bytes", "90000000000-50000000x600")
        | of("filesystem_size_bytes", 100e9),
        "the disk of a is nearly full",
    ),
    Case(
        "MirrorDiskFull",
        False,
        of("filesystem_avail_bytes", 6e9) | of("filesystem_size_bytes", 100e9),
    ),
    Case(
        "SourceCertificateEnds",
        True,
        of("source_certificate_expiry_timestamp_seconds", 3 * DAYS),
        "the certificate of the Source of a ends within three days",
    ),
    Case(
        "SourceCertificateEnds",
        False,
        of("source_certificate_expiry_timestamp_seconds", 4 * DAYS),
    ),
]


@pytest.fixture
def rules(said: Said, tmp_path: Path) -> Path:
    assert run(["config", "alerts"]) == 0
    path = tmp_path / "rules.yml"
    path.write_text(said.readouterr().out)
    return path


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROMTOOL, *words], check=False, capture_output=True, text=True)


def rules_of(path: Path) -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(path.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_promtool_finds_no_fault_in_the_rules(rules: Path) -> None:
    ran = promtool("check", "rules", "--lint-fatal", str(rules))

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_rule_is_tried_both_ways(rules: Path) -> None:
    tried = {(case.alert, case.fires) for case in CASES}

    assert tried == {(name, fires) for name in rules_of(rules) for fires in (True, False)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}-{case.fires}")
def test_an_alert_fires_when_it_is_to_and_only_then(case: Case, rules: Path) -> None:
    rule = rules_of(rules)[case.alert]
    expected = []
    if case.fires:
        known = dict.fromkeys(case.series)
        full = {"instance": "h:1", "job": "rs"} if any(MIRROR in name for name in known) else {}
        mirror = {"mirror": "a"} if any("mirror=" in name for name in known) else {}
        action = rule["annotations"]["action"].replace("{{ $labels.mirror }}", "a")
        expected = [
            {
                "exp_labels": {**rule["labels"], **full, **mirror, **case.labels},
                "exp_annotations": {"summary": case.summary, "action": action},
            }
        ]
    tests = {
        "rule_files": [str(rules)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in case.series.items()
                ],
                "alert_rule_test": [
                    {"eval_time": "10h", "alertname": case.alert, "exp_alerts": expected}
                ],
            }
        ],
    }
    path = rules.with_name("tests.yml")
    path.write_text(json.dumps(tests))

    ran = promtool("test", "rules", str(path))

    assert ran.returncode == 0, ran.stdout + ran.stderr
