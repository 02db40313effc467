"""A place to work in, a Source and a tree, for every test of the command line."""

import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import trustme

from resourcesync.adapters.system import SystemClock
from resourcesync.cli import main
from resourcesync.cli.main import run
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.model.timestamps import format_w3c
from tests.support.commands.command_line import CERTIFICATE_END, FILES, Said
from tests.support.documents.written import facts, listed
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.servers.tiny_source import TinySource


@pytest.fixture
def said(capsys: Said) -> Said:
    return capsys


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("RESOURCESYNC_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    if "XDG_STATE_HOME" not in os.environ:  # a fixture of the module may have set it
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no-state"))
    return tmp_path


@pytest.fixture
def source() -> Iterator[TinySource]:
    with TinySource() as running:
        running.offer(FILES)
        yield running


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    source.asked.clear()
    return "museum"


@pytest.fixture
def tree(here: Path) -> Path:
    for target, body in FILES.items():
        path = here / "public" / target.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        os.utime(path, (1_700_000_000, 1_700_000_000))  # long enough ago to be trusted unread
    return Path("public")


@pytest.fixture
def authority(here: Path) -> trustme.CA:
    """Return an authority whose file is ``ca.pem``; ``other.pem`` is that of another one."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(here / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(here / "other.pem"))
    return made


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[HostileServer]:
    """Serve ``/list.xml`` of one file with TLS, by a certificate with a known end."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", not_after=CERTIFICATE_END).configure_cert(context)
    with HostileServer(tls=context) as server:
        entry = f"<url><loc>{server.origin}/a.txt</loc><rs:md{facts(b'abc')}/></url>"
        now = format_w3c(SystemClock().now().replace(microsecond=0))
        body = listed("resourcelist", now, [entry])
        server.on("/list.xml", answer(body=body, Content_Type="application/xml"))
        server.on("/a.txt", answer(body=b"abc"))
        yield server


@pytest.fixture
def with_job(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(work: Callable[[Screen], CommandOutcome], **options: Any) -> None:
        job = Job(
            command="demo",
            output=OutputOptions(**options),
            work=work,
            resume_command="resourcesync demo",
        )

        def get_command(_self: object, _ctx: click.Context, _name: str) -> click.Command:
            return click.Command("demo", callback=lambda: job)

        monkeypatch.setattr(main.LazyGroup, "get_command", get_command)

    return put
