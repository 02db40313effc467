"""The system clock, and systemd's protocols: ``sd_notify`` and the journal."""

import errno
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final


class SystemClock:
    """The ``Clock`` of a real run."""

    def now(self) -> datetime:
        """Return the present time, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the Clock

    monotonic = staticmethod(time.monotonic)
    """Returns monotonic seconds."""

    def sleep(self, seconds: float) -> None:
        """Wait; do not wait for a negative number."""
        time.sleep(max(0.0, seconds))  # noqa: TID251 - this is the Clock


_ABSTRACT: Final = "@"


class Supervisor:
    """A connection to a service manager, such as systemd; does nothing if there is none.

    Args:
        address: The socket of ``NOTIFY_SOCKET``; empty for none.
    """

    def __init__(self, address: str) -> None:
        self._address = "\0" + address[1:] if address.startswith(_ABSTRACT) else address

    def notify(self, **facts: str | int) -> None:
        """Send facts such as ``READY=1``; errors of the socket are ignored.

        Args:
            facts: Names and values; values have no line breaks.
        """
        if not self._address:
            return
        import socket  # noqa: PLC0415 - for a service only

        text = "\n".join(f"{name}={value}" for name, value in facts.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.sendto(text.encode(), self._address)
        except OSError:
            return


_PLAIN_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_LENGTH_BYTES: Final = 8


class JournalSocket:
    """A sender of entries to systemd's journal, by its native protocol: each field is stored alone.

    Args:
        address: The journal's socket.
    """

    def __init__(self, address: str) -> None:
        import socket  # noqa: PLC0415 - only for a log in the journal

        self._address = address
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self._sender.connect(address)
        except OSError:
            self._sender.close()
            raise
        self._sender.settimeout(0.0)

    def send(self, entry: Mapping[str, str]) -> None:
        """Send an entry; nobody waits for a full socket, and the first of too many bytes are sent.

        Args:
            entry: Fields by their names; one with a name that the journal does not have is left
                out.

        Raises:
            OSError: It is not sent.
        """
        fields = {name: text for name, text in entry.items() if _PLAIN_NAME.fullmatch(name)}
        try:
            self._sender.send(b"".join(_journal_fields(fields)))
        except OSError as error:
            if error.errno not in {errno.ECONNREFUSED, errno.ENOTCONN, errno.EMSGSIZE}:
                raise
            if error.errno == errno.EMSGSIZE:
                fields = {name: text[:_MOST_CHARACTERS] for name, text in fields.items()}
            else:  # the journal was restarted
                self._sender.connect(self._address)
            self._sender.send(b"".join(_journal_fields(fields)))

    def close(self) -> None:
        """Close the socket."""
        self._sender.close()


_MOST_CHARACTERS: Final = 1_000


def _journal_fields(entry: Mapping[str, str]) -> Iterator[bytes]:
    for name, text in entry.items():
        value = text.encode("utf-8", "backslashreplace")
        if b"\n" in value:
            size = len(value).to_bytes(_LENGTH_BYTES, "little")
            yield b"%s\n%s%s\n" % (name.encode(), size, value)
        else:
            yield b"%s=%s\n" % (name.encode(), value)
