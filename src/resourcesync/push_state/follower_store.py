"""A subscriber's state in a SQLite file.

One table, ``follower``: a row for each channel that a mirror follows.
"""

from pathlib import Path
from typing import Any, Final

from resourcesync.push_state.database import Database
from resourcesync.push_state.rows import ChannelSubscription, FollowerState
from resourcesync.sqlite_file import Durability, SqliteFormat

_APPLICATION_ID: Final = 0x52535331  # "RSS1"
SCHEMA: Final = """
CREATE TABLE follower (
    name TEXT NOT NULL, topic TEXT NOT NULL, hub TEXT NOT NULL, state TEXT NOT NULL,
    token TEXT NOT NULL, secret BLOB NOT NULL, next_token TEXT NOT NULL,
    next_secret BLOB NOT NULL, lease_until_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL, due_us INTEGER NOT NULL, base TEXT NOT NULL,
    PRIMARY KEY (name, topic)
) WITHOUT ROWID;
CREATE INDEX follower_token ON follower (token);
CREATE INDEX follower_next ON follower (next_token);
"""
"""All tables."""
_FORMAT: Final = SqliteFormat(
    noun="the state of a subscriber",
    application_id=_APPLICATION_ID,
    schema=SCHEMA,
    durability=Durability.SHARED,
    folder_mode=0o777,
    any_thread=True,
    retained="what it contained",
    repair="move {path} away: subscribers renew when their leases expire",
)
_COLUMNS: Final = (
    "name, topic, hub, state, token, secret, next_token, next_secret,"
    " lease_until_us, attempts, due_us, base"
)


class FileFollowers:
    """The state of a subscriber in one file; for several threads."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _FORMAT)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def subscriptions(self) -> list[ChannelSubscription]:
        """Return all subscriptions."""
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM follower").fetchall()  # noqa: S608
        return [_follower(row) for row in rows]

    def find_token(self, token: str) -> ChannelSubscription | None:
        """Return the subscription with a token: in use, or requested."""
        if not token:
            return None
        text = (
            f"SELECT {_COLUMNS} FROM follower"  # noqa: S608 - made of our own text alone
            " WHERE token = :it OR next_token = :it"
        )
        with self._database.reading() as connection:
            row = connection.execute(text, {"it": token}).fetchone()
        return None if row is None else _follower(row)

    def save(
        self, follower: ChannelSubscription, before: ChannelSubscription | None = None
    ) -> bool:
        """Store a subscription in place of the one with its name and topic."""
        with self._database.writing() as connection:
            if before is not None:
                row = connection.execute(
                    f"SELECT {_COLUMNS} FROM follower"  # noqa: S608 - made of our own text alone
                    " WHERE name = ? AND topic = ?",
                    (before.name, before.topic),
                ).fetchone()
                if row is None or _follower(row) != before:
                    return False
            marks = ", ".join("?" * len(_row(follower)))
            connection.execute(
                f"INSERT OR REPLACE INTO follower ({_COLUMNS}) VALUES ({marks})",  # noqa: S608
                _row(follower),
            )
        return True

    def remove(self, follower: ChannelSubscription) -> None:
        """Delete a subscription."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM follower WHERE name = ? AND topic = ?", (follower.name, follower.topic)
            )


def _row(subscription: ChannelSubscription) -> tuple[object, ...]:
    return (
        subscription.name,
        subscription.topic,
        subscription.hub,
        subscription.state.value,
        subscription.token,
        subscription.secret,
        subscription.next_token,
        subscription.next_secret,
        subscription.lease_until,
        subscription.attempts,
        subscription.due,
        subscription.base,
    )


def _follower(row: tuple[Any, ...]) -> ChannelSubscription:
    name, topic, hub, state, *rest = row
    token, secret, next_token, next_secret, lease_until, attempts, due, base = rest
    return ChannelSubscription(
        name=name,
        topic=topic,
        hub=hub,
        state=FollowerState(state),
        token=token,
        secret=secret,
        next_token=next_token,
        next_secret=next_secret,
        lease_until=lease_until,
        attempts=attempts,
        due=due,
        base=base,
    )
