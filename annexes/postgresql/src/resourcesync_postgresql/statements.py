"""SQL statements, with names and values quoted."""

from collections.abc import Iterable
from typing import Final

from resourcesync_postgresql.layout import TableLayout, TableName

PAGE: Final = 10_000
"""Rows of the log in one page."""
ROW: Final = "it"
"""The alias of a published row in a statement."""


def quoted(name: str) -> str:
    """Return a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def named(name: TableName) -> str:
    """Return the quoted name of a table."""
    return ".".join(map(quoted, name))


def listed(names: Iterable[str]) -> str:
    """Return a list of quoted column names."""
    return ", ".join(map(quoted, names))


def text(value: str) -> str:
    """Return a text literal, safe with any setting for backslashes."""
    plain = value.replace("'", "''")
    return f"'{plain}'" if "\\" not in plain else "E'" + plain.replace("\\", "\\\\") + "'"


def own(layout: TableLayout, suffix: str) -> str:
    """Return the name of an object of the log, such as its state."""
    *schema, name = layout.log
    return named((*schema, f"{name}_{suffix}"))


def source(layout: TableLayout) -> str:
    """Return the FROM clause."""
    return f"(\n{layout.query}\n) AS {ROW}"


def described(layout: TableLayout) -> str:
    """Return a statement without rows, for the names and types of the columns."""
    return f"SELECT * FROM {source(layout)} LIMIT 0"  # noqa: S608 - names are quoted


def all_rows(layout: TableLayout, expressions: Iterable[str]) -> str:
    """Return the statement for all resources."""
    there = " AND ".join(f"{ROW}.{quoted(name)} IS NOT NULL" for name in layout.key)
    return (
        f"COPY (SELECT {', '.join(expressions)} FROM {source(layout)} WHERE {there})"  # noqa: S608 - the same
        " TO STDOUT"
    )


def server_state(layout: TableLayout) -> str:
    """Return the statement for the state of the server and the log."""
    return f"""
SELECT pg_current_snapshot()::text, pg_is_in_recovery(),
    (SELECT system_identifier::text FROM pg_control_system()),
    CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())
        ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END,
    to_regclass({text(named(layout.log))}) IS NOT NULL
        AND to_regclass({text(own(layout, "state"))}) IS NOT NULL,
    array(
        SELECT tgrelid::bigint FROM pg_trigger
        WHERE {_logging(layout)} AND tgenabled IN ('O', 'A')
        ORDER BY tgrelid
    )
"""  # noqa: S608 - the same


def weak_triggers(layout: TableLayout) -> str:
    """Return the statement for the triggers of the log that miss the writes of replication.

    They are created with ENABLE ALWAYS. Disabling and enabling them, as pg_dump does, loses that.
    """
    return f"""
SELECT coalesce(string_agg(format(
    'ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;', tgrelid::regclass, tgname
), ' ' ORDER BY tgrelid, tgname), '') FROM pg_trigger
WHERE {_logging(layout)} AND tgenabled = 'O'
"""  # noqa: S608 - the same


def _logging(layout: TableLayout) -> str:
    """Return the condition for the triggers of the log."""
    names = ", ".join(text(name) for name in triggers_of(layout).values())
    return f"tgrelid = to_regclass({text(named(layout.table))}) AND tgname IN ({names})"


def triggers_of(layout: TableLayout) -> dict[str, str]:
    """Return the names of the triggers by event."""
    log = layout.log[-1]
    return {name: f"{log}_{name}" for name in ("inserted", "updated", "deleted", "truncated")}


def state(layout: TableLayout, row: tuple[int, int]) -> str:
    """Return the statement for the identity of the log, and whether it has a row."""
    transaction, number = row
    return f"""
SELECT incarnation::text, pruned_to::text, EXISTS (
    SELECT FROM {named(layout.log)}
    WHERE log_number = {number} AND log_transaction = {xid(transaction)}
) FROM {own(layout, "state")}
"""  # noqa: S608 - the same


def newest(layout: TableLayout) -> str:
    """Return the statement for the newest row of the log."""
    return f"""
SELECT log_transaction::text, log_number FROM {named(layout.log)}
ORDER BY log_number DESC LIMIT 1
"""  # noqa: S608 - the same


def xid(transaction: int) -> str:
    """Return the SQL literal of a transaction id."""
    return f"'{transaction}'::xid8"


def unread(old: str, new: str, row: tuple[int, int]) -> str:
    """Return the condition for rows of the log that only the newer of two snapshots shows."""
    transaction, number = row
    return (
        f"(log_transaction, log_number) > ({xid(transaction)}, {number})"
        f" AND log_transaction < {xid(int(new.split(':')[1]))}"
        f" AND NOT pg_visible_in_snapshot(log_transaction, '{old}'::pg_snapshot)"
        f" AND pg_visible_in_snapshot(log_transaction, '{new}'::pg_snapshot)"
    )


def page_end(layout: TableLayout, unread_rows: str) -> str:
    """Return the statement for the last row of the next page, and the number of its rows."""
    return f"""
SELECT page.log_transaction::text, page.log_number, count(*) OVER () FROM (
    SELECT log_transaction, log_number FROM {named(layout.log)} WHERE {unread_rows}
    ORDER BY log_transaction, log_number LIMIT {PAGE}
) AS page ORDER BY page.log_transaction DESC, page.log_number DESC LIMIT 1
"""  # noqa: S608 - the same


def page(
    layout: TableLayout, expressions: tuple[str, ...], unread_rows: str, end: tuple[int, int]
) -> str:
    """Return the statement for the current rows of a page, oldest change first.

    Without OFFSET the planner would compute all of a query that groups, and then join. The columns:
    time of the key's last change, the key, whether the row exists, the expressions.
    """
    transaction, number = end
    keys = [f"{quoted(name)}::text" for name in layout.key]
    same = " AND ".join(f"{ROW}.{name} = told.{name}" for name in map(quoted, layout.key))
    same += "".join(f" AND {ROW}.{key} = told.{key}" for key in keys)  # equal may be another URI
    found = ", ".join(f"{name} AS found_{at}" for at, name in enumerate(expressions))
    columns = ", ".join(f"found.found_{at}" for at in range(len(expressions)))
    return f"""
COPY (
    SELECT told.log_at, {", ".join(f"left(told.{key}, 2049)" for key in keys)}, found.is_there,
        {columns}
    FROM (
        SELECT DISTINCT ON ({", ".join(keys)}) {listed(layout.key)}, log_at
        FROM {named(layout.log)} WHERE {unread_rows}
            AND (log_transaction, log_number) <= ({xid(transaction)}, {number})
        ORDER BY {", ".join(keys)}, log_at DESC
    ) AS told
    LEFT JOIN LATERAL (
        SELECT true AS is_there, {found} FROM {source(layout)} WHERE {same} OFFSET 0
    ) AS found ON true
    ORDER BY told.log_at
) TO STDOUT
"""  # noqa: S608 - the same
