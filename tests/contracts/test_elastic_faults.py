"""What goes wrong with an index: a typed error, and nothing is published from a part of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.elastic import client
from resourcesync.adapters.elastic.account import IndexAccount
from resourcesync.adapters.elastic.client import SearchServer
from resourcesync.adapters.elastic.layout import CHANGE_FIELDS, RESOURCE_FIELDS
from resourcesync.adapters.elastic.settings import parse
from resourcesync.adapters.memory import ManualClock
from resourcesync.cli.main import run
from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DiscontinuityError,
    ResourceSyncError,
    SourceRefusedError,
    SourceUnavailableError,
)
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Fetcher
from resourcesync.ports.accounts import AccountOptions
from resourcesync.ports.catalogue import Posted
from tests.support.dit_index import PREFIX, Between, DitIndex, Fault, abs_path, ask, rel_path
from tests.support.search_servers import any_server


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, bool]]:
    with any_server() as found:
        yield found


@dataclass
class World:
    """An index with thirty resources, and what stands between us and it."""

    index: DitIndex
    between: Between
    scheme: str
    clock: ManualClock

    @property
    def address(self) -> str:
        return f"{self.scheme}:{self.between.url}/{self.index.name}"

    @contextmanager
    def account(self, page: int = 7, **values: str) -> Iterator[IndexAccount]:
        options = AccountOptions(
            address=self.address,
            base_uri=PREFIX,
            values={"resource_set": "pdf", **values},
            memory="",
            out="",
            clock=self.clock,
            fetcher=_no_fetcher,
        )
        settings = parse(options)
        with SearchServer(settings.server, self.clock) as asked:
            yield IndexAccount(
                asked, settings, self.clock, is_opensearch=self.scheme == "opensearch", page=page
            )

    def told(self, account: IndexAccount, position: str) -> tuple[list[Change], str]:
        """Return what is new in the log, and the position after it."""
        found: list[Change] = []
        for told in account.changes(position, 0):
            found += told.changes
            position = told.position
        return found, position


def _no_fetcher(address: str) -> AbstractContextManager[Fetcher]:
    raise AssertionError(address)


@pytest.fixture
def world(server: tuple[str, bool]) -> Iterator[World]:
    index = DitIndex(server[0])
    index.make()
    for number in range(30):
        index.put(rel_path(f"{number:02}"), b"%d" % number)
    index.refresh()
    between = Between(server[0])
    scheme = "opensearch" if server[1] else "elasticsearch"
    yield World(index, between, scheme, ManualClock(datetime.now(UTC)))
    between.close()
    index.drop()


def searched(answer: Callable[[dict[str, Any]], object], after: int = 1) -> Fault:
    """Let the searches of a view, after the first ones, answer something else."""
    left = iter(range(after))

    def fault(method: str, target: str, body: bytes) -> tuple[int, bytes] | None:
        if not target.startswith("/_search?") or next(left, None) is not None:
            return None
        hits = {"total": {"value": 30, "relation": "eq"}, "hits": []}
        whole = {"_shards": {"total": 3, "failed": 0}, "timed_out": False, "hits": hits}
        return 200, json.dumps(answer(whole)).encode()

    return fault


def status(code: int, kind: str = "any_exception") -> Fault:
    answer = json.dumps({"error": {"type": kind, "reason": "no"}, "status": code}).encode()
    return lambda method, target, body: (code, answer) if "_search?" in target else None


FAULTS: dict[str, tuple[Fault, type[ResourceSyncError], str]] = {
    "some shards failed": (
        searched(lambda it: {**it, "_shards": {"total": 3, "failed": 1}}),
        SourceUnavailableError,
        "partial-search",
    ),
    "it took too long": (
        searched(lambda it: {**it, "timed_out": True}),
        SourceUnavailableError,
        "partial-search",
    ),
    "the view is lost": (
        status(404, "search_context_missing_exception"),
        SourceUnavailableError,
        "lost-view",
    ),
    "fewer than it said": (searched(lambda it: it), BadResponseError, "cut-short"),
    "no fields": (
        searched(lambda it: {**it, "hits": {"hits": [{"_id": "a", "sort": [1]}]}}),
        BadResponseError,
        "bad-response",
    ),
    "no answer to a search": (searched(lambda it: ["?"]), BadResponseError, "bad-response"),
    "an inexact total": (
        searched(lambda it: {**it, "hits": {"total": {"value": 9, "relation": "gte"}}}, 0),
        BadResponseError,
        "bad-response",
    ),
    "no JSON": (lambda *_: (200, b"<html>"), BadResponseError, "bad-response"),
    "a wrong secret": (status(401), SourceRefusedError, "refused"),
    "no right to read": (status(403), SourceRefusedError, "refused"),
    "too busy": (status(429), SourceUnavailableError, "unavailable"),
    "nothing": (lambda *_: (0, b""), SourceUnavailableError, "unavailable"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_part_of_an_index_is_an_error(world: World, name: str) -> None:
    fault, kind, code = FAULTS[name]
    with (
        world.account(api_key="hidden") as account,
        world.between.failing(fault),
        pytest.raises(kind) as caught,
    ):
        list(account.resources())

    assert caught.value.code == code
    said = f"{caught.value.message} {caught.value.evidence} {caught.value.hint}"
    assert "hidden" not in said
    assert world.between.fields[0]["Authorization"] == "ApiKey hidden"


def test_nothing_is_published_from_a_part(world: World, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["publish", world.address, "--out", str(out), "--with", "resource_set=pdf", "--quiet"]
    assert run([*command, "--url", PREFIX]) == 0
    before = {path: path.read_bytes() for path in out.rglob("*.xml")}
    world.index.put(rel_path("31"), b"31")
    world.index.refresh()

    with world.between.failing(searched(lambda it: it)):
        assert run([*command, "--rescan", "0"]) != 0

    assert {path: path.read_bytes() for path in out.rglob("*.xml")} == before
    assert run([*command, "--rescan", "0"]) == 0
    assert {path: path.read_bytes() for path in out.rglob("*.xml")} != before


def test_a_busy_server_is_asked_again(world: World) -> None:
    busy = iter(range(3))

    def fault(method: str, target: str, body: bytes) -> tuple[int, bytes] | None:
        return (429, b"{}") if "_search?" in target and next(busy, None) is not None else None

    began = world.clock.monotonic()
    with world.account() as account, world.between.failing(fault):
        assert len(list(account.resources())) == 30
    assert world.clock.monotonic() - began == pytest.approx(3.5)


def test_answers_that_are_too_large_are_asked_for_in_smaller_pages(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER", 5_000)
    with world.account(page=30) as account:
        assert len({it.uri for it in account.resources()}) == 30
    assert len([it for it in world.between.asked if it[1].startswith("/_search?")]) > 4


def _mapped(world: World, **fields: object) -> None:
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
    world: World, fields: dict[str, object], words: str
) -> None:
    _mapped(world, **fields)
    with world.account() as account, pytest.raises(ConfigurationError, match=words) as caught:
        account.position()
    assert caught.value.code == "wrong-mapping"


def test_locations_may_be_plain_objects(world: World) -> None:
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


def test_an_index_that_is_made_anew_or_filled_meanwhile_is_refused(world: World) -> None:
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
        assert len({it.uri for it in first}) == 230
        world.index.drop()
        world.index.make()
        with pytest.raises(BadResponseError) as made_anew:
            list(reading)
        assert made_anew.value.code == "index-changed"
        with pytest.raises(DiscontinuityError):
            list(account.changes(position, 0))


def test_a_change_is_held_back_until_what_it_did_is_seen(world: World) -> None:
    index, later = world.index, rel_path("later")
    with world.account() as account:
        start = account.position()
        index.log(later, "created")
        index.log(rel_path("03"), "deleted")
        index.put(rel_path("04"), b"new")
        index.refresh()

        told, position = world.told(account, start)
        assert [it.uri for it in told] == [PREFIX + "04"]

        index.put(later, b"here it is")
        index.refresh()
        told, position = world.told(account, position)
        assert [(it.kind, it.uri) for it in told] == [("created", PREFIX + "later")]

        world.clock.sleep(60)  # what still is there then is believed to be there
        told, position = world.told(account, position)
        assert [(it.kind, it.uri) for it in told] == [("updated", PREFIX + "03")]
        assert world.told(account, position) == ([], position)


def test_a_position_is_not_beyond_what_is_not_seen_yet(world: World) -> None:
    index, half = world.index, rel_path("half")
    index.log(half, "created")
    index.refresh()
    with world.account() as account:
        position = account.position()
        action = {"index": {"_index": index.resources, "_id": "half"}}
        index.write([(action, {"resource_set": "pdf", "location": half, "length": 4})])
        index.refresh()
        told, position = world.told(account, position)
        assert [(it.kind, it.uri, it.resource.length) for it in told] == [
            ("created", PREFIX + "half", 4)
        ]
        assert world.told(account, position) == ([], position)


def test_a_change_that_is_seen_late_is_told(world: World) -> None:
    early = f"{datetime.now(UTC) - timedelta(seconds=25):%Y-%m-%dT%H:%M:%SZ}"
    with world.account() as account:
        start = account.position()
        world.index.put(rel_path("05"), b"on time")
        world.index.refresh()
        told, position = world.told(account, start)
        assert [it.uri for it in told] == [PREFIX + "05"]

        world.index.log(rel_path("06"), "updated", timestamp=early, datetime=early)
        world.index.refresh()

        told, position = world.told(account, position)
        assert [it.uri for it in told] == [PREFIX + "06"]
        assert world.told(account, position) == ([], position)


def test_a_change_of_tomorrow_hides_none_of_today(world: World) -> None:
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    with world.account() as account:
        position = account.position()
        for name in ("10", "11"):
            world.index.log(rel_path(name), "updated", timestamp=tomorrow, datetime=tomorrow)
            world.index.put(rel_path("12"), name.encode())
            world.index.refresh()
            told, position = world.told(account, position)
            assert sorted(it.uri for it in told) == [PREFIX + name, PREFIX + "12"]


def test_what_was_erased_or_has_no_date_leads_to_a_whole_look(world: World) -> None:
    index = world.index
    with world.account() as account:
        position = account.position()
        found = ask(f"{index.url}/{index.changes}/_search?size=100")["hits"]["hits"]
        for hit in found:
            index.write([({"delete": {"_index": index.changes, "_id": hit["_id"]}}, None)])
        index.refresh()
        with pytest.raises(DiscontinuityError, match="erased"):
            list(account.changes(position, 0))

        position = account.position()
        index.log(rel_path("07"), "updated", timestamp=None, datetime=None)
        index.refresh()
        with pytest.raises(DiscontinuityError, match="no date"):
            list(account.changes(position, 0))


def test_what_was_written_long_ago_is_not_new_whatever_it_says_of_the_event(world: World) -> None:
    past, future = (
        f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (-1, 1)
    )
    world.index.log(rel_path("13"), "updated", timestamp=past, datetime=future)
    world.index.refresh()
    with world.account() as account:
        position = account.position()
        assert world.told(account, position) == ([], position)


def test_the_last_change_of_each_is_told_oldest_first(world: World) -> None:
    times = [f"2026-01-02T03:04:0{second}Z" for second in range(4)]
    with world.account() as account:
        position = account.position()
        for name, moment in zip(("14", "15", "16", "14"), times, strict=True):
            world.index.log(rel_path(name), "updated", datetime=moment)
        world.index.refresh()
        told, _ = world.told(account, position)
    assert [it.uri.removeprefix(PREFIX) for it in told] == ["15", "16", "14"]


def test_a_change_is_dated_by_when_it_was_written_else_by_when_it_happened(world: World) -> None:
    moment = datetime.now(UTC).replace(microsecond=0)
    with world.account() as account:
        start = account.position()
        world.index.log(rel_path("08"), "updated", timestamp=None)
        world.index.put(rel_path("09"), b"x")
        world.index.refresh()
        told, _ = world.told(account, start)
    assert {it.uri for it in told} == {PREFIX + "08", PREFIX + "09"}
    assert all(it.time is not None and it.time - moment < timedelta(minutes=1) for it in told)


def test_without_a_log_all_is_read_and_without_an_index_it_is_said(world: World) -> None:
    ask(f"{world.index.url}/{world.index.changes}", "DELETE")
    with world.account() as account:
        assert account.position() == ""
        assert len(list(account.resources())) == 30
    world.index.make_index(world.index.changes, CHANGE_FIELDS)
    other = IndexAccount
    with world.account(elastic_resource_doc_type="nothing") as account:
        assert isinstance(account, other)
        with pytest.raises(ResourceSyncError) as caught:
            account.position()
    assert caught.value.code == "no-index"


def test_what_cannot_be_published_is_left_out_by_name(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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


def test_what_is_posted_twice_at_once_is_counted_as_it_happened(world: World) -> None:
    known, new = Resource(uri=PREFIX + "20"), Resource(uri=PREFIX + "new")
    gone = Change(kind=ChangeKind.DELETED, resource=known)
    back = Change(kind=ChangeKind.UPDATED, resource=known)
    here = Change(kind=ChangeKind.CREATED, resource=new)
    with world.account() as account:
        posted = account.post([gone, gone, back, here, here])
        assert posted == Posted(created=2, updated=1, deleted=1)
        assert account.post([gone, gone]) == Posted(deleted=1)
        assert len(list(account.resources())) == 30


def test_an_import_makes_the_indices_and_posts_what_differs(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "lines"
    address = f"{world.scheme}:{world.between.url}/{world.index.name}-own"

    def imported(*told: dict[str, object]) -> str:
        lines.write_text("".join(json.dumps(it) + "\n" for it in told))
        assert run(["catalogue", "import", address, str(lines)]) == 0
        return capsys.readouterr().out

    one = {"uri": PREFIX + "1", "length": 1, "hash": "md5:" + "0" * 32}
    two = {"uri": PREFIX + "2", "length": 2, "type": "text/html"}
    assert "2 created" in imported(one, two)
    assert "nothing that was not known" in imported(one, two)
    assert "1 created, 1 updated, 1 deleted" in imported(
        {**two, "length": 3}, {**one, "uri": "https://o.example/"}
    )

    log = ask(f"{world.index.url}/{world.index.name}-own-change/_search?size=20")
    kinds = [it["_source"]["change"] for it in log["hits"]["hits"]]
    assert sorted(kinds) == ["created", "created", "created", "deleted", "updated"]
    world.index.name += "-own"
