"""Files for those who run ``watch`` or ``pull`` unattended, printed by ``config``."""

import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from resourcesync import config
from resourcesync.cli.configured import MirrorConfiguration
from resourcesync.errors import ConfigurationError, ResourceSyncError

_CREDENTIALS: Final = "/etc/resourcesync/credentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceInstallation:
    """What is installed here, and what is configured.

    Attributes:
        command: The words that run us.
        file: The configuration file; ``None`` when there is none yet.
        folders: The folders of the mirrors.
        log: The folder of the log file; ``None`` when none is kept.
        credentials: Names of secrets that the service manager keeps.
        user: Who runs it.
    """

    command: tuple[str, ...]
    file: Path | None = None
    folders: tuple[Path, ...] = ()
    log: Path | None = None
    credentials: tuple[str, ...] = ()
    user: str = "resourcesync"

    def shell_command(self, *words: str) -> str:
        """Return a command line of ours, for a shell."""
        return shlex.join(self._command_arguments(words))

    def command_arguments(self, *words: str) -> Sequence[str]:
        """Return the same as words."""
        return self._command_arguments(words)

    def _command_arguments(self, words: Iterable[str]) -> tuple[str, ...]:
        name, *rest = words
        named = () if self.file is None else ("--config", str(self.file))
        return (*self.command, name, *named, *rest)


def find_installation(configuration: MirrorConfiguration) -> ServiceInstallation:
    """Return what is installed here, and what a configuration says of it."""
    found = shutil.which("resourcesync")
    command = (found,) if found else (sys.executable, "-m", "resourcesync")
    file = configuration.file
    return ServiceInstallation(
        command=command,
        file=None if file is None else file.path.absolute(),
        folders=tuple(sorted(set(_folders(configuration)))),
        log=_log_folder(configuration),
        credentials=tuple(sorted(set(_credentials(configuration)))),
        user=config.user_name(),
    )


def _log_folder(configuration: MirrorConfiguration) -> Path | None:
    setting = configuration.log.get("file")
    return None if setting is None else Path(setting.value).absolute().parent


def _folders(configuration: MirrorConfiguration) -> Iterable[Path]:
    for name in configuration.names:
        try:
            yield configuration.mirror(name).dest.absolute()
        except ResourceSyncError:
            continue  # `config check` tells what is wrong with it


def _credentials(configuration: MirrorConfiguration) -> Iterable[str]:
    file = configuration.file
    for table in {} if file is None else file.table("auth").values():
        for value in table.values() if isinstance(table, dict) else ():
            if isinstance(value, dict) and isinstance(value.get("credential"), str):
                yield value["credential"]


def systemd(here: ServiceInstallation) -> str:
    """Return a unit of systemd for ``watch``."""
    folders = "\n".join(f"ReadWritePaths={_systemd_quote(str(it))}" for it in here.folders)
    if here.log is not None:  # the service begins without it, too
        folders = f"{folders}\nReadWritePaths={_systemd_quote(f'-{here.log}')}".strip()
    secrets = "\n".join(f"LoadCredential={it}:{_CREDENTIALS}/{it}" for it in here.credentials)
    own = "\n".join(filter(None, (folders, secrets)))
    command = " ".join(
        map(_systemd_quote, here.command_arguments("watch", "--state", "/var/lib/resourcesync"))
    )
    return f"""\
# /etc/systemd/system/resourcesync-watch.service
# Make the folders of the mirrors first; {here.user} must be able to write them.
[Unit]
Description=resourcesync keeps mirrors in step
Documentation=man:systemd.service(5)
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
User={here.user}
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
StateDirectory=resourcesync
{own}
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LimitNOFILE=8192
WatchdogSec=120
TimeoutStopSec=60
Restart=on-failure
RestartSec=30
RestartPreventExitStatus=2 8

[Install]
WantedBy=multi-user.target
"""


def _systemd_quote(text: str) -> str:
    """Return a word as systemd reads it."""
    plain = text.replace("%", "%%").replace("$", "$$")
    if not any(character in plain for character in " \t\"'\\"):
        return plain
    inner = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def cron(here: ServiceInstallation) -> str:
    """Return lines of a crontab."""
    pull = here.shell_command("pull", "--all", "-q").replace("%", "\\%")
    check = here.shell_command("status", "--check", "-q").replace("%", "\\%")
    return f"""\
# crontab -e: silent unless something needs a person; two runs never meet in one mirror.
*/15 * * * *  {pull}
0 8 * * *     {check} || echo "a mirror needs a look: resourcesync status"
"""


def compose(here: ServiceInstallation) -> str:
    """Return a file of Docker Compose; it builds on the official image of Python."""
    del here
    return """\
# compose.yaml: resourcesync.toml beside it; `dest` of each mirror below /data.
services:
  watch:
    image: python:3.13-slim
    user: "65532:65532"
    read_only: true
    environment:
      PYTHONPATH: /opt/resourcesync
    command: >-
      python -m resourcesync watch --config /etc/resourcesync/resourcesync.toml
      --state /data/.state --admin 0.0.0.0:9464
    volumes:
      - ./packages:/opt/resourcesync:ro   # pip install --target packages resourcesync
      - ./resourcesync.toml:/etc/resourcesync/resourcesync.toml:ro
      - ./data:/data
    tmpfs: [/tmp]
    stop_grace_period: 30s
    restart: unless-stopped
    healthcheck:
      test: [CMD, python, -m, resourcesync, status, --check, --config,
             /etc/resourcesync/resourcesync.toml]
      interval: 5m
"""


def launchd(here: ServiceInstallation) -> str:
    """Return a property list of launchd, for macOS."""
    words = "\n".join(
        f"    <string>{escape(it)}</string>" for it in here.command_arguments("watch")
    )
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!-- ~/Library/LaunchAgents/org.openarchives.resourcesync.watch.plist -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN"
  "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>org.openarchives.resourcesync.watch</string>
  <key>ProgramArguments</key>
  <array>
{words}
  </array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>
"""


SERVICE_FILES: Final[dict[str, Callable[[ServiceInstallation], str]]] = {
    "systemd": systemd,
    "cron": cron,
    "compose": compose,
    "launchd": launchd,
}
"""By the action of ``config`` that prints it."""


def service_file(name: str, configuration: MirrorConfiguration) -> str:
    """Return one of the files.

    Raises:
        ConfigurationError: A folder's name cannot stand in it.
    """
    here = find_installation(configuration)
    for folder in (*here.folders, *([here.log] if here.log else [])):
        if not str(folder).isprintable():
            raise ConfigurationError(
                f"the folder {str(folder)!r} cannot stand in such a file",
                hint="choose one without control characters",
            )
    return SERVICE_FILES[name](here)
