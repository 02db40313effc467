"""Outages of a Source, a disk and a store: what the operator of ``watch`` sees, and when.

What is seen is compared with the tables of docs/how-to/outages.md.
"""

import shutil
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from tests.support.commands.watching import Watching, generalized
from tests.support.documents.written import listed
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.servers.interposed import Answer as Interrupted
from tests.support.servers.interposed import interposed
from tests.support.servers.object_server import ObjectServer
from tests.support.servers.tiny_source import Answer, TinySource
from tests.support.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs/how-to/outages.md"
FAILING = 'resourcesync_mirror_state{mirror="museum",state="failing"} 1'
LATER = "2026-01-02T00:00:00Z"


@pytest.fixture
def source() -> Iterator[TinySource]:
    with TinySource() as running:
        running.offer({"/a.txt": b"a"})
        yield running


def configure(home: Path, source: str, more: str = "") -> None:
    (home / "resourcesync.toml").write_text(
        f'[mirror.museum]\nsource = "{source}"\nretries = 0\nevery = "1s"\nmax_lag = "1h"\n{more}'
        + ("" if "dest" in more else 'dest = "copies"\n')
    )


class Seen(NamedTuple):
    """What an operator sees of an outage: a row of the table."""

    line: str  # what `watch` prints and logs first
    action: str  # what `status` says to do
    reason: str  # why the mirror waits for its next pull

    def row(self, outage: str) -> str:
        return f"| {outage} | `{self.line}` | {self.action} | {self.reason} |"


def observe(watching: Watching) -> Seen:
    printed = watching.line("pull: ").partition("  next: ")[0]
    status = watching.status()
    assert status.code == 1
    assert "museum  failing" in status.stdout
    [action] = [
        line.partition("next   ")[2] for line in status.stdout.splitlines() if "next   " in line
    ]
    code = printed.partition("  exit ")[2].partition(" ")[0]
    wait_until(lambda: FAILING in watching.metrics())  # not while a retry is running
    assert any(f'kind="pull",exit="{code}"}}' in line for line in watching.metrics())
    logged = [line for line in watching.log.read_text().splitlines() if "museum pull:" in line]
    assert logged[0].split()[1:3] == ["warning", "resourcesync.cli"]
    assert logged[0].partition(" resourcesync.cli ")[2].startswith(" ".join(printed.split()[1:]))
    line = generalized(printed).removeprefix("TIME  museum  ")
    return Seen(line, generalized(action), watching.reason_to_wait())


def recovered(watching: Watching) -> None:
    assert "  in sync  after " in watching.line("in sync")
    assert watching.status().code == 0
    good = 'resourcesync_mirror_state{mirror="museum",state="in sync"} 1'
    wait_until(lambda: good in watching.metrics())  # not while the next pull is running
    assert watching.next_pull()["tries"] == 0


def test_a_source_that_is_away(tmp_path: Path) -> None:
    with HostileServer() as server:
        port = server.port
        offer(server)
        configure(tmp_path, f"{server.origin}/list.xml")
        with Watching(tmp_path) as watching:
            watching.line("in sync")
            server.__exit__(None, None, None)
            assert observe(watching).row("The Source does not answer") in PAGE.read_text()
            with HostileServer(port=port) as again:
                offer(again)
                watching.pull_by_hand()
                recovered(watching)


def test_a_source_that_asks_to_wait(source: TinySource, tmp_path: Path) -> None:
    configure(tmp_path, source.url)
    lists = dict(source.answers)
    with Watching(tmp_path) as watching:
        watching.line("in sync")
        busy = Answer(status=503, headers={"Retry-After": "1"})
        source.answers.update(dict.fromkeys(lists, busy))
        assert (
            observe(watching).row("The Source answers 503 with `Retry-After`") in PAGE.read_text()
        )
        source.answers.update(lists)
        recovered(watching)


def offer(server: HostileServer) -> None:
    entry = f"<url><loc>{server.origin}/a.txt</loc></url>"
    body = listed("resourcelist", "2026-01-01T00:00:00Z", entry)
    server.on("/list.xml", answer(body=body, Content_Type="application/xml"))
    server.on("/a.txt", answer(body=b"a"))


def test_a_certificate_that_expires(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    past = datetime.now(UTC) - timedelta(days=1)
    with HostileServer(tls=context) as server:
        offer(server)
        configure(tmp_path, f"{server.origin}/list.xml", 'ca_file = "ca.pem"\n')
        with Watching(tmp_path) as watching:
            watching.line("in sync")
            expired = authority.issue_cert(
                "127.0.0.1", not_before=past - timedelta(days=90), not_after=past
            )
            expired.configure_cert(context)
            assert observe(watching).row("Its certificate expired") in PAGE.read_text()
            authority.issue_cert("127.0.0.1").configure_cert(context)
            recovered(watching)

            other = trustme.CA()  # and its authority is replaced, as is the file of the mirror
            other.issue_cert("127.0.0.1").configure_cert(context)
            watching.line("pull: tls: no trusted TLS connection")
            other.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
            recovered(watching)


def test_a_disk_that_is_full(source: TinySource, small_disk: Path, tmp_path: Path) -> None:
    configure(tmp_path, source.url, f'dest = "{small_disk}/copies"\n')
    with Watching(tmp_path) as watching:
        watching.line("in sync")
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 100_000))
        files = {f"/{number}.bin": bytes([number]) * 100_000 for number in range(5)}
        source.offer({"/a.txt": b"a", **files}, at=LATER)
        assert observe(watching).row("The disk is full") in PAGE.read_text()
        ballast.unlink()
        recovered(watching)


IMPATIENT = """\
from resourcesync_s3 import store
from resourcesync.cli.main import main

store.PATIENCE = 1.0  # instead of a minute
main()
"""


def test_a_store_that_is_away_for_longer(
    source: TinySource, object_server: ObjectServer, bucket: str, tmp_path: Path
) -> None:
    configure(tmp_path, source.url, f'dest = "{bucket}"\n')
    program = tmp_path / "impatient.py"
    program.write_text(IMPATIENT)
    with (
        interposed(object_server.port) as between,
        Watching(tmp_path, program, more=object_server.environment(between.url)) as watching,
    ):
        watching.line("in sync")
        between.spoil = lambda *_: Interrupted(0, b"")
        assert observe(watching).row("Its store is away for more than a minute") in PAGE.read_text()
        between.spoil = lambda *_: None
        watching.reload()
        recovered(watching)
