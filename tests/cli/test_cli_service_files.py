"""What ``config`` prints for those who run mirrors unattended is true, and understood."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from resourcesync.app.watching import unit_files
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.commands.run import Ran, program
from tests.support.commands.settings_file import put

TABLES = """\
[mirror.a]
source = "https://a.example/"
dest = "copies/a b%"
auth = "a"
[auth.a]
type = "bearer"
token = { credential = "a-token" }
[auth.b]
type = "basic"
username = "b"
password = { env = "B_SECRET" }
[log]
file = "logs/watch.log"
"""
SOURCES = """\
[source.theses]
path = "oai:https://repo.example/oai"
url = "https://theses.example/"
out = "theses"
every = "2h"
[source.pages]
path = "pages"
url = "https://pages.example/"
dumps = "all"
every = "10m"
[source.old]
path = "pages"
url = "https://old.example/"
out = "theses"
"""


def printed(said: Said, name: str) -> str:
    assert run(["config", name]) == 0
    return said.readouterr().out


def cron_jobs(said: Said) -> list[tuple[str, list[str]]]:
    lines = [line for line in printed(said, "cron").splitlines() if not line.startswith("#")]
    jobs = [line.partition("  ") for line in lines]
    return [
        (time, shlex.split(job.partition(" || ")[0].replace("\\%", "%"))) for time, _, job in jobs
    ]


def test_each_unit_may_write_its_folders_and_no_other(said: Said, tmp_path: Path) -> None:
    put(f'{TABLES}{SOURCES}[watch]\ngrace = "5m"\n')
    (tmp_path / "pages").mkdir()
    name = re.compile(r"^# /etc/systemd/system/([\w@.-]+)", re.MULTILINE)
    _, *parts = name.split(printed(said, "systemd"))
    units = dict(zip(parts[::2], parts[1::2], strict=True))

    written = {name: re.findall("ReadWritePaths=(.*)", text) for name, text in units.items()}
    log, sources = f"-{tmp_path}/logs", [f"{tmp_path}/pages", f"{tmp_path}/theses"]
    assert written == {
        "resourcesync-watch.service": [f'"{tmp_path}/copies/a b%%"', log],
        "resourcesync-publish@.service": [*sources, log],
        "resourcesync-publish@.timer": [],
        "resourcesync-follow@.service": [*sources, log],
    }
    publish = f" publish --config {tmp_path}/resourcesync.toml"
    assert f"{publish} %i --quiet\n" in units["resourcesync-publish@.service"]
    assert f"{publish} --watch %i\n" in units["resourcesync-follow@.service"]
    assert "pip install 'resourcesync[watch]'" in units["resourcesync-follow@.service"]
    assert "follow@theses resourcesync-follow@pages\n" in units["resourcesync-follow@.service"]
    assert "publish@old.timer\n" in units["resourcesync-publish@.timer"]
    never = " ".join(str(int(code)) for code in (ExitCode.USAGE, ExitCode.LOCAL))
    assert f"RestartPreventExitStatus={never}\n" in units["resourcesync-follow@.service"]
    assert "LoadCredential=a-token:" in units["resourcesync-publish@.service"]
    secrets = "B_SECRET=…\nEnvironmentFile=/etc/resourcesync/secrets.env\n"
    assert secrets in units["resourcesync-watch.service"]
    assert "\nTimeoutStopSec=340\n" in units["resourcesync-watch.service"]
    for unit, text in units.items():
        (tmp_path / unit).write_text(f"#{text}")
    if shutil.which("systemd-analyze"):
        files = [str(tmp_path / unit.replace("@", "@a")) for unit in units]
        verify = ["systemd-analyze", "verify", "--man=no", *files]
        assert program(*verify) == Ran(0, "", "")


def test_a_word_of_the_unit_is_quoted_as_systemd_reads_it(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(TABLES)
    monkeypatch.setattr(shutil, "which", lambda _: '/opt/a b/{file}"$%\\')

    assert 'ExecStart="/opt/a b/{file}\\"$$%%\\\\" watch --config ' in printed(said, "systemd")


def test_cron_pulls_each_mirror_at_its_own_time_and_reports_those_that_are_late(said: Said) -> None:
    table = '[mirror.{0}]\nsource = "https://{0}.example/"\ndest = "{0}"\n{1}\n'
    night = 'cron = "15 2 * * * Europe/Vienna"'
    put(table.format("b", night) + table.format("c", night) + table.format("d", 'every = "7d"'))

    file = str(Path("resourcesync.toml").absolute())
    with open(file, "a") as own:
        own.write(table.format("e", 'cron = "0 3 * * 1"') + table.format("f", 'max_lag = "9h"'))
    assert [(time, words[words.index(file) + 1 : -1]) for time, words in cron_jobs(said)] == [
        ("15 2 * * *", ["b", "c"]),
        ("*/15 * * * *", ["d", "f"]),
        ("0 3 * * 1", ["e"]),
        ("0 8 * * *", ["--check", "--max-lag=2d", "b", "c", "d"]),
        ("0 8 * * *", ["--check", "f"]),
        ("0 8 * * *", ["--check", "--max-lag=8d", "e"]),
    ]


def test_a_source_that_fails_or_is_lost_is_alerted(said: Said) -> None:
    rule = printed(said, "alerts").partition("alert: SourceFailing")[2].partition("- alert:")[0]
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "x").write_text("x")
        assert run(["publish", name, "--url", "https://h.example/", "-q"]) == 0
        Path(name, "x").unlink()
    assert run(["publish", "a", "-q"]) != 0  # nothing is left
    shutil.rmtree("b/.resourcesync")
    Path("unmounted").mkdir()
    put('[source.c]\npath = "unmounted"\nurl = "https://h.example/"\n')
    said.readouterr()

    run(["status", "a", "b", "--format", "prom"])
    figures = said.readouterr().out.replace('{source="b"}', "").replace('source="a",', "")
    for command in ("status", "publish"):
        assert run([command, "c"]) == 2
        assert "check the mount" in said.readouterr().err
    alerts = re.findall(r"(resourcesync_\S+) == (\d)", rule)
    assert len(alerts) == 2
    assert all(f"{figure} {value}\n" in figures for figure, value in alerts)


@pytest.mark.founding("DSpace: Process", "A scheduled task keeps them up to date", "`config cron`")
def test_cron_publishes_with_packages_at_night_and_in_between_without(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/opt/50% off/resourcesync")
    put(TABLES + SOURCES)
    file = str(Path("resourcesync.toml").absolute())
    publish = [
        ("30 2 * * *", "publish", "--config", file, "--all", "-q"),
        ("17 */2 * * *", "publish", "--config", file, "theses", "-q"),
        ("*/10 * * * *", "publish", "--config", file, "pages", "--dumps", "none", "-q"),
        ("0 8 * * *", "status", "--config", file, "--check", "--max-lag=2d", "-q"),
    ]

    jobs = cron_jobs(said)
    assert {words[0] for _, words in jobs} == {"/opt/50% off/resourcesync"}
    assert [(time, *words[1:]) for time, words in jobs] == [
        ("*/15 * * * *", "pull", "--config", file, "--all", "-q"),
        *publish,
    ]
    put(SOURCES)
    assert [(time, *words[1:]) for time, words in cron_jobs(said)] == publish


def test_a_program_gets_a_file_as_json(said: Said) -> None:
    put(TABLES)
    text = printed(said, "systemd")

    assert run(["config", "systemd", "--json"]) == 0
    assert [row["text"] for row in rows(said) if row["type"] == "file"] == [text]


def test_an_installation_without_its_shared_files_says_so(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_files, "__file__", "/nowhere/unit_files.py")

    assert run(["config", "alerts"]) == 2
    assert "the installation lacks share/resourcesync/alerts.yml" in said.readouterr().err
