"""A PostgreSQL connection that opens on demand, and its errors as errors of this package."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import psycopg
import psycopg.conninfo

from resourcesync import errors
from resourcesync.ports import Clock
from resourcesync_postgresql.statements import quoted

if TYPE_CHECKING:
    from resourcesync_postgresql.rows import Row

_AT_ONCE: Final = 2_000
_LOCKED: Final = 30
_BREATH: Final = 1.0
_SECRETS: Final = ("password", "sslpassword")
_USUAL: Final = {
    "connect_timeout": 15,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "fallback_application_name": "resourcesync",
}
_RETAINED: Final = ("kept", "what was known before")
_REFUSED: Final = ("authentication failed", "no password supplied", "pg_hba.conf", "permission")
_MAY_READ: Final = (
    "let it SELECT what is read, and the log, by the SQL for a reader:"
    " resourcesync config postgres --with reader=ROLE (prints it)"
)
_MAY_ENTER: Final = (
    "check the server's pg_hba.conf, the user and the password (PGPASSWORD, ~/.pgpass):"
    " --with password=env:NAME"
)
_ABSENT: Final = "does not exist"
_TRANSIENT: Final = ("08", "40", "53", "55", "57", "58")
_WRONG: Final = ("22", "25", "26", "34", "3D", "3F", "42", "0A")


class PostgresSession:
    """A connection that is reopened after a failure."""

    def __init__(self, address: str, password: str, timeout: int, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._timeout = timeout
        self._parameters = _parameters(address)
        if password:
            self._parameters["password"] = password
        self._connection: psycopg.Connection[Any] | None = None
        self._channel = ""

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection, self._channel = self._connection, None, ""
        if connection is not None:
            connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read within a read-only transaction on a snapshot of the database."""
        with self._guarded():
            connection = self._connected()
            connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(_settings(self._timeout).encode())
            yield
            connection.execute(b"COMMIT")

    def fetch_one(self, statement: str) -> tuple[Any, ...] | None:
        """Return the first row of a result, or ``None``."""
        return self._connected().execute(statement.encode()).fetchone()

    def columns(self, statement: str) -> list[str]:
        """Return the names of the columns of a result."""
        found = self._connected().execute(statement.encode()).description
        return [column.name for column in found or ()]

    def copy_rows(self, statement: str) -> Iterator[Sequence["Row"]]:
        """Yield the rows of ``COPY … TO STDOUT`` in batches, as texts."""
        with self._connected().cursor() as cursor, cursor.copy(statement.encode()) as copy:
            rows = copy.rows()
            while some := list(islice(rows, _AT_ONCE)):
                yield some

    def listen(self, channel: str) -> None:
        """Listen for notifications on a channel; on a standby, which cannot, polling remains."""
        with self._guarded():
            connection = self._connected()
            if self._channel == channel:
                return
            try:
                connection.execute(f"LISTEN {quoted(channel)}".encode())
            except (psycopg.errors.ReadOnlySqlTransaction, psycopg.NotSupportedError):
                return
            self._channel = channel

    @property
    def is_listening(self) -> bool:
        """True if notifications arrive."""
        return bool(self._channel)

    def wait(self, seconds: float) -> bool:
        """Wait for a notification, at most so many seconds; return whether one arrived.

        It may return early, so that the caller can check whether to stop.
        """
        some = min(seconds, _BREATH)
        if not self._channel:
            self._clock.sleep(some)
            return False
        with self._guarded():
            return any(True for _ in self._connected().notifies(timeout=some, stop_after=1))

    def _connected(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            self._connection = psycopg.connect(
                **self._parameters, autocommit=True, prepare_threshold=None
            )
        return self._connection

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Translate errors of psycopg; a failed connection is not reused."""
        try:
            yield
        except psycopg.Error as error:
            self.close()
            raise translate_error(error, self._address) from error
        except UnicodeDecodeError as error:
            self.close()
            raise errors.SourceError(
                f"{self._address}: a text in the database is no UTF-8",
                evidence=(_RETAINED,),
                hint="the database has the encoding SQL_ASCII; select other columns, or convert",
            ) from error
        except BaseException:
            self.close()
            raise


def _settings(timeout: int) -> str:
    """Return a statement with settings for one transaction, since a pooler may be between."""
    chosen = {
        "statement_timeout": f"{timeout}s",
        "lock_timeout": f"{min(timeout, _LOCKED)}s",
        "TimeZone": "UTC",
        "DateStyle": "ISO",
    }
    calls = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in chosen.items())
    return f"SELECT {calls}"


def _parameters(address: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        raise errors.ConfigurationError(
            "this is not the address of a PostgreSQL database",  # the text may contain a secret
            hint="write postgresql://USER@HOST/DATABASE",
        ) from None
    if any(found.get(name) for name in _SECRETS):
        raise errors.ConfigurationError(
            "an address must not contain a secret",
            hint="give it as an option, or by PGPASSWORD, ~/.pgpass or a service file: "
            "--with password=env:NAME",
        )
    return {**_USUAL, **found, "client_encoding": "UTF8"}


def translate_error(error: "psycopg.Error", address: str) -> errors.ResourceSyncError:
    """Translate an error of the driver."""
    said = error.diag.message_primary or str(error).strip() or type(error).__name__
    message = f"{address}: {said.splitlines()[0]:.300}"
    state = error.sqlstate or ""
    evidence = (*((("SQLSTATE", state),) if state else ()), _RETAINED)
    if state.startswith("28") or state == "42501" or (not state and _refuses(said)):
        hint = _MAY_READ if state == "42501" else _MAY_ENTER
        return errors.SourceRefusedError(message, uri=address, evidence=evidence, hint=hint)
    if state.startswith(_WRONG) or (not state and said.endswith(_ABSENT)):
        return errors.ConfigurationError(
            message, evidence=evidence, hint=error.diag.message_hint or ""
        )
    if not state or state.startswith(_TRANSIENT):
        return errors.SourceUnavailableError(message, uri=address, evidence=evidence)
    return errors.SourceError(message, uri=address, evidence=evidence)


def _refuses(said: str) -> bool:
    """True if a server refused the login; libpq has no code for that, only a message."""
    return any(word in said for word in _REFUSED)
