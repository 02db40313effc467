"""The states of a hub and of a subscriber, each in one SQLite file for several threads.

Tables of a hub: ``topic`` (each topic served, and the number of its newest payload), ``payload``
(what was sent), ``subscription`` (the subscribers, and how far each is), ``intent`` (subscriptions
not yet confirmed), ``moment`` (the latest time). A payload is due to every subscription whose
``delivered`` is less than its number: accepting one is one row, however many subscribers there are.
That of a subscriber is ``follower``: a row for each channel that a mirror follows.
"""

import json
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from msgspec.structs import asdict, astuple

from resourcesync import sqlite_file
from resourcesync.push_state.rows import (
    ChannelSubscription,
    DeliveryOutcome,
    Payload,
    Subscription,
    SubscriptionIntent,
    TopicSubscriber,
)

_T = TypeVar("_T")
_format: Final = partial(
    sqlite_file.SqliteFormat,
    durability=sqlite_file.Durability.SHARED,
    folder_mode=0o777,
    any_thread=True,
    retained="what it contained",
    repair="move {path} away: subscribers renew when their leases expire",
)


class _SharedFile(sqlite_file.SqliteFile):
    """Only the owner may read it: it contains secrets."""

    FORMAT: ClassVar[sqlite_file.SqliteFormat]

    def __init__(self, path: Path) -> None:
        super().__init__(path, self.FORMAT)
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            super().close()

    @contextmanager
    def writing(self, *, commits: bool = True) -> Iterator[sqlite_file.Connection]:
        """Lend the connection in a transaction that is durable when the block ends."""
        with self._lock, super().writing(commits=commits) as connection:
            yield connection

    def rows(self, kind: type[_T], query: str, values: sqlite_file.Parameters = ()) -> list[_T]:
        with self._lock:
            return super().rows(kind, query, values)


_HUB: Final = _format(
    noun="the state of a hub",
    application_id=0x52534831,  # "RSH1"
    schema=sqlite_file.read_schema(__file__, "hub.sql"),
)
_MOST_PAYLOADS: Final = 100
_REMEMBERED: Final = 1_000
_SUBSCRIPTION: Final = "number, topic, callback, origin, secret, expires_us, delivered, attempts"
_INTENT: Final = (
    "number, mode, topic, callback, secret, lease, asked_us, attempts,"
    " ifnull((SELECT latest FROM topic WHERE name = topic), 0)"
)
_FIRST: Final = "number IN (SELECT min(number) FROM intent GROUP BY topic, callback)"
_DUE: Final = f"""
    SELECT {_SUBSCRIPTION} FROM subscription JOIN topic ON topic.name = topic
    WHERE delivered < latest AND due_us <= :now AND expires_us > :now
        AND (attempts > 0) = :late
        AND number NOT IN (SELECT value FROM json_each(:busy))
        AND origin NOT IN (SELECT value FROM json_each(:full))
    ORDER BY due_us, number LIMIT :most
"""  # noqa: S608 - made of our own text alone
_NEXT_DUE: Final = f"""
    SELECT min(due) FROM (
        SELECT min(due_us) AS due FROM intent WHERE {_FIRST} AND due_us > :now UNION ALL
        SELECT min(due_us) FROM subscription JOIN topic ON topic.name = topic
        WHERE delivered < latest AND expires_us > :now AND due_us > :now
    )
"""  # noqa: S608 - made of our own text alone
_LIST_SUBSCRIBERS: Final = """
    SELECT topic, origin, expires_us, delivered < ifnull(latest, 0), attempts
    FROM subscription LEFT JOIN topic ON topic.name = topic
    ORDER BY attempts DESC, origin, topic LIMIT ?
"""
_NEXT: Final = """
    SELECT number, media_type, body FROM payload
    WHERE topic = ? AND number > ? AND body <> x'' ORDER BY number LIMIT 1
"""


class FileHub(_SharedFile):
    """The state of a hub in one file."""

    FORMAT = _HUB

    def latest(self) -> int:
        """Return the latest moment that was stored, 0 at first."""
        return self._number("SELECT ifnull(max(latest_us), 0) FROM moment")

    def add_intent(self, intent: SubscriptionIntent) -> None:
        """Store an intent; those of one receiver for one topic are confirmed in their order."""
        with self.writing() as connection:
            connection.execute(
                "INSERT INTO intent (mode, topic, callback, origin, secret, lease, asked_us)"
                " VALUES (:mode, :topic, :callback, :origin, :secret, :lease, :requested)",
                {**asdict(intent), "origin": intent.origin},
            )

    def count_intents(self) -> int:
        """Return the number of unconfirmed intents."""
        return self._number("SELECT count(*) FROM intent")

    def due_intents(self, now: int, most: int, busy: Collection[int]) -> list[SubscriptionIntent]:
        """Return the first due intent of each receiver, without the busy ones."""
        text = (
            f"SELECT {_INTENT} FROM intent WHERE due_us <= ? AND {_FIRST}"  # noqa: S608 - our own
            " AND number NOT IN (SELECT value FROM json_each(?)) ORDER BY number LIMIT ?"
        )
        return self.rows(SubscriptionIntent, text, (now, json.dumps(list(busy)), most))

    def confirm(self, intent: SubscriptionIntent, expires: int) -> None:
        """Create or end the subscription of an intent."""
        with self.writing() as connection:
            connection.execute("DELETE FROM intent WHERE number = ?", (intent.number,))
            if intent.mode == "unsubscribe":
                connection.execute(
                    "DELETE FROM subscription WHERE topic = ? AND callback = ?",
                    (intent.topic, intent.callback),
                )
                return
            connection.execute(
                "INSERT INTO subscription (topic, callback, origin, secret, expires_us, delivered)"
                " VALUES (:topic, :callback, :origin, :secret, :expires, :since)"
                " ON CONFLICT (topic, callback) DO UPDATE SET"
                "  secret = :secret, expires_us = :expires, attempts = 0, due_us = 0",
                {**asdict(intent), "origin": intent.origin, "expires": expires},
            )

    def postpone(self, intent: SubscriptionIntent, due: int) -> None:
        """Schedule another request to the receiver."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE intent SET attempts = attempts + 1, due_us = ? WHERE number = ?",
                (due, intent.number),
            )

    def forget(self, intent: SubscriptionIntent) -> None:
        """Delete an intent."""
        with self.writing() as connection:
            connection.execute("DELETE FROM intent WHERE number = ?", (intent.number,))

    def count_subscriptions(self) -> int:
        """Return the number of subscriptions."""
        return self._number("SELECT count(*) FROM subscription")

    def list_subscribers(self, most: int) -> list[TopicSubscriber]:
        """Return the subscribers, at most ``most``; first those whose deliveries fail."""
        rows = self.rows(tuple[str, str, int, int, int], _LIST_SUBSCRIBERS, (most,))
        return [
            TopicSubscriber(topic, origin, end, bool(owed), tries)
            for topic, origin, end, owed, tries in rows
        ]

    def due_deliveries(
        self, now: int, most: int, *, busy: Collection[int], full: Collection[str], late: bool
    ) -> list[Subscription]:
        """Return subscriptions that lack a payload and are due."""
        values = {
            "now": now,
            "most": most,
            "busy": json.dumps(list(busy)),
            "full": json.dumps(list(full)),
            "late": late,
        }
        return self.rows(Subscription, _DUE, values)

    def record_outcomes(self, outcomes: Iterable[DeliveryOutcome]) -> None:
        """Store the outcomes of deliveries, all or none."""
        with self.writing() as connection:
            for outcome in outcomes:
                if outcome.is_over:
                    connection.execute(
                        "DELETE FROM subscription WHERE number = ?", (outcome.number,)
                    )
                else:
                    connection.execute(
                        "UPDATE subscription SET delivered = max(delivered, ?), attempts = ?,"
                        " due_us = ? WHERE number = ?",
                        (outcome.delivered, outcome.attempts, outcome.due, outcome.number),
                    )

    def accept(self, topic: str, payload: Payload, digest: bytes, now: int) -> bool:
        """Store a payload durably; ``False`` if it is a recent duplicate."""
        with self.writing() as connection:
            known = connection.execute(
                "SELECT 1 FROM payload WHERE topic = ? AND digest = ?", (topic, digest)
            ).fetchone()
            if known is not None:
                return False
            number = connection.execute(
                "INSERT INTO payload (topic, media_type, body, digest, accepted_us)"
                " VALUES (?, ?, ?, ?, ?)",
                (topic, payload.media_type, payload.body, digest, now),
            ).lastrowid
            connection.execute(
                "INSERT INTO topic VALUES (:topic, :number)"
                " ON CONFLICT (name) DO UPDATE SET latest = :number",
                {"topic": topic, "number": number},
            )
            _prune_payloads(connection, topic)
        return True

    def next_payload(self, topic: str, after: int) -> Payload:
        """Return the first stored payload of a topic after a number."""
        return self.rows(Payload, _NEXT, (topic, after))[0]

    def prune(self, now: int, oldest_intent: int) -> None:
        """Delete expired leases, old intents and payloads that all have; store the time."""
        with self.writing() as connection:
            connection.execute("DELETE FROM subscription WHERE expires_us <= ?", (now,))
            connection.execute("DELETE FROM intent WHERE asked_us < ?", (oldest_intent,))
            connection.execute(
                "INSERT INTO moment VALUES (1, :now)"
                " ON CONFLICT (one) DO UPDATE SET latest_us = max(latest_us, :now)",
                {"now": now},
            )
            connection.execute(  # the newest stays: it is the topic's content
                "UPDATE payload SET body = x'' WHERE body <> x'' AND number <="
                " (SELECT min(ifnull((SELECT min(delivered) FROM subscription AS it"
                "   WHERE it.topic = topic.name), latest), latest - 1)"
                "  FROM topic WHERE topic.name = payload.topic)"
            )

    def next_due(self, now: int) -> int | None:
        """Return the next time, later than ``now``, at which work may be due."""
        return self.rows(tuple[int | None], _NEXT_DUE, {"now": now})[0][0]

    def _number(self, text: str) -> int:
        return self.rows(tuple[int], text)[0][0]


def _prune_payloads(connection: sqlite_file.Connection, topic: str) -> None:
    values = {"topic": topic, "bodies": _MOST_PAYLOADS, "digests": _REMEMBERED}
    connection.execute(
        "UPDATE payload SET body = x'' WHERE topic = :topic AND body <> x'' AND number <="
        " (SELECT number FROM payload WHERE topic = :topic"
        "  ORDER BY number DESC LIMIT 1 OFFSET :bodies)",
        values,
    )
    connection.execute(
        "DELETE FROM payload WHERE topic = :topic AND number <="
        " (SELECT number FROM payload WHERE topic = :topic"
        "  ORDER BY number DESC LIMIT 1 OFFSET :digests)",
        values,
    )


_FOLLOWERS: Final = _format(
    noun="the state of a subscriber",
    application_id=0x52535331,  # "RSS1"
    schema=sqlite_file.read_schema(__file__, "followers.sql"),
)


class FileFollowers(_SharedFile):
    """The state of a subscriber in one file."""

    FORMAT = _FOLLOWERS

    def subscriptions(self) -> list[ChannelSubscription]:
        """Return all subscriptions."""
        return self.rows(ChannelSubscription, "SELECT * FROM follower")

    def find_token(self, token: str) -> ChannelSubscription | None:
        """Return the subscription with a token: in use, or requested."""
        query = "SELECT * FROM follower WHERE token = :it OR next_token = :it"
        found = self.rows(ChannelSubscription, query, {"it": token}) if token else []
        return found[0] if found else None

    def save(
        self, follower: ChannelSubscription, before: ChannelSubscription | None = None
    ) -> bool:
        """Store a subscription in place of the one with its name and topic."""
        with self.writing() as connection:
            if before is not None:
                query = "SELECT * FROM follower WHERE name = ? AND topic = ?"
                row = connection.execute(query, (before.name, before.topic)).fetchone()
                if row != astuple(before):
                    return False
            row = astuple(follower)
            connection.execute(
                "INSERT OR REPLACE INTO follower VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", row
            )
        return True

    def remove(self, follower: ChannelSubscription) -> None:
        """Delete a subscription."""
        with self.writing() as connection:
            key = follower.name, follower.topic
            connection.execute("DELETE FROM follower WHERE name = ? AND topic = ?", key)
