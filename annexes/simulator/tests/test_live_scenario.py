"""``simulate --live`` of a scenario: the Source of the simulation, over HTTP, with its faults."""

import hashlib
import http.client
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.cli.main import run as command
from resourcesync_simulator import live_server, simulation
from resourcesync_simulator.live import MOMENT, ScenarioSource
from resourcesync_simulator.origin import BASE, SimulatedOrigin
from resourcesync_simulator.scenario import (
    DAY,
    HOUR,
    Burst,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync_simulator.simulation import simulate_source
from resourcesync_simulator.source import PackedDocuments, SimulatedSource
from tests.support.commands.started import Started
from tests.support.in_memory import ManualClock
from tests.support.servers.listening import get

SMALL = Scenario(
    seed=5,
    duration=DAY,
    origin=OriginSettings(
        resources=40,
        sizes=Sizes(median=200, spread=1.0, most=2_000),
        media_types=("text/html", "image/png"),
        per_second=15 / HOUR,
        bursts=(Burst(at=18 * HOUR, changes=30),),
    ),
    publish=PublishSettings(
        every=HOUR / 2, rotate=2 * HOUR, rebase=DAY / 4, keep=DAY / 2, max_entries=50
    ),
)
AT_THE_SOURCE = Faults(
    wrong_hash=0.05,
    undated=0.1,
    changed_while_listed=0.1,
    wrong_length=0.05,
    dropped=0.1,
    holes=0.5,
    source_crash=0.01,
    source_disk_full=((0.7 * DAY, 0.72 * DAY),),
    clock_steps=((0.3 * DAY, -3_000.0),),
    restarts=(0.4 * DAY,),
    rollbacks=((0.6 * DAY, 2 * HOUR),),
)


@contextmanager
def served(
    scenario: Scenario, speed: float = 1.0, base_uri: str = ""
) -> Iterator[tuple[live_server.RunningSimulation, ManualClock]]:
    clock = ManualClock(scenario.start + timedelta(days=300))
    place = live_server.LiveAddress(speed=speed, base_uri=base_uri)
    with live_server.serve_live(scenario, place, clock=clock) as serving:
        yield serving, clock


class Observed(SimulatedSource):
    latest: "Observed"

    def __init__(
        self, origin: SimulatedOrigin, scenario: Scenario, documents: PackedDocuments, *others: Any
    ) -> None:
        super().__init__(origin, scenario, documents, *others)
        self.documents = documents
        Observed.latest = self


def simulated(scenario: Scenario, until: float) -> tuple[dict[str, bytes], dict[str, str]]:
    documents: dict[str, bytes] = {}
    digests: dict[str, str] = {}

    def tell(elapsed: float, event: str, _: object) -> None:
        if elapsed > until or event in {"pull", "fault"}:
            return
        source = Observed.latest
        digests.clear()
        digests.update({name: version.digest for name, version in source.origin.versions.items()})
        if event != "change":
            documents.clear()
            for name in source.documents.names():
                answer = source.answer(name)
                documents[name] = b"" if answer is None else answer.body

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "SimulatedSource", Observed)
        simulation.simulate(scenario, DestinationSettings(), tell)
    return documents, digests


def without_hashes_of_parts(document: bytes) -> bytes:
    """Return an index without the hashes of its parts, which have the host in them."""
    if b"<sitemapindex" not in document:
        return document
    return re.sub(rb' hash="sha-256:[0-9a-f]{64}"', b"", document)


@pytest.mark.parametrize("until", [0.28 * DAY, 0.95 * DAY])
def test_the_live_source_is_the_simulated_one_but_for_its_host(until: float) -> None:
    scenario = replace(SMALL, faults=AT_THE_SOURCE)
    documents, digests = simulated(scenario, until)

    with served(scenario, speed=HOUR) as (serving, clock):
        clock.advance(seconds=until / HOUR)
        for name, body in documents.items():
            status, found, _ = get(serving.uri, f"/{name}")
            assert status == (200 if body else 404), name
            found = found.replace(serving.uri.encode(), BASE.encode())
            assert not body or without_hashes_of_parts(found) == without_hashes_of_parts(body), name
        for name, digest in digests.items():
            assert hashlib.sha256(get(serving.uri, f"/{name}")[1]).hexdigest() == digest

    assert len(documents) > 4
    assert len(digests) > 30
    assert any(b"<url>" in body for name, body in documents.items() if "changelist" in name)


def test_answers_have_types_and_tags_and_nothing_else_is_taken() -> None:
    with served(SMALL) as (serving, _):
        status, body, fields = get(serving.uri, "/resourcesync/resourcelist.xml")
        assert (status, fields["content-type"]) == (200, "application/xml")
        tag = fields["etag"]
        assert get(serving.uri, "/resourcesync/resourcelist.xml", if_none_match=tag)[0] == 304
        name = "r0000/i0000001.html"
        types = {
            get(serving.uri, f"/r0000/i{number:07}.html")[2]["content-type"] for number in range(40)
        }
        assert types == {"text/html", "image/png"}
        assert "last-modified" in get(serving.uri, f"/{name}")[2]
        whole = get(serving.uri, f"/{name}")[1]
        assert get(serving.uri, f"/{name}", range="bytes=5-9")[:2] == (206, whole[5:10])
        assert get(serving.uri, f"/{name}", method="HEAD")[:2] == (200, b"")
        assert get(serving.uri, f"/{name}", method="POST")[0] == 405
        assert get(serving.uri, "/r0000/i9999999.html")[0] == 404
        assert get(serving.uri, "/../x")[0] == 404
        assert b"seed 5" in get(serving.uri)[1]
    assert body.count(b"<url>") == 40


@contextmanager
def living(faults: Faults) -> Iterator[tuple[ScenarioSource, list[float]]]:
    scenario, elapsed = replace(SMALL, faults=faults), [0.0]
    with simulate_source(scenario, BASE) as (clock, source):
        yield ScenarioSource(scenario, BASE, clock, source, lambda: elapsed[0]), elapsed


LIST = "resourcesync/resourcelist.xml"
FIRST = "r0000/i0000001.html"


def test_each_fault_of_the_network_is_played_and_over_with_the_scenario() -> None:
    with living(Faults()) as (source, _):
        listed, whole = source.answer(LIST), source.answer(FIRST)
    with living(Faults(lost=1)) as (source, _):
        assert (source.answer(LIST).status, source.answer(LIST).wait) == (0, MOMENT)
    with living(Faults(failed=1)) as (source, _):
        assert source.answer(LIST).status == 503
    with living(Faults(refused=1)) as (source, _):
        assert source.answer(LIST).status == 404
    with living(Faults(late=1)) as (source, _):
        assert source.answer(LIST) == replace(listed, wait=MOMENT)
    with living(Faults(altered=1)) as (source, _):
        assert source.answer(LIST) == listed
        body = source.answer(FIRST).body
        assert (len(body), body == whole.body) == (len(whole.body), False)
    with living(Faults(doubled=1)) as (source, _):
        assert source.answer(LIST).body == 2 * listed.body
    with living(Faults(storms=((0, DAY),))) as (source, _):
        statuses = {source.answer(LIST).status for _ in range(200)}
        assert statuses == {200, 403, 404, 410, 429, 500, 502, 503, 504}
    with living(Faults(cut=1)) as (source, elapsed):
        body = source.answer(LIST).body
        assert len(body) < len(listed.body)
        assert listed.body.startswith(body)
        elapsed[0] = 2 * DAY
        assert source.answer(LIST).body.endswith(b"</sitemapindex>\n")


def test_nobody_answers_in_an_outage_and_the_page_tells_how_to_pull() -> None:
    faults = Faults(outages=((HOUR, 2 * HOUR),), push_lost=0.5, crash=0.1, late=0.001)
    with living(faults) as (source, elapsed):
        statuses = []
        for elapsed[0] in (0.9 * HOUR, HOUR, 1.9 * HOUR, 2 * HOUR):
            statuses.append(source.answer(FIRST, uncached=True).status)
        page = source.answer("").body

    assert statuses == [200, 0, 0, 200]
    assert b"<pre>resourcesync pull http" in page


def test_a_lost_answer_is_a_connection_that_closes_and_all_ends_well(tmp_path: Path) -> None:
    faults = replace(AT_THE_SOURCE, failed=0.05, stale=0.2, altered=0.1)
    with served(replace(SMALL, faults=replace(faults, lost=1.0))) as (serving, clock):
        with pytest.raises(http.client.RemoteDisconnected):
            get(serving.uri, f"/{LIST}")
        clock.advance(hours=24)
        assert command(["pull", serving.uri, str(tmp_path / "copy"), "-q"]) == 0


def test_the_command_takes_the_seed_of_its_file_and_ends_on_a_signal(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('seed = 3\n[source]\nresources = 20\nchanges = "20/h"\n')
    words = ("simulate", "s.toml", "--live", "--speed", "100", "--bind", "127.0.0.1:0")
    with Started(*words, cwd=tmp_path) as process:
        uri = process.stdout.readline().split()[1].rstrip(";")
        page = get(uri)[1]
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)

    assert b"seed 3" in page
    assert out.splitlines()[-1] == "Stopped   no longer served"
    assert (process.returncode, err) == (0, "")
