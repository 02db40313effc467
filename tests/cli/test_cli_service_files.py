"""What ``config`` prints for those who run mirrors unattended is true, and understood."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from resourcesync.cli.main import run
from resourcesync.cli.render.service_files import ServiceInstallation, systemd
from tests.support.commands.command_line import Said
from tests.support.commands.settings_file import put

TABLES = """\
[mirror.a]
source = "https://a.example/"
dest = "copies/a b%"
auth = "a"
every = "5m"
[auth.a]
type = "bearer"
token = { credential = "a-token" }
"""


def printed(said: Said, name: str) -> str:
    assert run(["config", name]) == 0
    return said.readouterr().out


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_no_fault_in_the_unit(said: Said, tmp_path: Path) -> None:
    put(TABLES)
    unit = tmp_path / "resourcesync-watch.service"
    unit.write_text(printed(said, "systemd"))

    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert f'ReadWritePaths="{tmp_path}/copies/a b%%"' in unit.read_text()
    assert "LoadCredential=a-token:" in unit.read_text()


def test_the_unit_may_write_the_log_where_there_is_one(said: Said, tmp_path: Path) -> None:
    put(TABLES)
    assert printed(said, "systemd").count("ReadWritePaths") == 1

    put(f'{TABLES}[log]\nfile = "logs/watch.log"\n')
    assert f"ReadWritePaths=-{tmp_path}/logs\n" in printed(said, "systemd")


def test_a_word_of_the_unit_is_quoted_as_systemd_reads_it() -> None:
    text = systemd(ServiceInstallation(command=("/opt/a b/resourcesync", 'x"$%\\')))
    assert 'ExecStart="/opt/a b/resourcesync" "x\\"$$%%\\\\" watch --state ' in text


def test_the_lines_for_cron_are_command_lines_of_ours(said: Said) -> None:
    put(TABLES)
    lines = [
        splitline
        for splitline in printed(said, "cron").splitlines()
        if not splitline.startswith("#")
    ]
    assert len(lines) == 2
    for line in lines:
        command = re.split(r"\s{2,}", line, maxsplit=1)[1].partition(" || ")[0]
        words = shlex.split(command.replace("\\%", "%"))
        assert {"pull", "status"} & set(words)


def test_cron_pulls_each_mirror_at_its_own_time(said: Said) -> None:
    table = '[mirror.{0}]\nsource = "https://{0}.example/"\ndest = "{0}"\n{1}\n'
    night = 'cron = "15 2 * * *"'
    put(table.format("b", night) + table.format("c", night) + table.format("d", 'every = "7d"'))
    text = printed(said, "cron")
    pulls = [line for line in text.splitlines() if " pull " in line]

    assert [(line[:11], shlex.split(line)[-3:]) for line in pulls] == [
        ("15 2 * * * ", ["b", "c", "-q"]),
        ("*/15 * * * ", [str(Path("resourcesync.toml").absolute()), "d", "-q"]),
    ]
    assert "# `every` is only for `resourcesync watch`" in text
    assert "# `cron` is in UTC" in text


SOURCES = """\
[source.theses]
path = "oai:https://repo.example/oai"
url = "https://theses.example/"
out = "theses"
[source.pages]
path = "pages"
url = "https://pages.example/"
"""


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_no_fault_in_the_unit_of_sources(said: Said, tmp_path: Path) -> None:
    put(SOURCES)
    (tmp_path / "pages").mkdir()
    unit = tmp_path / "resourcesync-publish@.service"
    unit.write_text(printed(said, "systemd"))

    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    written = re.findall("ReadWritePaths=(.*)", unit.read_text())
    assert written == [f"{tmp_path}/pages", f"{tmp_path}/theses"]


def test_a_unit_that_needs_an_extra_that_is_missing_says_so(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(SOURCES)
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert run(["config", "systemd"]) == 0
    assert said.readouterr().err == ""

    Path("pages").mkdir()
    assert run(["config", "systemd"]) == 0
    assert "pip install 'resourcesync[watch]'" in said.readouterr().err
    assert run(["config", "compose"]) == 0
    assert said.readouterr().err == ""


def test_the_unit_says_when_mirrors_are_pulled_so_that_no_timer_is_needed(said: Said) -> None:
    put(TABLES)

    assert "`cron` of [mirror.NAME]" in printed(said, "systemd").partition("[Unit]")[0]


def test_sources_are_published_beside_mirrors(said: Said) -> None:
    put(TABLES + SOURCES)
    cron = [line for line in printed(said, "cron").splitlines() if not line.startswith("#")]
    services = yaml.safe_load(printed(said, "compose"))["services"]

    for word in ("pull", "status", "publish"):
        assert sum(f" {word} " in line for line in cron) == 1
    assert list(services) == ["watch", "publish-theses", "publish-pages"]
    assert "watch" in printed(said, "systemd")


def test_a_file_without_mirrors_runs_no_pull(said: Said) -> None:
    put(SOURCES)
    (line,) = [line for line in printed(said, "cron").splitlines() if not line.startswith("#")]
    words = [element.text for element in ET.fromstring(printed(said, "launchd")).iter("string")]

    assert "publish" in line
    assert list(yaml.safe_load(printed(said, "compose"))["services"]) == [
        "publish-theses",
        "publish-pages",
    ]
    assert words[-1] == "--all"


@pytest.mark.parametrize("name", ["a b", "-x", "a#", "ü", "%i", "a: b"])
def test_a_name_that_no_unit_can_have_is_refused(name: str, said: Said) -> None:
    put(f'[source."{name}"]\npath = "pages"\nurl = "https://pages.example/"\n')

    for kind in ("systemd", "compose"):
        assert run(["config", kind]) == 2
        assert "cannot be written in such a file" in said.readouterr().err
    assert "publish" in printed(said, "cron")


def test_the_container_is_healthy_while_it_is_alive_and_names_its_port(said: Said) -> None:
    put(TABLES + SOURCES)
    services = yaml.safe_load(printed(said, "compose"))["services"]

    test = services["watch"]["healthcheck"]["test"]
    assert test[:3] == ["CMD", "python", "-c"]
    assert "/livez" in test[3]
    compile(test[3], "healthcheck", "exec")
    assert services["watch"]["ports"] == ["127.0.0.1:9464:9464"]
    assert services["publish-pages"]["healthcheck"] == {"disable": True}
    assert {service["image"] for service in services.values()} == {"resourcesync"}


def test_relative_folders_are_in_the_volume_of_the_container(said: Said) -> None:
    put(SOURCES)
    service = yaml.safe_load(printed(said, "compose"))["services"]["publish-pages"]

    assert service["command"].split()[-1] == "/data/resourcesync.toml"
    assert service["volumes"] == [
        "./resourcesync.toml:/data/resourcesync.toml:ro",
        "./data:/data",
    ]


@pytest.mark.parametrize("name", ["systemd", "cron", "compose", "launchd"])
def test_nothing_is_printed_without_a_configuration_that_works(name: str, said: Said) -> None:
    assert run(["config", name]) == 2
    captured = said.readouterr()
    assert captured.out == ""
    assert "there is no configuration file" in captured.err

    put("[defaults]\n")
    assert run(["config", name]) == 2
    captured = said.readouterr()
    assert captured.out == ""
    assert "there is no mirror and no source to run yet" in captured.err

    put('[source.pages]\nurl = "https://pages.example/"\n')
    assert run(["config", name]) == 2
    captured = said.readouterr()
    assert "source.pages" in captured.err
    assert "publish" not in captured.out


def test_the_list_for_launchd_names_our_command(said: Said) -> None:
    put(TABLES)
    text = printed(said, "launchd")
    words = [element.text for element in ET.fromstring(text).iter("string")]
    assert "watch" in words
    assert "resourcesync.watch" in words  # the label is in no domain of others


def test_a_program_gets_a_file_as_json(said: Said) -> None:
    put(TABLES)
    assert run(["config", "compose", "--json"]) == 0
    [line] = [
        item for item in map(json.loads, said.readouterr().out.splitlines()) if "text" in item
    ]
    assert "watch --config" in line["text"]
