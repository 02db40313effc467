"""The queries over a table of resources: its columns as our fields, and what differs in two."""

from collections.abc import Mapping
from typing import Final

from resourcesync.adapters.inventory.duckdb_engine import sql_identifier, sql_literal
from resourcesync.errors import ConfigurationError, Remedy

COLUMN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "uri": ("uri", "loc", "url"),
    "lastmod": ("lastmod",),
    "length": ("length",),
    "hash": ("hash", "digests"),
    "sha256": ("sha256",),
    "md5": ("md5",),
    "type": ("type", "media_type"),
}
"""The fields of a resource, and the column names that are recognised for each."""
FIELDS: Final = ("uri", "lastmod", "length", "hash", "type")
"""The columns of our schema: a text, microseconds and bytes or null, and two texts."""

_HOST: Final = r"(?:[a-z0-9-]{1,30}\.){0,6}[a-z][a-z0-9-]{0,30}"
_PATH: Final = r"/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[2-9A-Fa-f][0-9A-Fa-f])*"
_URI: Final = rf"https?://{_HOST}(?::[1-9][0-9]{{0,3}})?{_PATH}"
_HASH: Final = r"(?:|sha-256:[0-9a-f]{64}|md5:[0-9a-f]{32}|sha-1:[0-9a-f]{40})"
_TYPE: Final = r"[!-~]{0,200}"
UNSURE: Final = f"""
SELECT * FROM candidates
WHERE NOT (fault = '' AND length(uri) <= 2000 AND NOT contains(uri, '/.')
    AND NOT contains(lower(uri), '%2e') AND regexp_full_match(uri, {sql_literal(_URI)})
    AND regexp_full_match(hash, '{_HASH}') AND regexp_full_match(type, '{_TYPE}'))
"""  # noqa: S608 - our own names
"""The rows that perhaps cannot be published: each must be checked."""
DIFFERENCES: Final = """
SELECT coalesce(new.uri, old.uri) AS uri,
    CASE WHEN old.uri IS NULL THEN 'created' WHEN new.uri IS NULL THEN 'deleted'
        WHEN old.hash <> new.hash OR old.length IS DISTINCT FROM new.length
            OR (new.hash = '' AND old.lastmod IS DISTINCT FROM new.lastmod)
        THEN 'updated' ELSE 'touched' END AS kind,
    new.lastmod AS lastmod, new.length AS length,
    coalesce(new.hash, '') AS hash, coalesce(new.type, '') AS type
FROM earlier AS old FULL JOIN candidates AS new ON old.uri = new.uri
ORDER BY 1
"""
"""Rows that differ, and how."""
_EARLIEST: Final = -62_135_596_800_000_000
_LATEST: Final = 253_402_300_799_999_999


def normalizing_query(found: Mapping[str, str], given: Mapping[str, str], source: str) -> str:
    """Return the query that reads a table in our schema.

    Its columns are `FIELDS`, and ``fault``: a sentence for a certain fault, else empty.

    Args:
        found: The table's columns and their types.
        given: The column of each field, as the operator chose.
        source: The table to read, as SQL.

    Raises:
        ConfigurationError: A column is missing, or its type does not fit its field.
    """
    chosen = _select_columns(found, given)
    moment, wrong_moment = _moment(chosen.get("lastmod"), found)
    length, wrong_length = _length(chosen.get("length"))
    media = (
        f"coalesce(CAST({sql_identifier(chosen['type'])} AS VARCHAR), '')"
        if "type" in chosen
        else "''"
    )
    uri = f"coalesce(CAST({sql_identifier(chosen['uri'])} AS VARCHAR), '')"
    return f"""
    SELECT {uri} AS uri, {moment} AS lastmod, {length} AS length, {_hash(chosen, found)} AS hash,
        {media} AS type,
        CASE WHEN {wrong_moment} THEN 'its lastmod is no time'
            WHEN {wrong_length} THEN 'its length is none' ELSE '' END AS fault
    FROM {source}"""  # noqa: S608 - names and texts are quoted


def _select_columns(found: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    chosen = {}
    for key, usual in COLUMN_NAMES.items():
        column = given.get(key) or next((name for name in usual if name in found), None)
        if column is not None and column not in found:
            raise ConfigurationError(
                f"the table has no column {column!r:.100}",
                evidence=(("columns", ", ".join(found)[:500]),),
                hint=f"name the column by the option {key}",
                remedy=Remedy("set-option", value=f"{key}=COLUMN"),
            )
        if column is not None:
            chosen[key] = column
    if "uri" not in chosen:
        raise ConfigurationError(
            "no column of URIs is given",
            evidence=(("columns", ", ".join(found)[:500]),),
            hint="name the column by the option uri",
            remedy=Remedy("set-option", value="uri=COLUMN"),
        )
    return chosen


def _moment(column: str | None, found: Mapping[str, str]) -> tuple[str, str]:
    """Return SQL for a column's microseconds, and for the condition that it is no time."""
    if column is None:
        return "CAST(NULL AS BIGINT)", "false"
    kind, name = found[column], sql_identifier(column)
    if kind.startswith("TIMESTAMP WITH") or kind == "DATE":
        read = f"epoch_us({name})"
    elif kind.startswith("TIMESTAMP"):
        read = f"epoch_us(CAST({name} AS TIMESTAMP))"
    elif kind == "VARCHAR":
        name = f"nullif(trim({name}), '')"
        read = f"epoch_us(TRY_CAST({name} AS TIMESTAMPTZ))"
    elif kind.endswith(("INT", "INTEGER")):
        read = f"TRY_CAST({name} AS BIGINT)"
    else:
        raise ConfigurationError(
            f"the column {column!r} is of the type {kind}, which is no time",
            hint="a timestamp, a date, a text such as 2026-01-02T03:04:05Z, or microseconds",
        )
    return (
        read,
        f"{name} IS NOT NULL AND coalesce({read} NOT BETWEEN {_EARLIEST} AND {_LATEST}, true)",
    )


def _length(column: str | None) -> tuple[str, str]:
    if column is None:
        return "CAST(NULL AS BIGINT)", "false"
    read = f"TRY_CAST({sql_identifier(column)} AS BIGINT)"
    return read, f"{sql_identifier(column)} IS NOT NULL AND coalesce({read} < 0, true)"


def _hash(chosen: Mapping[str, str], found: Mapping[str, str]) -> str:
    if "hash" in chosen:
        return f"coalesce(trim(CAST({sql_identifier(chosen['hash'])} AS VARCHAR)), '')"
    for key, algorithm in (("sha256", "sha-256"), ("md5", "md5")):
        if key in chosen:
            name = sql_identifier(chosen[key])
            read = f"hex({name})" if found[chosen[key]] == "BLOB" else f"CAST({name} AS VARCHAR)"
            return f"coalesce('{algorithm}:' || lower(nullif(trim({read}), '')), '')"
    return "''"
