"""What goes wrong with an index: a typed error, and nothing is published from a part of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.main import run
from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DiscontinuityError,
    ResourceSyncError,
    SourceRefusedError,
    SourceUnavailableError,
)
from resourcesync_elasticsearch import client
from resourcesync_elasticsearch.documents import CHANGE_FIELDS, RESOURCE_FIELDS
from tests.support.accounts.dit_index import PREFIX, abs_path, ask, rel_path
from tests.support.accounts.published_index import PublishedIndex
from tests.support.servers.interposed import Answer, Spoil


def searched(answer: Callable[[dict[str, Any]], object], after: int = 1) -> Spoil:
    """Let the searches of a view, after the first ones, answer something else."""
    left = iter(range(after))

    def fault(method: str, target: str) -> Answer | None:
        if not target.startswith("/_search?") or next(left, None) is not None:
            return None
        hits = {"total": {"value": 30, "relation": "eq"}, "hits": []}
        whole = {"_shards": {"total": 3, "failed": 0}, "timed_out": False, "hits": hits}
        return Answer(200, json.dumps(answer(whole)).encode())

    return fault


def status(code: int, kind: str = "any_exception") -> Spoil:
    answer = json.dumps({"error": {"type": kind, "reason": "no"}, "status": code}).encode()
    return lambda method, target: Answer(code, answer) if "_search?" in target else None


FAULTS: dict[str, tuple[Spoil, type[ResourceSyncError], str]] = {
    "some shards failed": (
        searched(lambda fields: {**fields, "_shards": {"total": 3, "failed": 1}}),
        SourceUnavailableError,
        "partial-search",
    ),
    "it took too long": (
        searched(lambda fields: {**fields, "timed_out": True}),
        SourceUnavailableError,
        "partial-search",
    ),
    "the view is lost": (
        status(404, "search_context_missing_exception"),
        SourceUnavailableError,
        "lost-view",
    ),
    "fewer than it said": (searched(lambda fields: fields), BadResponseError, "cut-short"),
    "no fields": (
        searched(lambda fields: {**fields, "hits": {"hits": [{"_id": "a", "sort": [1]}]}}),
        BadResponseError,
        "bad-response",
    ),
    "no answer to a search": (searched(lambda it: ["?"]), BadResponseError, "bad-response"),
    "an inexact total": (
        searched(lambda fields: {**fields, "hits": {"total": {"value": 9, "relation": "gte"}}}, 0),
        BadResponseError,
        "bad-response",
    ),
    "no JSON": (lambda *_: Answer(200, b"<html>"), BadResponseError, "bad-response"),
    "JSON without end": (lambda *_: Answer(200, b"[" * 200_000), BadResponseError, "bad-response"),
    "a refusal without end": (
        lambda *_: Answer(400, b"[" * 200_000),
        BadResponseError,
        "bad-response",
    ),
    "a wrong secret": (status(401), SourceRefusedError, "refused"),
    "no right to read": (status(403), SourceRefusedError, "refused"),
    "too busy": (status(429), SourceUnavailableError, "unavailable"),
    "nothing": (lambda *_: Answer(0, b""), SourceUnavailableError, "unavailable"),
}


def test_a_server_that_speaks_no_tls_is_told_as_that(
    world: PublishedIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = world.address.replace("http://", "https://")

    assert run(["publish", address, "--url", PREFIX, "--out", str(tmp_path / "out")]) == 4

    assert "the port does not use TLS: write http://" in capsys.readouterr().err


@pytest.mark.parametrize("name", FAULTS)
def test_a_part_of_an_index_is_an_error(world: PublishedIndex, name: str) -> None:
    fault, kind, code = FAULTS[name]
    with (
        world.account(api_key="hidden") as account,
        world.between.spoiling(fault),
        pytest.raises(kind) as caught,
    ):
        list(account.resources())

    assert caught.value.code == code
    said = f"{caught.value.message} {caught.value.evidence} {caught.value.hint}"
    assert "hidden" not in said
    assert world.between.fields[0]["Authorization"] == "ApiKey hidden"


def test_a_busy_server_is_asked_again(world: PublishedIndex) -> None:
    busy = iter(range(3))

    def fault(method: str, target: str) -> Answer | None:
        return Answer(429, b"{}") if "_search?" in target and next(busy, None) is not None else None

    began = world.clock.monotonic()
    with world.account() as account, world.between.spoiling(fault):
        assert len(list(account.resources())) == 30
    assert world.clock.monotonic() - began == pytest.approx(3.5)


def test_answers_that_are_too_large_are_asked_for_in_smaller_pages(
    world: PublishedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER", 5_000)
    with world.account(page=30) as account:
        assert len({resource.uri for resource in account.resources()}) == 30
    assert len([item for item in world.between.asked if item[1].startswith("/_search?")]) > 4


def _mapped(world: PublishedIndex, **fields: object) -> None:
    ask(f"{world.index.url}/{world.index.resources}", "DELETE")
    world.index.make_index(world.index.resources, {**RESOURCE_FIELDS, **fields})


TEXT = {"properties": {"value": {"type": "text"}, "type": {"type": "keyword"}}}
SHORT = {"properties": {"value": {"type": "keyword", "ignore_above": 256}}}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"location": {"type": "nested", **TEXT}}, "location.value is text"),
        ({"location": SHORT}, "more than 256 characters"),
        ({"location": {"type": "keyword"}}, "no field location.value"),
        ({"resource_set": {"type": "text"}}, "resource_set is text"),
    ],
)
def test_a_mapping_in_which_nothing_is_found_is_refused(
    world: PublishedIndex, fields: dict[str, object], words: str
) -> None:
    _mapped(world, **fields)
    with world.account() as account, pytest.raises(ConfigurationError, match=words) as caught:
        account.position()
    assert caught.value.code == "wrong-mapping"


def test_locations_may_be_plain_objects(world: PublishedIndex) -> None:
    location = {"properties": {"value": {"type": "keyword"}, "type": {"type": "keyword"}}}
    _mapped(world, location=location)
    world.index.put(rel_path("new"), b"new")
    world.index.refresh()
    with world.account() as account:
        start = account.position()
        world.index.put(rel_path("new"), b"newer")
        world.index.refresh()
        ((change,), _) = world.told(account, start)
    assert (change.uri, change.resource.length) == (PREFIX + "new", 5)


def test_an_index_that_is_made_anew_or_filled_meanwhile_is_refused(world: PublishedIndex) -> None:
    with world.account(page=20) as account:
        reading = account.resources()
        next(reading)
        for number in range(200):
            world.index.put(rel_path(f"more{number}"), b"")
        world.index.refresh()
        with pytest.raises(SourceUnavailableError) as caught:
            list(reading)
        assert caught.value.code == "unsteady-index"

        position, reading = account.position(), account.resources()
        first = [next(reading) for _ in range(230)]
        assert len({resource.uri for resource in first}) == 230
        world.index.drop()
        world.index.make()
        with pytest.raises(BadResponseError) as made_anew:
            list(reading)
        assert made_anew.value.code == "index-changed"
        with pytest.raises(DiscontinuityError):
            list(account.changes(position, 0))


def test_without_a_log_all_is_read_and_without_an_index_it_is_said(world: PublishedIndex) -> None:
    ask(f"{world.index.url}/{world.index.changes}", "DELETE")
    with world.account() as account:
        assert account.position() == ""
        assert len(list(account.resources())) == 30
    world.index.make_index(world.index.changes, CHANGE_FIELDS)
    ask(f"{world.index.url}/{world.index.resources}", "DELETE")
    with world.account() as account, pytest.raises(ResourceSyncError) as caught:
        account.position()
    assert caught.value.code == "no-index"
    world.index.make_index(world.index.resources, RESOURCE_FIELDS)


@pytest.mark.founding(
    "DIT-ES: resource", "`resource_set` chooses the set", "`--with resource_set=pdf`"
)
def test_a_set_that_the_index_does_not_have_is_told_with_those_that_it_has(
    world: PublishedIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["publish", world.address, "--url", PREFIX, "--out", str(tmp_path / "out")]
    command += ["--with", "resource_set=pfd"]

    assert run(command) == 2

    said = capsys.readouterr().err
    assert "has no resource of the set pfd" in said
    assert "pdf" in said.split("pfd", 1)[1]
    assert run([*command, "--allow-empty"]) == 0


def test_what_cannot_be_published_is_left_out_by_name(
    world: PublishedIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    action = {"index": {"_index": world.index.resources, "_id": "nowhere"}}
    world.index.write([(action, {"resource_set": "pdf", "length": 3})])
    world.index.put(abs_path("../../outside.pdf"), b"")
    world.index.refresh()

    command = ["publish", world.address, "--url", PREFIX, "--out", str(tmp_path / "out")]
    command += ["--with", "resource_set=pdf"]
    assert run(command) != 0
    assert "resource_root_dir" in capsys.readouterr().err

    assert run([*command, "--with", "resource_root_dir=/srv/dit/data"]) == 0

    said = capsys.readouterr()
    assert "nowhere (a document without a location)" in said.out + said.err
    assert "outside.pdf" in said.out + said.err
    assert "30 resources" in said.out
