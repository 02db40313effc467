"""``status`` for programs that watch: figures for Prometheus, the order."""

import re
from datetime import UTC, datetime

from resourcesync.cli.render.metrics import mirror_figures
from resourcesync.destination.reports import CheckedMirror, ListedCounts, MirrorState, MirrorStatus
from resourcesync.server.metrics import write_metrics

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def seen(name: str, state: MirrorState, lag: float | None = 60, **more: float) -> CheckedMirror:
    status = MirrorStatus(
        mirror=name,
        source="https://museum.example/",
        state=state,
        resources=10,
        listed=ListedCounts(unchanged=10, pending=int(more.get("pending", 0))),
        as_of=NOON,
    )
    return CheckedMirror(status, lag, more.get("max_lag"))


IN_SYNC = MirrorState.IN_SYNC


def test_the_figures_for_prometheus_are_well_formed() -> None:
    mirrors = [seen('a"b\\', IN_SYNC), seen("c", MirrorState.BEHIND, None, pending=10)]
    lines = write_metrics(mirror_figures(mirrors, [])).decode().splitlines()

    samples = [line for line in lines if not line.startswith("#")]
    pattern = (
        r'resourcesync_mirror_[a-z_]+\{mirror="(?:[^"\\]|\\.)*"(?:,state="[a-z ]+")?\} [0-9.e+]+'
    )
    assert all(re.fullmatch(pattern, line) for line in samples)
    assert len(set(samples)) == len(samples)
    assert 'resourcesync_mirror_state{mirror="c",state="behind"} 1' in samples
    assert 'resourcesync_mirror_state{mirror="c",state="in sync"} 0' in samples
    assert 'resourcesync_mirror_in_sync_ratio{mirror="c"} 0.5' in samples
    assert 'resourcesync_mirror_lag_seconds{mirror="a\\"b\\\\"} 60' in samples
    assert not any(
        line.startswith('resourcesync_mirror_lag_seconds{mirror="c"') for line in samples
    )
    heads = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(heads)) == len(heads)
