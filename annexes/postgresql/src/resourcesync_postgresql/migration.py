"""The SQL by which a table logs its changes, for its owner to run."""

from collections.abc import Iterator, Mapping
from typing import Final

from resourcesync.errors import ConfigurationError
from resourcesync_postgresql import statements
from resourcesync_postgresql.layout import TableLayout, parse_layout
from resourcesync_postgresql.statements import listed, named, own, quoted, text

_ANY_BASE: Final = "https://example.org/"
_OLD: Final = "resourcesync_old"
_NEW: Final = "resourcesync_new"
_SAFE: Final = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_MARK: Final = "$resourcesync$"
_EVENTS: Final = {
    "inserted": "INSERT", "updated": "UPDATE", "deleted": "DELETE", "truncated": "TRUNCATE"
}  # fmt: skip


def setup_text(values: Mapping[str, str]) -> str:
    """Return the SQL that creates the log of the table that options name, and its triggers."""
    layout = parse_layout(values, _ANY_BASE)
    if not layout.table:
        raise ConfigurationError(
            "no table to log is given", hint="give it by the option table: --with table=SCHEMA.NAME"
        )
    return "\n".join(_parts(layout))


def _parts(layout: TableLayout) -> Iterator[str]:
    table = named(layout.table)
    yield f"-- By this, resourcesync follows the changes of {table}. PostgreSQL 13 or later."
    yield "-- Its owner runs it once: psql -v ON_ERROR_STOP=1 -f THIS DATABASE"
    yield "BEGIN;"
    if layout.log[0] == "resourcesync":
        yield "CREATE SCHEMA IF NOT EXISTS resourcesync;"
    yield _log(layout)
    yield _triggers(layout)
    yield _pruning(layout)
    if layout.reader:
        yield _grants(layout)
    yield "COMMIT;"
    yield _undoing(layout)


def _log(layout: TableLayout) -> str:
    log = named(layout.log)
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
    pruned_to xid8 NOT NULL DEFAULT '0'
);
INSERT INTO {own(layout, "state")} (one) VALUES (1);
"""  # noqa: S608 - names are quoted


def _triggers(layout: TableLayout) -> str:
    """Return the functions and triggers of the table."""
    new, old = f"NEW TABLE AS {_NEW}", f"OLD TABLE AS {_OLD}"
    emptied = f"    UPDATE {own(layout, 'state')} SET incarnation = gen_random_uuid();\n"  # noqa: S608 - the same
    parts = [
        f"-- What is written to {named(layout.table)} is logged, once for each statement.",
        _trigger(layout, "inserted", new, _logged(layout, _NEW)),
        _trigger(layout, "updated", f"{old} {new}", _logged(layout, _changed(layout))),
        _trigger(layout, "deleted", old, _logged(layout, _OLD)),
        _trigger(layout, "truncated", "", emptied),
    ]
    return "\n".join(parts) + "\n"


def _changed(layout: TableLayout) -> str:
    """Return the rows of an update that differ, before and after it.

    They are compared as text: some types have no equality operator, some compare different texts
    as equal, and an error in a trigger would fail the statement of another program.
    """
    key, row = listed(layout.key), f"ROW({listed(layout.columns)})" if layout.columns else ""
    old, new = (
        f"SELECT {key}, {row or rows}::text AS said FROM {rows}"  # noqa: S608 - the same
        for rows in (_OLD, _NEW)
    )
    return f"""(
            ({old} EXCEPT {new})
            UNION ALL
            ({new} EXCEPT {old})
        ) AS changed"""


def _logged(layout: TableLayout, rows: str) -> str:
    texts = ", ".join(f'{quoted(name)}::text COLLATE "C"' for name in layout.key)
    there = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in layout.key)
    return f"""\
    INSERT INTO {named(layout.log)} ({listed(layout.key)})
        SELECT DISTINCT ON ({texts}) {listed(layout.key)}
        FROM {rows}
        WHERE {there};
"""  # noqa: S608 - the same


def _trigger(layout: TableLayout, event: str, rows: str, body: str) -> str:
    """Return a function and its trigger."""
    name = quoted(statements.triggers_of(layout)[event])
    function, table = own(layout, event), named(layout.table)
    referencing = f"\n    REFERENCING {rows}" if rows else ""
    return f"""\
CREATE FUNCTION {function}() RETURNS trigger
LANGUAGE plpgsql {_SAFE} AS {_MARK}
BEGIN
{body}    IF FOUND THEN
        PERFORM pg_notify({text(layout.log[-1])}, '');
    END IF;
    RETURN NULL;
END {_MARK};
CREATE TRIGGER {name} AFTER {_EVENTS[event]} ON {table}{referencing}
    FOR EACH STATEMENT EXECUTE FUNCTION {function}();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name};"""


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
    schemas = dict.fromkeys(item[0] for item in (layout.log, layout.table) if len(item) > 1)
    tables = ", ".join((named(layout.log), own(layout, "state"), named(layout.table)))
    usage = [f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {reader};" for schema in schemas]
    return "\n".join((*usage, f"GRANT SELECT ON {tables} TO {reader};"))


def _undoing(layout: TableLayout) -> str:
    names = ", ".join(f"{own(layout, event)}()" for event in _EVENTS)
    return f"""
-- To undo it:
-- DROP FUNCTION {names} CASCADE;
-- DROP FUNCTION {own(layout, "prune")}(interval);
-- DROP TABLE {named(layout.log)}, {own(layout, "state")};"""
