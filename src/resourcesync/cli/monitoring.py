"""A dashboard for Grafana and alert rules for Prometheus, from the figures of ``watch``."""

import json
from typing import Any, Final

_MIRROR_SELECTOR: Final = 'mirror=~"$mirror"'
_PANELS: Final = (
    ("Lag", "s", "resourcesync_mirror_lag_seconds{M}", "{{mirror}}"),
    ("In sync", "percentunit", "resourcesync_mirror_in_sync_ratio{M}", "{{mirror}}"),
    (
        "Changes per minute",
        "short",
        "60 * sum by (mirror, change) (rate(resourcesync_changes_total{M}[15m]))",
        "{{mirror}} {{change}}",
    ),
    ("Received", "Bps", "rate(resourcesync_fetch_bytes_total{M}[15m])", "{{mirror}}"),
    ("Not here as listed", "short", "resourcesync_mirror_pending{M}", "{{mirror}}"),
    ("Deletions held back", "short", "resourcesync_mirror_held_deletions{M}", "{{mirror}}"),
    ("Last pull took", "s", "resourcesync_pull_duration_seconds{M}", "{{mirror}}"),
    (
        "Runs that failed, per hour",
        "short",
        '3600 * sum by (mirror, exit) (rate(resourcesync_runs_total{exit!="0"}[1h]))',
        "{{mirror}} exit {{exit}}",
    ),
    (
        "Accuracy of the last audit",
        "percentunit",
        "resourcesync_audit_accuracy_ratio{M}",
        "{{mirror}}",
    ),
    (
        "Notifications per minute",
        "short",
        "60 * rate(resourcesync_notifications_total[15m])",
        "{{outcome}}",
    ),
    (
        "Subscriptions",
        "short",
        "resourcesync_mirror_subscriptions{M} > 0",
        "{{mirror}} {{state}}",
    ),
)
_STATE_QUERY: Final = 'resourcesync_mirror_state{mirror=~"$mirror"} == 1'
_HIDDEN_COLUMNS: Final = dict.fromkeys(("Time", "Value", "__name__", "instance", "job"), True)
_HEIGHT, _WIDTH, _COLUMNS = 8, 12, 2


def grafana() -> str:
    """Return a dashboard, to be imported into Grafana with Prometheus as its source."""
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
    title, unit, expression, legend = _PANELS[number]
    row, column = divmod(number, _COLUMNS)
    place = {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": (row + 1) * _HEIGHT}
    query = expression.replace("{M}", f"{{{_MIRROR_SELECTOR}}}")
    return {
        "id": number + 2,
        "type": "timeseries",
        "title": title,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": query, "legendFormat": legend}],
    }


ALERTS: Final = """\
# Rules for Prometheus: rule_files in prometheus.yml; promtool check rules resourcesync.yml
groups:
  - name: resourcesync
    rules:
      - alert: ResourcesyncDown
        expr: absent(resourcesync_build_info)
        for: 5m
        labels: {severity: critical}
        annotations:
          summary: "no figures of `resourcesync watch`: it does not run, or cannot be reached"
          action: "systemctl status resourcesync-watch"
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
          or resourcesync_mirror_state{state="failing"} == 1
          unless ignoring(state) resourcesync_mirror_last_success_timestamp_seconds
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: "{{ $labels.mirror }}: three pulls did not find it in sync, or none ever did"
          action: "resourcesync status {{ $labels.mirror }}"
      - alert: MirrorStopped
        expr: resourcesync_mirror_state{state="stopped"} == 1
        labels: {severity: critical}
        annotations:
          summary: "{{ $labels.mirror }}: a safety limit holds deletions back"
          action: "resourcesync status {{ $labels.mirror }} says how to go on"
      - alert: MirrorDamaged
        expr: resourcesync_audit_accuracy_ratio < 1
        labels: {severity: critical}
        annotations:
          summary: "an audit found copies of {{ $labels.mirror }} that are not as listed"
          action: "resourcesync repair {{ $labels.mirror }}"
"""
"""Five rules: no figures, late, no success, stopped, damaged."""
