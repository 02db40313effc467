"""Files that ``config`` prints to run mirrors and Sources unattended.

Mirrors are run by ``watch`` or ``pull``, the Sources of the configuration file by ``publish``.
"""

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import msgspec

from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.configured_sources import ConfiguredSource, ConfiguredSources
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.settings import environment

_NAMING: Final = frozenset({"systemd", "compose"})
"""The files that have the names of Sources in them."""
_UNIT_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CRON_FIELDS: Final = 5
_CREDENTIALS: Final = "/etc/resourcesync/credentials"


class ServiceInstallation(msgspec.Struct, frozen=True, kw_only=True):
    """The installed command, and the configuration that the files need.

    Attributes:
        command: The words of the command.
        file: The configuration file; ``None`` for none.
        sources: Names of the Sources to publish.
        has_mirrors: True if mirrors are run; also without a configuration file.
        folders: The folders that are written: of the mirrors, if any, else of the Sources.
        log: The folder of the log file; ``None`` for no log.
        credentials: Names of secrets that the service manager stores.
        user: The user who runs the service.
        names: The mirrors.
        times: The `cron` of the mirrors that have it.
        has_intervals: True if a mirror has `every`.
    """

    command: tuple[str, ...]
    file: Path | None = None
    sources: tuple[str, ...] = ()
    has_mirrors: bool = True
    folders: tuple[Path, ...] = ()
    log: Path | None = None
    credentials: tuple[str, ...] = ()
    user: str = "resourcesync"
    names: tuple[str, ...] = ()
    times: Mapping[str, str] = msgspec.field(default_factory=dict)
    has_intervals: bool = False

    def pulls(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the times of pulls as a crontab has them, and the mirrors or options of each."""
        for time in dict.fromkeys(self.times.values()):
            at = " ".join(time.split()[:_CRON_FIELDS])
            yield at, [name for name, own in self.times.items() if own == time]
        others = [name for name in self.names if name not in self.times]
        if others or not self.times:
            yield "*/15 * * * *", others if self.times else ["--all"]

    def shell_command(self, *words: str) -> str:
        """Return a command line for a shell."""
        return shlex.join(self._command_arguments(words))

    def command_arguments(self, *words: str) -> Sequence[str]:
        """Return the words of a command line."""
        return self._command_arguments(words)

    def _command_arguments(self, words: Iterable[str]) -> tuple[str, ...]:
        name, *rest = words
        named = () if self.file is None else ("--config", str(self.file))
        return (*self.command, name, *named, *rest)


def find_installation(configuration: MirrorConfiguration) -> ServiceInstallation:
    """Return the installation on this machine, with a configuration."""
    found = shutil.which("resourcesync")
    command = (found,) if found else (sys.executable, "-m", "resourcesync")
    file = configuration.file
    sources = ConfiguredSources(file)
    has_mirrors = bool(configuration.names) or not sources.names
    folders = _folders(configuration) if has_mirrors else _source_folders(sources)
    return ServiceInstallation(
        command=command,
        file=None if file is None else file.path.absolute(),
        sources=sources.names,
        has_mirrors=has_mirrors,
        folders=tuple(sorted(set(folders))),
        log=_log_folder(configuration),
        credentials=tuple(sorted(set(_credentials(configuration)))),
        user=environment.user_name(),
        names=configuration.names,
        times=dict(_settings(configuration, "cron")),
        has_intervals=any(_settings(configuration, "every")),
    )


def _settings(configuration: MirrorConfiguration, key: str) -> Iterator[tuple[str, str]]:
    """Yield the mirrors that have a setting, and its value."""
    for name in configuration.names:
        with suppress(ResourceSyncError):  # `config check` reports its mistakes
            setting = configuration.mirror(name).settings.get(key)
            if setting is not None:
                yield name, str(setting.value)


def _log_folder(configuration: MirrorConfiguration) -> Path | None:
    setting = configuration.log.get("file")
    return None if setting is None else Path(setting.value).absolute().parent


def _folders(configuration: MirrorConfiguration) -> Iterable[Path]:
    for name in configuration.names:
        try:
            yield configuration.mirror(name).dest.absolute()
        except ResourceSyncError:
            continue  # `config check` reports its mistakes


def _source_folders(sources: ConfiguredSources) -> Iterable[Path]:
    for name in sources.names:
        try:
            yield from _written_folders(sources.source(name))
        except ResourceSyncError:
            continue  # `config check` reports its mistakes


def _written_folders(source: ConfiguredSource) -> Iterable[Path]:
    named = [
        str(setting.value)
        for key in ("out", "state", "versions_in")
        if (setting := source.settings.get(key)) is not None
    ]
    if Path(source.path).is_dir():
        named.append(source.path)
    for name in named:
        if "://" not in name:
            yield Path(name).absolute()


def _credentials(configuration: MirrorConfiguration) -> Iterable[str]:
    file = configuration.file
    for table in {} if file is None else file.table("auth").values():
        for value in table.values() if isinstance(table, dict) else ():
            if isinstance(value, dict) and isinstance(value.get("credential"), str):
                yield value["credential"]


def systemd(here: ServiceInstallation) -> str:
    """Return a unit of systemd for ``watch``; without mirrors, for ``publish`` of each Source."""
    own = "\n".join(_unit_lines(here))
    if not here.has_mirrors:
        arguments = here.command_arguments("publish", "--watch")
        words = " ".join(map(_systemd_quote, arguments))
        return f"""\
# /etc/systemd/system/resourcesync-publish@.service, a unit for each [source.NAME]:
# systemctl enable --now {" ".join(f"resourcesync-publish@{name}" for name in here.sources)}
# Create the folders first; the user {here.user} must have write permission.
[Unit]
Description=resourcesync publishes %i
{_UNIT_ORDER}

[Service]
Type=exec
User={here.user}
ExecStart={words} %i
{own}
{_UNIT_LIMITS}"""
    arguments = here.command_arguments("watch", "--state", "/var/lib/resourcesync")
    command = " ".join(map(_systemd_quote, arguments))
    return f"""\
# /etc/systemd/system/resourcesync-watch.service
# Create the folders of the mirrors first; the user {here.user} must have write permission.
# Times: `every` or `cron` of [mirror.NAME], such as cron = "15 2 * * *"; no timer is needed.
[Unit]
Description=resourcesync keeps mirrors in sync
{_UNIT_ORDER}

[Service]
Type=notify
User={here.user}
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
StateDirectory=resourcesync
WatchdogSec=120
{own}
{_UNIT_LIMITS}"""


_UNIT_ORDER: Final = """\
Documentation=man:systemd.service(5)
Wants=network-online.target
After=network-online.target"""
_UNIT_LIMITS: Final = """\
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LimitNOFILE=8192
TimeoutStopSec=60
Restart=on-failure
RestartSec=30
RestartPreventExitStatus=2 8

[Install]
WantedBy=multi-user.target
"""


def _unit_lines(here: ServiceInstallation) -> Iterable[str]:
    for folder in here.folders:
        yield f"ReadWritePaths={_systemd_quote(str(folder))}"
    if here.log is not None:  # the service also starts without it
        yield f"ReadWritePaths={_systemd_quote(f'-{here.log}')}"
    for credential in here.credentials:
        yield f"LoadCredential={credential}:{_CREDENTIALS}/{credential}"


def _systemd_quote(text: str) -> str:
    """Return a word as systemd reads it."""
    plain = text.replace("%", "%%").replace("$", "$$")
    if not any(character in plain for character in " \t\"'\\"):
        return plain
    inner = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def cron(here: ServiceInstallation) -> str:
    """Return lines of a crontab."""

    def command(*words: str) -> str:
        return here.shell_command(*words).replace("%", "\\%")

    note = "no output unless something is wrong; if a run is still active, the next one exits."
    lines = [f"# crontab -e: {note}"]
    if here.has_mirrors:
        check = command("status", "--check", "-q")
        if here.times:
            lines.append("# `cron` is in UTC or the zone that it names, a crontab in local time.")
        if here.has_intervals:
            lines.append("# `every` is only for `resourcesync watch`: change the times here.")
        lines += [f"{time}  {command('pull', *names, '-q')}" for time, names in here.pulls()]
        lines.append(
            f'0 8 * * *     {check} || echo "a mirror needs attention: resourcesync status"'
        )
    if here.sources:
        lines.append(f"17 * * * *    {command('publish', '--all', '-q')}")
    return "".join(f"{line}\n" for line in lines)


def compose(here: ServiceInstallation) -> str:
    """Return a file of Compose; it uses the image of the project's Containerfile."""
    services = [_COMPOSE_WATCH] if here.has_mirrors else []
    services += [
        _COMPOSE_SERVICE.format(
            service=f"publish-{name}",
            command=f"publish {name} --watch\n      --config /data/resourcesync.toml",
        )
        + _NO_HEALTH
        for name in here.sources
    ]
    return (
        "# compose.yaml: put resourcesync.toml beside it; its relative folders are in ./data.\n"
        "# Build the image first, in a checkout: docker build -t resourcesync -f Containerfile .\n"
        "# ./data must belong to the user 65532: install -d -o 65532 -g 65532 data\n"
        f"services:\n{''.join(services)}"
    )


_COMPOSE_SERVICE: Final = """\
  {service}:
    image: resourcesync
    user: "65532:65532"
    read_only: true
    command: >-
      {command}
    volumes:
      - ./resourcesync.toml:/data/resourcesync.toml:ro
      - ./data:/data
    tmpfs: [/tmp]
    stop_grace_period: 30s
    restart: unless-stopped
"""
_NO_HEALTH: Final = """\
    healthcheck: {disable: true}   # it has no address; it ends when it cannot work
"""
_LIVE: Final = "import urllib.request as r; r.urlopen('http://127.0.0.1:9464/livez', timeout=4)"
_COMPOSE_WATCH: Final = (
    _COMPOSE_SERVICE.format(
        service="watch",
        command="watch --config /data/resourcesync.toml\n"
        "      --state /data/.state --admin 0.0.0.0:9464",
    )
    + f"""\
    ports:
      - "127.0.0.1:9464:9464"   # pages, /metrics, /livez: without a password, so for this host only
    healthcheck:   # alive; a Source that is down is no reason to restart
      test: [CMD, python, -c, "{_LIVE}"]
      interval: 30s
      timeout: 5s
      start_period: 30s
"""
)


def launchd(here: ServiceInstallation) -> str:
    """Return a property list of launchd, for macOS."""
    name, command, when = (
        ("watch", ("watch",), "<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>")
        if here.has_mirrors
        else ("publish", ("publish", "--all"), "<key>StartInterval</key><integer>3600</integer>")
    )
    words = "\n".join(
        f"    <string>{escape(argument)}</string>" for argument in here.command_arguments(*command)
    )
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!-- ~/Library/LaunchAgents/resourcesync.{name}.plist -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN"
  "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>resourcesync.{name}</string>
  <key>ProgramArguments</key>
  <array>
{words}
  </array>
  <key>RunAtLoad</key><true/>
  {when}
</dict>
</plist>
"""


SERVICE_FILES: Final[dict[str, Callable[[ServiceInstallation], str]]] = {
    "systemd": systemd,
    "cron": cron,
    "compose": compose,
    "launchd": launchd,
}
"""The files by the actions of ``config`` that print them."""


def missing_extras(name: str, configuration: MirrorConfiguration) -> Iterator[Mapping[str, object]]:
    """Yield a warning for an extra that a file of ours needs on this machine, and that is missing.

    Only ``publish --watch`` of a folder needs one; the image of Compose has it.
    """
    if name != "systemd" or configuration.names or find_spec("watchfiles") is not None:
        return
    sources = ConfiguredSources(configuration.file)
    if any(Path(sources.source(name).path).is_dir() for name in sources.names):
        hint = "pip install 'resourcesync[watch]'"
        yield {"code": "no-extra", "message": "the unit needs the extra 'watch'", "hint": hint}


def service_file(name: str, configuration: MirrorConfiguration) -> str:
    """Return one of the files.

    Raises:
        ConfigurationError: The name of a folder or of a Source cannot be written in the file.
    """
    here = find_installation(configuration)
    if not (configuration.names or here.sources):
        raise ConfigurationError(
            "there is no mirror and no source to run yet",
            hint="add a table [mirror.NAME] or [source.NAME] to the configuration file",
        )
    for source in here.sources if name in _NAMING else ():
        if not _UNIT_NAME.fullmatch(source):
            raise ConfigurationError(
                f"the source name {source!r} cannot be written in such a file",
                hint="use letters, digits, _ and - in the name, or config cron",
            )
    for folder in (*here.folders, *([here.log] if here.log else [])):
        if not str(folder).isprintable():
            raise ConfigurationError(
                f"the folder name {str(folder)!r} cannot be written in such a file",
                hint="use a name without control characters",
            )
    return SERVICE_FILES[name](here)
