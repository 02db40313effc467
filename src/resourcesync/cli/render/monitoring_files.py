"""Monitoring files that ``config`` prints: a dashboard for Grafana, alerts for Prometheus."""

import json
from typing import Any, Final, NamedTuple

_MIRROR_SELECTOR: Final = 'mirror=~"$mirror"'


class _Panel(NamedTuple):
    """A chart: its title, its unit, its query ({M} selects the mirrors), and its legend."""

    title: str
    unit: str
    query: str
    legend: str = "{{mirror}}"
    least: float | None = 0


_PANELS: Final = (
    _Panel("Lag", "s", "resourcesync_mirror_lag_seconds{M}"),
    _Panel("In sync", "percentunit", "resourcesync_mirror_in_sync_ratio{M}"),
    _Panel(
        "Changes per minute",
        "short",
        "60 * sum by (mirror, change) (rate(resourcesync_changes_total{M}[15m]))",
        "{{mirror}} {{change}}",
    ),
    _Panel("Received", "Bps", "rate(resourcesync_fetch_bytes_total{M}[15m])"),
    _Panel("Pending", "short", "resourcesync_mirror_pending_resources{M}"),
    _Panel("Deletions not applied", "short", "resourcesync_mirror_held_deletions{M}"),
    _Panel("Last pull took", "s", "resourcesync_pull_duration_seconds{M}"),
    _Panel(
        "Runs that failed, per hour",
        "short",
        '3600 * sum by (mirror, exit) (rate(resourcesync_runs_total{exit!="0"}[1h]))',
        "{{mirror}} exit {{exit}}",
    ),
    _Panel("Accuracy of the last audit", "percentunit", "resourcesync_audit_accuracy_ratio{M}"),
    _Panel(
        "Notifications per minute",
        "short",
        '60 * rate(resourcesync_notifications_total{direction="in"}[15m])',
        "{{outcome}}",
    ),
    _Panel(
        "Subscriptions",
        "short",
        "resourcesync_mirror_subscriptions{M} > 0",
        "{{mirror}} {{state}}",
    ),
    _Panel("Size of the copies", "bytes", "resourcesync_mirror_copies_bytes{M}"),
    _Panel(
        "Growth per day",
        "bytes",
        "delta(resourcesync_mirror_copies_bytes{M}[1d])",
        least=None,
    ),
    _Panel("Free disk space", "bytes", "resourcesync_mirror_filesystem_avail_bytes{M}"),
    _Panel(
        "Certificate of the Source ends in",
        "s",
        "resourcesync_mirror_source_certificate_expiry_timestamp_seconds{M} - time()",
        least=None,
    ),
)
_STATE_QUERY: Final = 'resourcesync_mirror_state{mirror=~"$mirror"} == 1'
_HIDDEN_COLUMNS: Final = dict.fromkeys(("Time", "Value", "__name__", "instance", "job"), True)
_HEIGHT, _WIDTH, _COLUMNS = 8, 12, 2


def grafana() -> str:
    """Return a dashboard for Grafana, with Prometheus as its data source."""
    panels = [_state_panel(), *(_graph_panel(number) for number in range(len(_PANELS)))]
    dashboard = {
        "title": "resourcesync mirrors",
        "uid": "resourcesync-mirrors",
        "tags": ["resourcesync"],
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [_SOURCE_VARIABLE, _MIRROR_VARIABLE]},
        "panels": panels,
    }
    return json.dumps(dashboard, indent=2)


_DATASOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_SOURCE_VARIABLE: Final = {"name": "source", "type": "datasource", "query": "prometheus"}
_MIRROR_VARIABLE: Final = {
    "name": "mirror",
    "type": "query",
    "datasource": _DATASOURCE,
    "query": "label_values(resourcesync_mirror_state, mirror)",
    "includeAll": True,
    "multi": True,
    "current": {"text": "All", "value": "$__all"},
}


def _state_panel() -> dict[str, Any]:
    return {
        "id": 1,
        "type": "table",
        "title": "State",
        "datasource": _DATASOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH * _COLUMNS, "x": 0, "y": 0},
        "targets": [{"refId": "A", "expr": _STATE_QUERY, "format": "table", "instant": True}],
        "transformations": [{"id": "organize", "options": {"excludeByName": _HIDDEN_COLUMNS}}],
    }


def _graph_panel(number: int) -> dict[str, Any]:
    panel = _PANELS[number]
    least = {} if panel.least is None else {"min": panel.least}
    row, column = divmod(number, _COLUMNS)
    place = {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": (row + 1) * _HEIGHT}
    query = panel.query.replace("{M}", f"{{{_MIRROR_SELECTOR}}}")
    return {
        "id": number + 2,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, **least}, "overrides": []},
        "targets": [{"refId": "A", "expr": query, "legendFormat": panel.legend}],
    }


ALERTS: Final = """\
# Rules for Prometheus: rule_files in prometheus.yml; promtool check rules resourcesync.yml
# The limits of time are for mirrors that are pulled at least once a day; change them here.
groups:
  - name: resourcesync
    rules:
      - alert: ResourcesyncDown  # no service, or one of several that ran within the last day
        expr: >-
          absent(resourcesync_build_info{command="watch"})
          or max by (job, instance) (max_over_time(resourcesync_build_info{command="watch"}[1d]))
          unless max by (job, instance) (resourcesync_build_info{command="watch"})
        for: 5m
        labels: {severity: critical}
        annotations:
          summary: "no metrics of `resourcesync watch`: it does not run, or cannot be reached"
          action: "systemctl status resourcesync-watch"
      - alert: MirrorUnreadable
        expr: resourcesync_mirror_readable == 0
        for: 5m
        labels: {severity: critical}
        annotations:
          summary: "the state of {{ $labels.mirror }} cannot be read"
          action: "resourcesync status {{ $labels.mirror }}"
      - alert: MirrorLate  # without max_lag: two days
        expr: >-
          resourcesync_mirror_lag_seconds > 2 * resourcesync_mirror_max_lag_seconds
          or (resourcesync_mirror_lag_seconds > 172800
          unless resourcesync_mirror_max_lag_seconds)
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: "{{ $labels.mirror }} was last found in sync {{ $value | humanizeDuration }} ago"
          action: "resourcesync status {{ $labels.mirror }}"
      - alert: MirrorWithoutSuccess
        expr: >-
          time() - resourcesync_mirror_last_success_timestamp_seconds
          > 3 * resourcesync_mirror_interval_seconds
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: "{{ $labels.mirror }}: three pulls did not find it in sync"
          action: "resourcesync status {{ $labels.mirror }}"
      - alert: MirrorNeverInSync
        expr: >-
          resourcesync_mirror_state{state!~"in sync|syncing"} == 1
          unless ignoring(state) resourcesync_mirror_last_success_timestamp_seconds
        for: 1h
        labels: {severity: warning}
        annotations:
          summary: "{{ $labels.mirror }} was never in sync; now it is: {{ $labels.state }}"
          action: "resourcesync status {{ $labels.mirror }}"
      - alert: MirrorFailing
        expr: resourcesync_mirror_state{state="failing"} == 1
        for: 1h
        labels: {severity: warning}
        annotations:
          summary: "the pulls of {{ $labels.mirror }} fail"
          action: "resourcesync status {{ $labels.mirror }}"
      - alert: MirrorStopped
        expr: >-
          resourcesync_mirror_held_deletions > 0
          or ignoring(state) resourcesync_mirror_state{state="stopped"} == 1
        for: 15m
        labels: {severity: critical}
        annotations:
          summary: "{{ $labels.mirror }}: a safety limit holds deletions back"
          action: "see the next step: resourcesync status {{ $labels.mirror }}"
      - alert: MirrorDamaged
        expr: resourcesync_audit_accuracy_ratio < 1
        labels: {severity: critical}
        annotations:
          summary: "an audit found copies of {{ $labels.mirror }} that are not as listed"
          action: "resourcesync repair {{ $labels.mirror }}"
      - alert: MirrorDiskFull  # a twentieth is left, or what is left lasts for less than a day
        expr: >-
          resourcesync_mirror_filesystem_avail_bytes
          < 0.05 * resourcesync_mirror_filesystem_size_bytes
          or predict_linear(resourcesync_mirror_filesystem_avail_bytes[6h], 86400) < 0
        for: 30m
        labels: {severity: warning}
        annotations:
          summary: "the disk of {{ $labels.mirror }} is nearly full"
          action: "resourcesync trash empty {{ $labels.mirror }} --all, or a larger disk"
      - alert: SourceCertificateEnds  # some authorities issue certificates for six days
        expr: >-
          resourcesync_mirror_source_certificate_expiry_timestamp_seconds - time() < 259200
        for: 1h
        labels: {severity: warning}
        annotations:
          summary: "the certificate of the Source of {{ $labels.mirror }} ends within three days"
          action: "report it to the Source: without a new one, pulls will fail"
"""
"""Alert rules. Tests hold that each of them fires, by metrics that the service really has."""
