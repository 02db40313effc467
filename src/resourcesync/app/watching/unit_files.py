"""Files that ``config`` prints to run mirrors and Sources unattended, and to monitor them.

All but the lines of cron are in ``share/resourcesync``.
"""

import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from math import ceil
from pathlib import Path
from typing import Final

from resourcesync.app.configured_mirrors import MirrorConfiguration, values_of
from resourcesync.app.configured_sources import ConfiguredSource, ConfiguredSources
from resourcesync.errors import ConfigurationError
from resourcesync.settings import environment
from resourcesync.settings.config_file import ConfigFile
from resourcesync.settings.mirror import ServiceSettings
from resourcesync.settings.schema import make
from resourcesync.watch.scheduler import Cron

_UNIT_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CRON_FIELDS: Final = 5
_DAY: Final = 86_400
_HOUR: Final = 60
_EACH_QUARTER: Final = "*/15 * * * *"
_NIGHTLY: Final = "30 2 * * *"
_SECRETS: Final = "/etc/resourcesync"


def shared_text(name: str) -> str:
    """Return a file of ``share/resourcesync``."""
    for folder in Path(__file__).parents:
        path = folder / "share" / "resourcesync" / name
        if path.is_file():
            return path.read_text("utf-8")
    raise ConfigurationError(
        f"the installation lacks share/resourcesync/{name}", hint="install resourcesync again"
    )


def service_file(name: str, file: ConfigFile) -> str:
    """Return the file of systemd, cron or nginx for a valid configuration file."""
    configuration = MirrorConfiguration(file)
    sources = ConfiguredSources(configuration)
    if name == "nginx" and sources.names:
        from resourcesync.app.serving.nginx import server_blocks  # noqa: PLC0415 - rarely needed

        tables = map(sources.source, sources.names)
        return "\n".join(server_blocks(tables, shared_text("nginx.conf")))
    if not (configuration.names or sources.names):
        raise ConfigurationError(
            "there is no mirror and no source to run yet",
            hint="add a table [mirror.NAME] or [source.NAME] to the configuration file",
        )
    if name == "cron":
        return _cron(file, configuration, sources)
    return _systemd(file, configuration, sources)


def _systemd(file: ConfigFile, mirrors: MirrorConfiguration, sources: ConfiguredSources) -> str:
    for source in sources.names:
        if not _UNIT_NAME.fullmatch(source):
            raise ConfigurationError(
                f"the source name {source!r} cannot be written in such a file",
                hint="use letters, digits, _ and - in the name, or config cron",
            )
    published = [sources.source(name) for name in sources.names]
    followed = [source.name for source in published if "every" in source.settings]
    units = {
        "watch": [mirrors.mirror(name).dest.absolute() for name in mirrors.names],
        "publish@": [folder for source in published for folder in _written_folders(source)],
    }
    if followed:
        units["follow@"] = units["publish@"]
    grace = make(ServiceSettings, values_of(mirrors.service)).grace
    return "\n".join(
        shared_text(f"resourcesync-{kind}.service").format(
            user=environment.user_name(),
            command=" ".join(_systemd_quote(word).replace("$", "$$") for word in _command()),
            file=_systemd_quote(_printable(file.path.absolute())).replace("$", "$$"),
            units=" ".join(f"resourcesync-publish@{name}.timer" for name in sources.names),
            followed=" ".join(f"resourcesync-follow@{name}" for name in followed),
            lines="\n".join(_unit_lines(folders, mirrors, file)),
            stop=ceil(grace) + 40,
        )
        for kind, folders in units.items()
        if folders
    )


def _unit_lines(
    folders: Iterable[Path], mirrors: MirrorConfiguration, file: ConfigFile
) -> Iterator[str]:
    for folder in sorted(set(folders)):
        yield f"ReadWritePaths={_systemd_quote(_printable(folder))}"
    if log := mirrors.log.get("file"):  # the service also starts without its folder
        folder = Path(log.value).absolute().parent
        yield f"ReadWritePaths={_systemd_quote(f'-{_printable(folder)}')}"
    for name in _secrets(file, "credential"):
        yield f"LoadCredential={name}:{_SECRETS}/credentials/{name}"
    if names := _secrets(file, "env"):
        yield f"# A file with mode 600, and these lines: {'=…, '.join(names)}=…"
        yield f"EnvironmentFile={_SECRETS}/secrets.env"


def _cron(file: ConfigFile, mirrors: MirrorConfiguration, sources: ConfiguredSources) -> str:
    def command(name: str, *words: str) -> str:
        path = _printable(file.path.absolute())
        line = shlex.join((*_command(), name, "--config", path, *words, "-q"))
        return line.replace("%", "\\%")

    lines = [
        "# crontab -e: no output unless something is wrong; a run ends if the last one is active.",
        "# `every`, `audit_every` and `on_change` of a mirror are only for `resourcesync watch`.",
        "# Its `cron` is in UTC or the zone that it names, a crontab in local time.",
    ]
    lines += (f"# Write the secret above: {name}=…" for name in _secrets(file, "env"))
    jobs = _pulls(mirrors)
    for time, names in jobs.items():
        own = names if len(jobs) > 1 else ["--all"]
        lines.append(f"{time}  {command('pull', *own)}")
    if sources.names:
        lines.append(f"{_NIGHTLY}  {command('publish', '--all')}")
    for name in sources.names:
        settings = sources.source(name).settings
        if "every" in settings and settings["every"].value < _DAY:
            words = (name, "--dumps", "none") if "dumps" in settings else (name,)
            lines.append(f"{_each(settings['every'].value)}  {command('publish', *words)}")
    lines += (
        f"0 8 * * *  {command('status', '--check', *words)}"
        ' || echo "see to a mirror or source: resourcesync status"'
        for words in _limits(mirrors, sources)
    )
    return "".join(f"{line}\n" for line in lines)


def _limits(mirrors: MirrorConfiguration, sources: ConfiguredSources) -> Iterator[list[str]]:
    found: dict[str, list[str]] = {}
    for time, names in (*_pulls(mirrors).items(), (_NIGHTLY, sources.names)):
        lag = f"--max-lag={Cron(time).longest_wait + 1}d"
        for name in names:
            table = sources.source(name) if names is sources.names else mirrors.mirror(name).limits
            found.setdefault(lag if table.max_lag is None else "", []).append(name)
    for lag, names in found.items():
        yield [*([lag] if lag else []), *(names if len(found) > 1 else [])]


def _each(seconds: float) -> str:
    minutes = max(round(seconds / 60), 1)
    return f"*/{minutes} * * * *" if minutes < _HOUR else f"17 */{minutes // _HOUR} * * *"


def _pulls(mirrors: MirrorConfiguration) -> dict[str, list[str]]:
    pulls: dict[str, list[str]] = {}
    for name in mirrors.names:
        own = mirrors.mirror(name).settings.get("cron")
        time = " ".join(str(own.value).split()[:_CRON_FIELDS]) if own else _EACH_QUARTER
        pulls.setdefault(time, []).append(name)
    return pulls


def _command() -> tuple[str, ...]:
    found = shutil.which("resourcesync")
    return (found,) if found else (sys.executable, "-m", "resourcesync")


def _written_folders(source: ConfiguredSource) -> Iterator[Path]:
    named = [
        str(setting.value)
        for key in ("out", "site", "state", "versions_in")
        if (setting := source.settings.get(key)) is not None
    ]
    if Path(source.path).is_dir():
        named.append(source.path)
    for name in named:
        if "://" not in name:
            yield Path(name).absolute()


def _secrets(file: ConfigFile, kind: str) -> list[str]:
    tables = (table for table in file.table("auth").values() if isinstance(table, dict))
    values = (value for table in tables for value in table.values() if isinstance(value, dict))
    return sorted({value[kind] for value in values if isinstance(value.get(kind), str)})


def _printable(path: Path) -> str:
    if str(path).isprintable():
        return str(path)
    raise ConfigurationError(
        f"the folder name {str(path)!r} cannot be written in such a file",
        hint="use a name without control characters",
    )


def _systemd_quote(text: str) -> str:
    plain = text.replace("%", "%%")
    if not any(character in plain for character in " \t\"'\\"):
        return plain
    inner = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'
