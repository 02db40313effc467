"""The SQL by which a table logs its changes, for its owner to run."""

from collections.abc import Iterator, Mapping
from typing import Final

from resourcesync.errors import ConfigurationError
from resourcesync_postgresql import statements
from resourcesync_postgresql.layout import TableLayout, TableName, parse_layout
from resourcesync_postgresql.statements import listed, named, own, quoted, text

_ANY_BASE: Final = "https://example.org/"
_OLD: Final = "resourcesync_old"
_NEW: Final = "resourcesync_new"
_SAFE: Final = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_MARK: Final = "$resourcesync$"
_EVENTS: Final = {
    "inserted": "INSERT", "updated": "UPDATE", "deleted": "DELETE", "truncated": "TRUNCATE"
}  # fmt: skip
_CATALOGUE: Final = """\
CREATE TABLE {table} (
    uri text PRIMARY KEY CHECK (uri ~ '^https?://[!-~]+$' AND length(uri) <= 2048),
    lastmod timestamptz,
    length bigint CHECK (length >= 0),
    hash text NOT NULL DEFAULT '',          -- such as 'md5:... sha-256:...'
    media_type text NOT NULL DEFAULT '',
    links jsonb NOT NULL DEFAULT '[]'       -- such as [{{"rel": "describedby", "href": "https://..."}}]
);
"""


def setup_text(values: Mapping[str, str]) -> str:
    """Return the SQL for the table that options name; no connection is made."""
    return migration(parse_layout(values, _ANY_BASE))


def migration(layout: TableLayout) -> str:
    """Return the SQL that creates the log, and the triggers that write it."""
    if not layout.table:
        raise ConfigurationError(
            "no table to log is given",
            hint="give it by the option table, beside the query: --with table=SCHEMA.NAME",
        )
    return "\n".join(_parts(layout))


def _parts(layout: TableLayout) -> Iterator[str]:
    tables = ", ".join(named(item) for item in layout.watched)
    yield f"-- By this, resourcesync follows the changes of {tables}. PostgreSQL 13 or later."
    yield "-- Its owner runs it once: psql -v ON_ERROR_STOP=1 -f THIS DATABASE"
    yield "BEGIN;"
    for schema in dict.fromkeys(item[0] for item in (layout.log, layout.table) if len(item) > 1):
        if schema == "resourcesync":
            yield f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)};"
    if layout.is_catalogue:
        yield "\n-- The resources: one row for each URI that is published.\n"
        yield _CATALOGUE.format(table=named(layout.table))
    yield _log(layout)
    yield _triggers(layout, layout.table, layout.key, layout.compared)
    for table, key in layout.joins:
        yield _triggers(layout, table, key, ())
    yield _pruning(layout)
    if layout.reader:
        yield _grants(layout)
    yield "COMMIT;"
    yield _undoing(layout)


def _log(layout: TableLayout) -> str:
    log = named(layout.log)
    compared = f"array[{', '.join(map(text, layout.compared))}]::text[]"
    return f"""
-- The log: a row for each key that changed, and in which transaction.
CREATE TABLE {log} AS SELECT {listed(layout.key)} FROM {named(layout.table)} WITH NO DATA;
ALTER TABLE {log}
    ADD log_number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ADD log_transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    ADD log_at timestamptz NOT NULL DEFAULT clock_timestamp();
CREATE INDEX ON {log} (log_transaction, log_number);

-- Which log it is, up to where it was pruned. With another incarnation all is read again.
CREATE TABLE {own(layout, "state")} (
    one integer PRIMARY KEY CHECK (one = 1),
    incarnation uuid NOT NULL DEFAULT gen_random_uuid(),
    pruned_to xid8 NOT NULL DEFAULT '0',
    compared text[] NOT NULL  -- the columns whose update is noticed; none for all
);
INSERT INTO {own(layout, "state")} (one, compared) VALUES (1, {compared});
"""  # noqa: S608 - names are quoted


def _triggers(
    layout: TableLayout, table: TableName, key: tuple[str, ...], compared: tuple[str, ...]
) -> str:
    """Return the functions and triggers of one table."""
    changed = _changed(key, compared)
    new, old = f"NEW TABLE AS {_NEW}", f"OLD TABLE AS {_OLD}"
    emptied = f"    UPDATE {own(layout, 'state')} SET incarnation = gen_random_uuid();\n"  # noqa: S608 - the same
    parts = [
        f"-- What is written to {named(table)} is logged, once for each statement.",
        _trigger(layout, table, "inserted", new, _logged(layout, key, _NEW)),
        _trigger(layout, table, "updated", f"{old} {new}", _logged(layout, key, changed)),
        _trigger(layout, table, "deleted", old, _logged(layout, key, _OLD)),
        _trigger(layout, table, "truncated", "", emptied),
    ]
    return "\n".join(parts) + "\n"


def _changed(key: tuple[str, ...], compared: tuple[str, ...]) -> str:
    """Return the rows of an update that differ, before and after it.

    They are compared as text: some types have no equality operator, some compare different texts
    as equal, and an error in a trigger would fail the statement of another program.
    """

    def select_rows(rows: str) -> str:
        row = f"ROW({listed(compared)})" if compared else rows
        return f"SELECT {listed(key)}, {row}::text AS said FROM {rows}"  # noqa: S608 - the same

    return f"""(
            ({select_rows(_OLD)}
                EXCEPT {select_rows(_NEW)})
            UNION ALL
            ({select_rows(_NEW)}
                EXCEPT {select_rows(_OLD)})
        ) AS changed"""


def _logged(layout: TableLayout, key: tuple[str, ...], rows: str) -> str:
    texts = ", ".join(f'{quoted(name)}::text COLLATE "C"' for name in key)
    there = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in key)
    return f"""\
    INSERT INTO {named(layout.log)} ({listed(layout.key)})
        SELECT DISTINCT ON ({texts}) {listed(key)}
        FROM {rows}
        WHERE {there};
"""  # noqa: S608 - the same


def _trigger(layout: TableLayout, table: TableName, event: str, rows: str, body: str) -> str:
    """Return a function and its trigger."""
    name, function = statements.triggers_of(layout)[event], _function(layout, table, event)
    wake = ""
    if layout.notifies:
        channel = text(layout.log[-1])
        wake = f"    IF FOUND THEN\n        PERFORM pg_notify({channel}, '');\n    END IF;\n"
    referencing = f"\n    REFERENCING {rows}" if rows else ""
    return f"""\
CREATE FUNCTION {function}() RETURNS trigger
LANGUAGE plpgsql {_SAFE} AS {_MARK}
BEGIN
{body}{wake}    RETURN NULL;
END {_MARK};
CREATE TRIGGER {quoted(name)} AFTER {_EVENTS[event]} ON {named(table)}{referencing}
    FOR EACH STATEMENT EXECUTE FUNCTION {function}();
ALTER TABLE {named(table)} ENABLE ALWAYS TRIGGER {quoted(name)};"""


def _function(layout: TableLayout, table: TableName, event: str) -> str:
    at = layout.watched.index(table)
    return own(layout, f"{event}_{at}" if at else event)


def _pruning(layout: TableLayout) -> str:
    log, state = named(layout.log), own(layout, "state")
    return f"""\
-- Run this once a day or a week. Who was away for longer reads all rows again.
CREATE FUNCTION {own(layout, "prune")}(keep interval DEFAULT '14 days') RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS {_MARK}
DECLARE
    kept xid8;
    gone xid8;
    number bigint;
BEGIN
    SELECT log_transaction INTO kept FROM {log}
        WHERE log_at >= clock_timestamp() - keep ORDER BY log_transaction LIMIT 1;
    SELECT log_transaction INTO gone FROM {log}
        WHERE log_transaction < pg_snapshot_xmin(pg_current_snapshot())
            AND (kept IS NULL OR log_transaction < kept)
        ORDER BY log_transaction DESC LIMIT 1;
    IF gone IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE {state} SET pruned_to = gone WHERE pruned_to < gone;
    DELETE FROM {log} WHERE log_transaction <= gone;
    GET DIAGNOSTICS number = ROW_COUNT;
    RETURN number;
END {_MARK};
REVOKE ALL ON FUNCTION {own(layout, "prune")}(interval) FROM PUBLIC;
"""  # noqa: S608 - the same


def _grants(layout: TableLayout) -> str:
    reader = quoted(layout.reader)
    schemas = dict.fromkeys(item[0] for item in (layout.log, *layout.watched) if len(item) > 1)
    tables = [named(layout.log), own(layout, "state"), *map(named, layout.watched)]
    usage = [f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {reader};" for schema in schemas]
    return "\n".join((*usage, f"GRANT SELECT ON {', '.join(tables)} TO {reader};"))


def _undoing(layout: TableLayout) -> str:
    functions = [
        _function(layout, table, event)
        for table in layout.watched
        for event in statements.triggers_of(layout)
    ]
    names = ", ".join(f"{function}()" for function in functions)
    return f"""
-- To undo it:
-- DROP FUNCTION {names} CASCADE;
-- DROP FUNCTION {own(layout, "prune")}(interval);
-- DROP TABLE {named(layout.log)}, {own(layout, "state")};"""
