"""An index of a million resources is published; then a thousand changes are.

The server is a real Elasticsearch, or the one that RS_TEST_ES_URL or RS_TEST_OPENSEARCH_URL names;
below 10,000 resources the emulator will do, and the table says so.
"""

import contextlib
import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from campaigns.measured import Measured, command
from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.accounts.dit_index import DitIndex, ask
from tests.support.servers.search_servers import (
    ELASTICSEARCH,
    NotHereError,
    any_server,
    running,
    version_of,
)

_BASE: Final = "https://museum.example/"
_BULK: Final = 5_000
_CHANGES: Final = 1_000
_FEW: Final = 10_000
_DATE: Final = "2026-01-02T03:04:05Z"


def run(asked: Asked) -> Outcome:
    """Fill an index, publish it, change a part of it, publish that."""
    outcome = Outcome()
    with contextlib.ExitStack() as held:
        try:
            url, scheme, name = held.enter_context(_server(asked.size))
        except NotHereError as error:
            outcome.require(0, str(error))
            return outcome
        outcome.add("server", f"{name} {version_of(url)}")
        index = DitIndex(url)
        index.make(number_of_shards=1, refresh_interval="30s")
        held.callback(index.drop)
        _fill(index, asked.size)
        _measure(index, scheme, asked, outcome)
    return outcome


def _measure(index: DitIndex, scheme: str, asked: Asked, outcome: Outcome) -> None:
    out = asked.folder / "out"
    words = ("publish", f"{scheme}:{index.url}/{index.name}", "--out", out)
    before = _load(index)
    first = command(*words, "--url", _BASE, home=asked.folder)
    outcome.require(first.code == 0, f"it cannot be published: {first.said[-300:]!r}")
    _add(outcome, "first publication", first, _load(index), before)
    changed = _change(index, asked)
    _check(out, asked.size, outcome)
    before = _load(index)
    second = command(*words, "--update", home=asked.folder)
    outcome.require(second.code == 0, f"changes cannot be published: {second.said[-300:]!r}")
    _add(outcome, f"{changed:,} changes", second, _load(index), before)
    written = (out / "resourcesync/changelist.xml").read_bytes()
    found = written.count(b'change="')
    outcome.require(found == changed, f"{found} changes are listed")
    before = _load(index)
    third = command(*words, "--update", home=asked.folder)
    outcome.require(third.code == 0, "nothing cannot be published")
    _add(outcome, "no change", third, _load(index), before)
    again = (out / "resourcesync/changelist.xml").read_bytes()
    outcome.require(again == written, "changes are listed twice")


@contextmanager
def _server(size: int) -> Iterator[tuple[str, str, str]]:
    with any_server() if size < _FEW else contextlib.nullcontext() as found:
        if found is not None:
            url, is_opensearch = found
            yield url, "opensearch" if is_opensearch else "elasticsearch", "emulator, or given:"
            return
    with running(ELASTICSEARCH) as url:
        yield url, "elasticsearch", "Elasticsearch"


def _fill(index: DitIndex, size: int) -> None:
    for start in range(0, size, _BULK):
        lines: list[dict[str, Any]] = []
        for number in range(start, min(size, start + _BULK)):
            lines += [{"index": {"_index": index.resources, "_id": _name(number)}}]
            lines += [_document(number, "first")]
        _send(index, lines)
    # a log that has been written for long: an entry for one resource in ten
    for start in range(0, size // 10, _BULK):
        lines = []
        for number in range(start, min(size // 10, start + _BULK)):
            lines += _logged(index, number, "created", _DATE)
        _send(index, lines)
    ask(f"{index.url}/{index.name}*/_forcemerge?max_num_segments=5", "POST")
    index.refresh()


def _change(index: DitIndex, asked: Asked) -> int:
    """Change a thousand resources all over the index: of ten, eight are updates."""
    dice = random.Random(asked.seed)
    chosen = dice.sample(range(asked.size), min(_CHANGES, asked.size // 10))
    lines: list[dict[str, Any]] = []
    for turn, number in enumerate(chosen):
        kind = ("created", "deleted", *["updated"] * 8)[turn % 10]
        item = asked.size + number if kind == "created" else number
        action = "delete" if kind == "deleted" else "index"
        lines += [{action: {"_index": index.resources, "_id": _name(item)}}]
        lines += [] if kind == "deleted" else [_document(item, "second")]
        lines += _logged(index, item, kind, "2026-02-03T04:05:06Z")
    _send(index, lines)
    index.refresh()
    return len(chosen)


def _check(out: Path, size: int, outcome: Outcome) -> None:
    found = 0
    for path in (out / "resourcesync").glob("resourcelist*.xml"):
        with path.open("rb") as stream:
            found += sum(line.count(b"<url><loc>") for line in stream)
    outcome.require(found == size, f"{found:,} of {size:,} resources are listed")


def _add(
    outcome: Outcome, label: str, done: Measured, after: dict[str, float], before: dict[str, float]
) -> None:
    outcome.add(f"{label}, seconds", done.seconds)
    outcome.add(f"{label}, processor seconds", done.cpu)
    outcome.add(f"{label}, peak MiB", done.peak_mib)
    for name, value in after.items():
        outcome.add(f"{label}, {name}", value - before[name])


def _load(index: DitIndex) -> dict[str, float]:
    """Return what the server has counted of its work."""
    try:
        found = ask(f"{index.url}/{index.name}-*/_stats/search")["_all"]["total"]["search"]
        return {
            "queries": found["query_total"],
            "server's seconds": (found["query_time_in_millis"] + found["fetch_time_in_millis"])
            / 1000,
        }
    except (OSError, KeyError):  # the emulator counts nothing
        return {}


def _document(number: int, version: str) -> dict[str, Any]:
    body = f"{version} {number}".encode()
    return {
        "resource_set": "pdf",
        "location": {"type": "rel_path", "value": f"{number // 1000:04}/{number:08}.pdf"},
        "length": len(body),
        "md5": hashlib.md5(body, usedforsecurity=False).hexdigest(),
        "mime": "application/pdf",
        "lastmod": _DATE if version == "first" else "2026-02-03T04:05:06Z",
        "timestamp": _DATE,
    }


def _logged(index: DitIndex, number: int, kind: str, moment: str) -> list[dict[str, Any]]:
    location = {"type": "rel_path", "value": f"{number // 1000:04}/{number:08}.pdf"}
    told = {"resource_set": "pdf", "location": location, "change": kind}
    return [
        {"index": {"_index": index.changes}},
        {**told, "datetime": moment, "timestamp": moment},
    ]


def _send(index: DitIndex, lines: list[dict[str, Any]]) -> None:
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    answer = ask(f"{index.url}/_bulk?filter_path=errors", "POST", body)
    if answer["errors"]:
        raise RuntimeError("the server did not take all documents")


def _name(number: int) -> str:
    return f"{number:08x}"


CAMPAIGN = Campaign(run=run, size=1_000_000, unit="resources")
