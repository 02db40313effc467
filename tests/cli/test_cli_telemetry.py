"""OpenTelemetry: spans and metrics as a collector on loopback receives them."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from resourcesync.cli.main import run
from resourcesync.settings.environment import TelemetryEnvironment, read_telemetry
from tests.support.commands.command_line import Said
from tests.support.commands.meanwhile import meanwhile
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource, dead_address

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra 'otel' is not here")

PHASES = ["discovery", "lists", "transfer", "commit"]


class Collector:
    """A collector of OTLP over HTTP that keeps what it gets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: list[dict[str, Any]] = []
        self._metrics: dict[str, Any] = {}

    def accept(self, path: str, body: bytes) -> None:
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        with self._lock:
            if path == "/v1/traces":
                traces = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
                for group in traces.resource_spans:
                    service = values_of(group.resource.attributes)["service.name"]
                    for scope in group.scope_spans:
                        self._spans += [span_of(span, service) for span in scope.spans]
            elif path == "/v1/metrics":
                metrics = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
                for found in metrics.resource_metrics:
                    for inner in found.scope_metrics:
                        self._metrics |= {metric.name: metric for metric in inner.metrics}

    @property
    def spans(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._spans)

    @property
    def metrics(self) -> dict[str, Any]:
        with self._lock:
            return dict(self._metrics)

    def children(self, span: dict[str, Any]) -> list[dict[str, Any]]:
        found = [other for other in self.spans if other["parent"] == span["id"]]
        return sorted(found, key=lambda other: other["start"])

    def roots(self) -> list[dict[str, Any]]:
        return [span for span in self.spans if not span["parent"]]


def values_of(attributes: Any) -> dict[str, Any]:
    return {
        found.key: getattr(found.value, str(found.value.WhichOneof("value")))
        for found in attributes
    }


def span_of(span: Any, service: str) -> dict[str, Any]:
    return {
        "name": span.name,
        "id": span.span_id,
        "parent": span.parent_span_id,
        "trace": span.trace_id,
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "status": (span.status.code, span.status.message),
        "service": service,
        **values_of(span.attributes),
    }


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self: Self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/x-protobuf"
            kept.accept(self.path, body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield kept, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as (kept, address):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        yield kept


def test_a_pull_is_a_span_with_its_phases(
    collector: Collector, source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mirrors of ours")
    assert run(["pull", source.url, "museum"]) == 0

    [pull] = collector.roots()
    phases = collector.children(pull)
    assert (pull["name"], pull["service"], pull["status"][0]) == ("pull", "mirrors of ours", 0)
    assert (pull["resourcesync.mirror"], pull["resourcesync.created"]) == ("museum", 12)
    assert (pull["resourcesync.exit"], pull["resourcesync.source"]) == (0, source.url)
    assert [phase["name"] for phase in phases] == PHASES
    assert all(pull["start"] <= phase["start"] <= phase["end"] for phase in phases)
    assert all(phase["end"] <= pull["end"] for phase in phases)
    assert {span["trace"] for span in phases} == {pull["trace"]}


def test_a_failed_pull_is_a_span_with_its_error(collector: Collector) -> None:
    with dead_address() as dead:
        address = dead.replace("http://", "http://me:secret@")
        assert run(["pull", dead, "museum", "--retries", "0"]) == 4
        assert run(["pull", address, "other", "--retries", "0"]) != 0

    pull, other = collector.roots()
    assert pull["status"] == (2, "connect")
    assert pull["resourcesync.uri"].startswith(dead)
    assert "secret" not in str(other)


def test_each_of_several_mirrors_is_a_span_below_that_of_the_run(
    collector: Collector, source: TinySource
) -> None:
    with dead_address() as dead:
        put(museum(source) + f'[mirror.dead]\nsource = "{dead}"\ndest = "d"\nretries = 0\n')
        assert run(["pull", "--all"]) == 4

    [root] = collector.roots()
    mirrors = {span["resourcesync.mirror"]: span for span in collector.children(root)}
    assert mirrors["museum"]["status"][0] == 0
    assert mirrors["dead"]["status"] == (2, "connect")
    assert [phase["name"] for phase in collector.children(mirrors["museum"])] == PHASES


def test_a_publication_and_an_audit_are_spans(collector: Collector, source: TinySource) -> None:
    Path("tree").mkdir()
    Path("tree/a.txt").write_text("a")
    assert run(["publish", "tree", "--url", "https://h.example/"]) == 0
    assert run(["pull", source.url, "museum"]) == 0
    Path("museum/objects/0001.txt").write_text("changed")
    assert run(["audit", "museum"]) == 1
    assert run(["status", "museum"]) == 0

    publish, _, audit = collector.roots()
    assert (publish["name"], publish["resourcesync.resources"]) == ("publish", 1)
    assert (audit["name"], audit["status"]) == ("audit", (2, "exit 1"))


def test_each_job_of_the_service_is_a_span_and_its_metrics_are_exported(
    collector: Collector, source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    put(museum(source, 'every = "1s"\n'))

    def is_exported() -> bool:
        name = "resourcesync_mirror_resources"
        return len(collector.roots()) > 1 and name in collector.metrics

    with meanwhile(is_exported):
        assert run(["watch"]) == 0

    first, *_ = sorted(collector.roots(), key=lambda span: span["start"])
    assert (first["name"], first["resourcesync.mirror"]) == ("pull", "museum")
    assert [phase["name"] for phase in collector.children(first)] == PHASES
    assert "watch" not in {span["name"] for span in collector.spans}
    found = collector.metrics
    [resources] = found["resourcesync_mirror_resources"].gauge.data_points
    assert (resources.as_int or resources.as_double) == 12
    assert values_of(resources.attributes) == {"mirror": "museum"}
    changes = found["resourcesync_changes_total"].sum
    assert changes.is_monotonic
    counts = {values_of(point.attributes)["change"]: point for point in changes.data_points}
    assert counts["created"].as_int == 12
    assert found["resourcesync_mirror_lag_seconds"].unit == "s"
    assert found["resourcesync_mirror_copies_bytes"].unit == "By"


def test_a_collector_that_is_down_is_a_warning_and_costs_seconds_at_most(
    source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dead_address() as dead:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", dead)
        began = time.monotonic()
        assert run(["pull", source.url, "museum"]) == 0
        seconds = time.monotonic() - began

    assert seconds < 15
    assert "OpenTelemetry: " in said.readouterr().err


CODE = """\
import sys
{before}
from resourcesync.cli.main import run
code = run(["pull", "{url}", "museum", "-q"])
print(code, sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nothing_is_imported_unless_it_is_set_up(
    variables: dict[str, str], source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert said_by(CODE.format(before="", url=source.url)) == "0 []\n"


def test_variables_without_the_extra_change_nothing(
    source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    absent = 'sys.modules["opentelemetry"] = None'

    assert said_by(CODE.format(before=absent, url=source.url)) == "0 ['opentelemetry']\n"


def said_by(code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert ran.stderr == ""
    return ran.stdout


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, (False, False)),
        ({"ENDPOINT": "http://c:4318"}, (True, True)),
        ({"TRACES_ENDPOINT": "http://c:4318/x"}, (True, False)),
        ({"METRICS_ENDPOINT": "http://c:4318/x"}, (False, True)),
    ],
)
def test_an_endpoint_sets_a_signal_up(variables: dict[str, str], found: tuple[bool, bool]) -> None:
    named = {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in variables.items()}

    assert read_telemetry(named) == TelemetryEnvironment(*found)
    assert read_telemetry({**named, "OTEL_SDK_DISABLED": "True"}) == TelemetryEnvironment()


def test_an_exporter_comes_before_an_endpoint() -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}

    assert read_telemetry({"OTEL_TRACES_EXPORTER": "otlp"}) == TelemetryEnvironment(traces=True)
    assert read_telemetry({**endpoint, "OTEL_TRACES_EXPORTER": "none"}) == TelemetryEnvironment(
        metrics=True
    )
    assert read_telemetry(
        {**endpoint, "OTEL_METRICS_EXPORTER": "console, otlp"}
    ) == TelemetryEnvironment(traces=True, metrics=True)
