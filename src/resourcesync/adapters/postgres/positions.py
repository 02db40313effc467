"""Where the reading of a log stands, as text that is kept between runs."""

import re
from dataclasses import dataclass
from typing import Any, Final, Self

import msgspec

from resourcesync.errors import DiscontinuityError

_SNAPSHOT: Final = re.compile(r"([0-9]{1,20}):([0-9]{1,20}):(?:[0-9]{1,20}(?:,[0-9]{1,20})*)?")
_MAX: Final = 1 << 64

LogRow = tuple[int, int]
"""The transaction and the number of a row of the log."""
NO_ROW: Final[LogRow] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPosition:
    """What has been read of a log: all that ``after`` shows, and some of what ``to`` shows.

    Attributes:
        log: Which log of which server it is; another one has other positions.
        after: A snapshot; all that it shows is read.
        to: The snapshot whose rows are being read; empty between two of them.
        row: The last row that was read: with ``to``, the rows up to it are read. It must still be
            there, or be known as pruned.
    """

    log: str
    after: str
    to: str = ""
    row: LogRow = NO_ROW

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position that a text says.

        Raises:
            DiscontinuityError: It says none.
        """
        try:
            fields: Any = msgspec.json.decode(text)
            found = cls(
                log=str(fields["log"]),
                after=_snapshot(fields["after"]),
                to=_snapshot(fields["to"]) if fields.get("to") else "",
                row=(_number(fields["row"][0]), _number(fields["row"][1])),
            )
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise DiscontinuityError(
                "what is kept of the changes of PostgreSQL cannot be read",
                evidence=(("kept", text[:200]),),
            ) from error
        return found

    @property
    def text(self) -> str:
        """The position as it is kept."""
        fields: dict[str, object] = {"log": self.log, "after": self.after, "row": self.row}
        if self.to:
            fields["to"] = self.to
        return msgspec.json.encode(fields).decode()

    @property
    def begin(self) -> LogRow:
        """The row after which the unread ones are looked for."""
        return self.row if self.to else (snapshot_xmin(self.after), 0)


def snapshot_xmin(snapshot: str) -> int:
    """Return the first transaction that a snapshot may not show, of those that have begun."""
    return int(snapshot.split(":", maxsplit=1)[0])


def snapshot_xmax(snapshot: str) -> int:
    """Return the first transaction that had not begun."""
    return int(snapshot.split(":")[1])


def _snapshot(text: str) -> str:
    match = _SNAPSHOT.fullmatch(text)
    if match is None or not int(match[1]) <= int(match[2]) < _MAX:
        raise ValueError("no snapshot")
    return text


def _number(value: int) -> int:
    if type(value) is not int or not 0 <= value < _MAX:
        raise ValueError("no number")
    return value
