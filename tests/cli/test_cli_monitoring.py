"""Metrics of real processes: all that the dashboard and the alerts ask for."""

import json
import re
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from resourcesync.adapters.mirror.own_folder import FollowedSet, FollowedSets, write_sets
from resourcesync.adapters.system import SystemClock
from resourcesync.app import mirror_home
from resourcesync.app.configured_mirrors import MirrorConfiguration
from resourcesync.cli import options
from resourcesync.cli.main import run
from resourcesync.cli.service.watch_status import WatchView
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.server.metrics import write_metrics
from tests.support.commands.command_line import CERTIFICATE_END, Said
from tests.support.commands.settings_file import museum, put
from tests.support.commands.watching import Watching
from tests.support.servers.hostile_server import HostileServer
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.several_sets import SETS, offer

REPORTS = ("resourcesync_mirror_", "resourcesync_pull_", "resourcesync_source_")
NAME = re.compile(r"resourcesync_[a-z_]+")


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def watched_metrics(secure: HostileServer, here: Path) -> str:
    put(
        f'[mirror.museum]\nsource = "{secure.origin}/list.xml"\ndest = "museum"\n'
        'ca_file = "ca.pem"\nevery = "1h"\nmax_lag = "1h"\naudit_every = "1s"\n'
    )
    text = ""
    with Watching(here) as service:
        service.line("")
        while "accuracy_ratio{" not in text:
            text = "\n".join(service.metrics())
    return text


def alerts(said: Said) -> list[dict[str, str]]:
    said.readouterr()
    assert run(["config", "alerts"]) == 0
    return list(yaml.safe_load(said.readouterr().out)["groups"][0]["rules"])


def source_metrics(said: Said) -> str:
    """Return the metrics of a Source that was published, and then had no change."""
    Path("pages").mkdir()
    Path("pages/a.txt").write_text("a")
    for words in (["--url", "https://pages.example/"], []):
        assert run(["publish", "pages", *words]) == 0
    said.readouterr()
    assert run(["status", "pages", "--format", "prom"]) == 0
    return said.readouterr().out


def test_a_source_without_changes_and_a_job_that_is_dead_have_other_metrics(
    here: Path, said: Said
) -> None:
    found = samples(source_metrics(said))

    changed, complete, last = (
        found[f'resourcesync_source_{name}_timestamp_seconds{{source="pages"}}']
        for name in ("changed_at", "complete_at", "last_run")
    )
    assert changed < complete < last, "the job ran, and nothing changed"
    assert run(["status", "pages", "--check", "--max-lag", "1h"]) == 0
    assert run(["status", "pages", "--check", "--max-lag", "0s"]) == 1


def test_the_dashboard_the_alerts_and_the_reference_name_what_is_really_given(
    secure: HostileServer, here: Path, said: Said
) -> None:
    text = watched_metrics(secure, here)
    offered = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    text += source_metrics(said)
    given = {NAME.match(name)[0] for name in samples(text)}  # type: ignore[index]  # all match
    assert run(["config", "grafana"]) == 0
    dashboard = json.loads(said.readouterr().out)
    rules = alerts(said)
    assert run(["status", "museum", "--format", "prom"]) == 0
    status = {NAME.match(name)[0] for name in samples(said.readouterr().out)}  # type: ignore[index]

    shown = set(NAME.findall(json.dumps([dashboard["panels"], dashboard["templating"]])))
    alerted = set(NAME.findall(" ".join(rule["expr"] for rule in rules)))
    assert len(shown) > 12
    assert shown <= offered
    assert alerted <= given, "of these the service has values, so that each alert can fire"
    assert status & (shown | alerted)
    assert status <= offered, "a name means the same wherever it is given"
    found = samples(text)
    expiry = "resourcesync_mirror_certificate_until_timestamp_seconds"
    assert found[f'{expiry}{{mirror="museum"}}'] == CERTIFICATE_END.timestamp()
    assert found['resourcesync_mirror_size_bytes{mirror="museum"}'] == 3
    assert found['resourcesync_mirror_disk_free_bytes{mirror="museum"}'] > 0
    assert found['resourcesync_mirror_readable{mirror="museum"}'] == 1
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text("utf-8")
    named = set(re.findall(r"`(resourcesync_[a-z_]+)", page))
    assert named <= (offered := set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)))
    assert {name for name in offered if not name.startswith(REPORTS)} <= named


def certificate_of(folder: str) -> datetime | None:
    return mirror_home.read_status(Path(folder)).certificate_until


def test_the_end_of_the_certificate_is_that_of_the_last_connection(secure: HostileServer) -> None:
    uri = f"{secure.origin}/list.xml"
    assert run(["pull", uri, "museum", "-o", "ca_file=ca.pem"]) == 0
    assert certificate_of("museum") == CERTIFICATE_END

    assert run(["pull", "museum", "-o", "ca_file=other.pem", "-o", "retries=0"]) == 6
    assert certificate_of("museum") == CERTIFICATE_END, "it did not connect"


def test_a_mirror_that_is_no_longer_watched_has_no_metric_of_its_last_pull() -> None:
    names, configuration = ["gone", "kept"], MirrorConfiguration(None)
    figures = WatchView(lambda: (tuple(names), configuration), SystemClock())
    for name in ("gone", "kept"):
        figures.count("pull", {"mirror": name, "exit": 0}, 1.0)
    names.remove("gone")

    found = {metric.name: dict(metric.values) for metric in figures.figures()}

    assert found["resourcesync_pull_duration_seconds"] == {(("mirror", "kept"),): 1.0}
    assert [row["mirror"] for row in json.loads(figures.status())["ended"]] == ["kept"]


@pytest.mark.parametrize(("more", "sets"), [("all_sets = true", 2), ('set = ["maps"]', 1)])
def test_the_last_audit_of_a_mirror_or_of_each_set_is_a_metric_whoever_ran_it(
    more: str, sets: int, source: TinySource, said: Said
) -> None:
    offer(source, SETS)
    put(museum(source, more))
    assert run(["pull", "museum"]) == 0
    view = WatchView(lambda: (("museum",), options.load(None)), SystemClock())
    [copy] = Path("copies/museum").rglob("a.txt")
    [rule] = [rule["expr"] for rule in alerts(said) if rule["alert"] == "MirrorDamaged"]

    def audited() -> tuple[list[float], int]:
        """Return the accuracies, and the number of mirrors for which the alert fires."""
        said.readouterr()
        assert run(["status", "museum", "--format", "prom"]) == 0
        texts = write_metrics(view.figures()).decode(), said.readouterr().out
        found, other = ({k: n for k, n in samples(text).items() if "audit_" in k} for text in texts)
        assert found == other
        firing = set()
        for name, sign, limit in map(str.split, rule.split(" or ")):
            is_bad = {"<": float.__lt__, ">": float.__gt__}[sign]
            bad = (k for k, n in found.items() if k.startswith(name) and is_bad(n, float(limit)))
            firing |= {k.removeprefix(name) for k in bad}
        return sorted(n for k, n in found.items() if "accuracy" in k), len(firing)

    assert audited() == ([], 0)
    for harm, accuracies in ("damage", [0.5, 1.0]), ("", [1.0] * 2):
        copy.write_text(harm) if harm else copy.unlink()
        assert run(["audit", "museum"]) == 1
        assert audited() == (accuracies[:sets], 1)
        assert [run([word, "museum"]) for word in ("repair", "audit")] == [0, 0]
        assert audited() == ([1.0] * sets, 0)
        assert copy.read_bytes() == SETS["maps"]["/maps/a.txt"]


def test_each_set_of_a_mirror_has_the_interval_of_the_mirror_as_the_alerts_need(here: Path) -> None:
    sets = tuple(FollowedSet(uri=f"https://x.example/{name}", folder=name) for name in "ab")
    followed_sets = FollowedSets(source="https://x.example/", every=True, looked=0, sets=sets)
    write_sets(here / "all", followed_sets)
    for followed in sets:
        own = here / "all" / followed.folder / ".resourcesync"
        own.mkdir(parents=True)
        SqliteMirrorState(own / "state.db").close()
    place = str(here / "all")
    configuration = MirrorConfiguration(None)
    figures = WatchView(lambda: ((place, "nowhere"), configuration), SystemClock())
    figures.intervals = {place: 900.0, "nowhere": 60.0}

    found = {metric.name: dict(metric.values) for metric in figures.figures()}

    assert found["resourcesync_mirror_interval_seconds"] == {
        (("mirror", f"{place}/a"),): 900.0,
        (("mirror", f"{place}/b"),): 900.0,
    }
    assert found["resourcesync_mirror_resources"].keys() == {
        (("mirror", f"{place}/{name}"),) for name in "ab"
    }
