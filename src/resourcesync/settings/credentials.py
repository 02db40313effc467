"""Secrets, each for one origin: the places they are read from, and the fields that carry them.

A secret is never written in a configuration file or on a command line. It comes from the
environment, a file, a credential of the service manager, or a command. It is read once, goes into
one field of the requests to one origin, and is in no message and no ``repr``.
"""

import os
import re
import stat
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from resourcesync.errors import ConfigurationError
from resourcesync.settings import environment
from resourcesync.settings.mirror import Credentials
from resourcesync.settings.schema import parse_header

MOST_BYTES: Final = 64 * 1024
COMMAND_SECONDS: Final = 60.0

_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_SHARED_MODES: Final = stat.S_IRWXG | stat.S_IRWXO
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_SOURCES: Final = "{ env = … }, { file = … }, { credential = … } or { command = […] }"


def read_credentials(
    name: str, table: Mapping[str, object], *, home: str, environ: Mapping[str, str] | None = None
) -> Credentials:
    """Read one table ``[auth.NAME]``, and the secret that it points to.

    ``type`` is ``bearer`` (``token``), ``basic`` (``username``, ``password``), ``header``
    (``name``, ``value``) or ``netrc`` (``file``); ``origin`` is the origin it is for when that is
    not the Source's, which ``home`` names. Secrets are tables that name their places.
    """
    return _parse_credentials(_AuthTable(name, table, home, environ))


def read_proxy_secret(name: str, table: Mapping[str, object]) -> tuple[str, str]:
    """Read the user and the password of a proxy from a table ``[auth.NAME]`` of type ``basic``."""
    read = _AuthTable(name, table, "", None)
    if read.pop_text("type") != "basic":
        raise read.error("type", "must be basic for a proxy")
    user, password = read.pop_text("username"), read.pop_secret("password")
    read.check_no_unknown_keys()
    return user, password


def check_credentials(name: str, table: Mapping[str, object]) -> None:
    """Check one table ``[auth.NAME]`` as it is written; no secret is read."""
    _parse_credentials(_AuthTable(name, table, "", None, reads=False))


def _parse_credentials(read: "_AuthTable") -> Credentials:
    readers: dict[object, Callable[[_AuthTable], tuple[tuple[str, str], ...]]] = {
        "bearer": _bearer,
        "basic": lambda read: _basic(read, read.pop_text("username"), read.pop_secret("password")),
        "header": _header,
        "netrc": _netrc,
    }
    kind = read.pop_text("type")
    if kind not in readers:
        raise read.error("type", "must be bearer, basic, header or netrc")
    read.origin = read.pop_text("origin", default="")
    fields = readers[kind](read)
    read.check_no_unknown_keys()
    return Credentials(origin=read.origin, fields=fields)


class _AuthTable:
    """One table of the configuration, whose keys are removed as they are read."""

    def __init__(
        self,
        name: str,
        table: Mapping[str, object],
        home: str,
        environ: Mapping[str, str] | None,
        *,
        reads: bool = True,
    ) -> None:
        self.name, self.home, self.environ, self.reads = name, home, environ, reads
        self.origin = ""
        self._table = dict(table)

    def error(self, key: str, reason: str) -> ConfigurationError:
        return ConfigurationError(f"`{key}` in [auth.{self.name}] {reason}")

    def pop_text(self, key: str, default: str | None = None) -> str:
        value = self._table.pop(key, default)
        if not isinstance(value, str):
            raise self.error(key, "must be a string" if value is not None else "is missing")
        return value

    def pop_secret(self, key: str) -> str:
        """Return the secret that a key points to, without its final line break."""
        value = self._table.pop(key, None)
        if isinstance(value, str):
            raise self.error(key, f"must not contain the secret itself: write {_SOURCES}")
        if not isinstance(value, Mapping) or len(value) != 1:
            raise self.error(key, f"must be one of {_SOURCES}")
        [(kind, place)] = value.items()
        secret = self._read(key, str(kind), place)
        if not secret:
            where = _PLACES.get(str(kind), "a command whose output is empty").format(place)
            raise self.error(key, f"comes from {where}")
        return secret

    def _read(self, key: str, kind: str, place: object) -> str:
        if kind == "command":
            words = place if isinstance(place, list) else []
            if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
                raise self.error(key, "needs the command and its arguments, as a list of strings")
            return _run_command(words) if self.reads else "x"
        if kind not in _PLACES:
            raise self.error(key, f"must be one of {_SOURCES}")
        if not isinstance(place, str):
            raise self.error(key, f"needs a string as its {kind}")
        return self._read_place(key, kind, place) if self.reads else "x"

    def _read_place(self, key: str, kind: str, place: str) -> str:
        if kind == "env":
            return environment.variable(place, self.environ)
        if kind == "file":
            return _contents(Path(place).expanduser())
        if not _PLAIN_NAME.fullmatch(place):
            raise self.error(key, f"must be one of {_SOURCES}")
        folder = environment.variable("CREDENTIALS_DIRECTORY", self.environ)
        return _contents(Path(folder) / place) if folder else ""

    def check_no_unknown_keys(self) -> None:
        for key in self._table:
            raise self.error(key, "is unknown")


_PLACES: Final = {
    "env": "the environment variable {}, which is not set or is empty",
    "file": "the file {}, which is empty",
    "credential": "the credential {} of the service manager, which is empty or missing",
}
_MISSING: Final = {"env": _PLACES["env"], "file": "the file {}, which does not exist"}


def missing_secrets(name: str, table: Mapping[str, object]) -> list[str]:
    """Return the missing secrets of a valid table ``[auth.NAME]``.

    No secret is read: only the presence of variables and files is checked.
    """
    found = []
    for key, value in table.items():
        if not isinstance(value, Mapping):
            continue
        for kind, place in value.items():  # service managers and commands: only for a request
            is_missing = (kind == "env" and not environment.variable(place)) or (
                kind == "file" and not Path(place).expanduser().exists()
            )
            if is_missing:
                found.append(f"`{key}` in [auth.{name}] comes from {_MISSING[kind].format(place)}")
    return found


def _bearer(table: _AuthTable) -> tuple[tuple[str, str], ...]:
    token = table.pop_secret("token")
    if not _BEARER.fullmatch(token):
        raise table.error("token", "is not a bearer token (RFC 6750 §2.1)")
    return (("Authorization", f"Bearer {token}"),)


def _basic(table: _AuthTable, user: str, password: str) -> tuple[tuple[str, str], ...]:
    if ":" in user:
        raise table.error("username", "must not have a colon (RFC 7617 §2)")
    word = b64encode(f"{user}:{password}".encode()).decode("ascii")
    return (("Authorization", f"Basic {word}"),)


def _header(table: _AuthTable) -> tuple[tuple[str, str], ...]:
    name, value = table.pop_text("name"), table.pop_secret("value")
    if not (value.isascii() and value.isprintable()):
        raise table.error("value", "contains characters that cannot be sent")
    return (parse_header(f"{name}: {value}"),)


def _netrc(table: _AuthTable) -> tuple[tuple[str, str], ...]:
    import netrc  # noqa: PLC0415 - few mirrors have one

    usual = environment.variable("NETRC", table.environ) or "~/.netrc"
    name = table.pop_text("file", default=usual)
    if not table.reads:
        return ()
    path = Path(name).expanduser()
    host = re.sub(r"^\w+://|:[0-9]+$", "", table.origin or table.home)
    try:
        _check_private(path)
        entry = netrc.netrc(path).hosts.get(host)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(
            f"{path} cannot be read: {reason}", hint="fix the path or its permissions"
        ) from None
    except netrc.NetrcParseError as error:
        # Its message may quote the file.
        raise ConfigurationError(
            f"{path} is not a netrc file (line {error.lineno})", hint="fix that line"
        ) from None
    if entry is None:
        raise ConfigurationError(
            f"{path} has no entry for {host}",
            hint="add a line: machine HOST login USER password SECRET",
        )
    return _basic(table, entry[0] or "", entry[2] or "")


def _check_private(path: Path) -> None:
    info = path.stat()
    if not stat.S_ISREG(info.st_mode):
        raise ConfigurationError(
            f"{path} is not an ordinary file",
            hint="name a file, or use { env = … } or { command = […] }",
        )
    if info.st_uid != os.geteuid() or info.st_mode & _SHARED_MODES:
        raise ConfigurationError(
            f"{path} can be read or was written by other users", hint=f"chmod 600 {path}"
        )


def _contents(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return _parse_secret_line(stream.read(MOST_BYTES + 1), str(path))
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}", hint="fix the path or its permissions"
        ) from error


def _run_command(command: Sequence[str]) -> str:
    import subprocess  # noqa: PLC0415 - few mirrors need one

    try:
        done = subprocess.run(  # noqa: S603 - the operator's own command, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        # From None: the exception has the output so far.
        raise ConfigurationError(
            f"the command {command[0]} took longer than {COMMAND_SECONDS:g} s",
            hint="run the command by itself; it must not prompt",
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"the command {command[0]} cannot be run: {error.strerror}",
            hint="give the whole path of the command",
        ) from error
    if done.returncode:
        raise ConfigurationError(
            f"the command {command[0]} ended with status {done.returncode}",
            hint="run the command by itself to see why",
        )
    return _parse_secret_line(done.stdout, command[0])


def _parse_secret_line(data: bytes, where: str) -> str:
    if len(data) > MOST_BYTES:
        raise ConfigurationError(
            f"{where} gives more than {MOST_BYTES} bytes", hint="give the secret alone"
        )
    try:
        text = data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{where} is not UTF-8", hint="give the secret as text") from None
    if "\n" in text or "\r" in text or "\0" in text:
        raise ConfigurationError(
            f"{where} gives more than one line", hint="give the secret alone, in one line"
        )
    return text
