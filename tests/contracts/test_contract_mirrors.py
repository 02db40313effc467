"""The account of a mirror keeps what every account must; and what is true of mirrors alone."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.aggregator import open_account
from resourcesync.destination.listed_rows import ENTRY_LINKS_COMPLETE
from resourcesync.destination.pending_tasks import CONTRADICTING
from resourcesync.destination.planner import as_suspect, as_unknown
from resourcesync.errors import ConfigurationError, DiscontinuityError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, EntryRow, Pending, PendingTask, StateTransaction
from resourcesync.model.entries import Resource
from resourcesync.ports.accounts import AccountOptions, ResourceAccount
from tests.contracts.account_suite import AccountSuite

UP, MINE = "http://up.example/", "https://mine.example/"


def copy_of(name: str, content: bytes) -> Copy:
    digest = f"sha-256:{hashlib.sha256(content).hexdigest()}"
    length = len(content)
    return Copy(UP + name, name, length, digest, digest, 0, "", "", "signature", "verified", 10**15)


class TestMirrorAccount(AccountSuite):
    state: SqliteMirrorState
    path: Path

    @pytest.fixture
    def account(self, tmp_path: Path) -> Iterator[ResourceAccount]:
        (tmp_path / ".resourcesync").mkdir()
        self.path = tmp_path / ".resourcesync" / "state.db"
        with SqliteMirrorState(self.path) as self.state:
            self.state.remember(ENTRY_LINKS_COMPLETE, "1")
            with open_account(options(tmp_path)) as account:
                yield account

    def put(self, name: str, content: bytes) -> str:
        self.state.commit(StateTransaction(installed=[copy_of(name, content)]))
        return MINE + name

    def remove(self, name: str) -> None:
        self.state.commit(StateTransaction(removed=[UP + name], now=10**15))

    def expire_changes(self) -> bool:
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("DELETE FROM change WHERE seq < (SELECT max(seq) FROM change)")
        return True

    def test_a_file_that_is_changing_now_is_told_as_it_was(self, account: ResourceAccount) -> None:
        start = account.position()
        self.put("a", b"first")
        new = copy_of("new", b"b")._replace(signature="")
        (told,) = account.resources()
        self.state.commit(
            StateTransaction(suspect=[as_unknown(copy_of("a", b"first")), as_unknown(new)])
        )
        (now,) = account.resources()
        assert replace(now, links=()) == replace(told, links=())
        assert [link.href for link in now.links] == [f"{UP}a"]
        assert [change for lot in account.changes(start, 0) for change in lot.changes] == []

    def test_what_is_fetched_anew_with_the_same_bytes_is_no_change(
        self, account: ResourceAccount
    ) -> None:
        self.put("a", b"first")
        start = account.position()
        self.put("a", b"first")
        assert [change for lot in account.changes(start, 0) for change in lot.changes] == []
        assert account.position() != start

    def test_what_contradicts_the_source_is_not_passed_on_and_is_taken_back(
        self, account: ResourceAccount
    ) -> None:
        self.put("a", b"right")
        self.put("b", b"right")
        start = account.position()
        wrong = copy_of("a", b"wrong")
        uri, fetch = wrong.uri, PendingTask.FETCH
        row = Pending(uri, uri, "a", fetch, "", None, None, CONTRADICTING, "", 1, 0, 0, 0, 0)
        self.state.commit(StateTransaction(installed=[wrong], pending=[row]))
        assert [resource.uri for resource in account.resources()] == [f"{MINE}b"]
        (lot,) = account.changes(start, 0)
        assert [(change.kind, change.resource) for change in lot.changes] == [
            ("deleted", Resource(uri=f"{MINE}a"))
        ]

    def test_a_copy_that_an_audit_found_altered_stays_listed_as_it_ought_to_be(
        self, account: ResourceAccount
    ) -> None:
        self.put("a", b"right")
        told = list(account.resources())
        self.state.commit(StateTransaction(suspect=[as_suspect(copy_of("a", b"right"))]))
        assert list(account.resources()) == told

    def test_what_is_at_the_place_of_our_own_documents_is_left_out(
        self, account: ResourceAccount
    ) -> None:
        self.put("resourcesync/capabilitylist.xml", b"theirs")
        self.put("resourcesync.xml", b"theirs")
        assert [resource.uri for resource in account.resources()] == [f"{MINE}resourcesync.xml"]

    def test_the_log_of_another_mirror_is_not_gone_on_with(self, account: ResourceAccount) -> None:
        self.put("a", b"1")
        position = account.position()
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("UPDATE change SET time = time + 1")
        with pytest.raises(DiscontinuityError):
            list(account.changes(position, 0))

    def test_who_links_to_what_came_or_went_is_told_once(self, account: ResourceAccount) -> None:
        self.put("a", b"1")
        self.put("b", b"1")
        link = f'[["describedby","{UP}meta","","",null,null]]'
        entries = [EntryRow(UP + "a", link, 1), EntryRow(UP + "gone", link, 1)]
        self.state.commit(StateTransaction(entries=entries, now=10**15))
        start = account.position()
        self.put("meta", b"about a")
        (lot,) = account.changes(start, 0)
        assert [change.uri for change in lot.changes] == [f"{MINE}meta", f"{MINE}a"]
        described = lot.changes[1].resource.described_by
        assert [link.href for link in described] == [f"{MINE}meta"]
        assert list(account.changes(lot.position, 0)) == []
        self.put("a", b"2")
        self.remove("meta")
        (lot,) = account.changes(lot.position, 0)
        assert [change.uri for change in lot.changes] == [f"{MINE}a", f"{MINE}meta"]
        assert [link.href for link in lot.changes[0].resource.described_by] == [f"{UP}meta"]


def options(folder: Path, **values: str) -> AccountOptions:
    def fetcher(_url: str) -> None:
        raise AssertionError("a mirror asks nobody")

    return AccountOptions(
        address=f"mirror:{folder}",
        base_uri=MINE,
        memory=str(folder / "memory"),
        out=str(folder / "out"),
        clock=SystemClock(),
        fetcher=fetcher,  # type: ignore[arg-type]  # it is never asked
        values=values,
    )


def test_a_mirror_from_before_links_were_remembered_asks_for_a_whole_list(tmp_path: Path) -> None:
    (tmp_path / ".resourcesync").mkdir()
    with SqliteMirrorState(tmp_path / ".resourcesync" / "state.db") as state:
        state.commit(StateTransaction(installed=[copy_of("a", b"1")]))
    with pytest.raises(
        ConfigurationError, match="does not know the links of its Source's entries yet"
    ) as raised:
        open_account(options(tmp_path)).__enter__()
    assert f"resourcesync pull {tmp_path} --mode baseline" in raised.value.hint


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"hops": "some"}, "a mirror has no such setting"),
        ({"colour": "red"}, "a mirror has no such setting"),
        ({}, "is not a mirror"),
    ],
)
def test_what_is_no_mirror_or_no_setting_of_one_is_refused(
    tmp_path: Path, values: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        open_account(options(tmp_path, **values)).__enter__()
