"""Which column of a table says what, and how it is read."""

from collections.abc import Mapping
from typing import Final

from resourcesync.adapters.inventory.engine import sql_identifier
from resourcesync.errors import ConfigurationError

COLUMN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "uri": ("uri", "loc", "url"),
    "lastmod": ("lastmod",),
    "length": ("length",),
    "hash": ("hash", "digests"),
    "sha256": ("sha256",),
    "md5": ("md5",),
    "type": ("type", "media_type"),
}
"""What a column can say, and the names by which it is known without being told."""
FILE_COLUMN: Final = "resourcesync file"
ROW_COLUMN: Final = "file_row_number"
"""The columns that DuckDB adds: where a row stands. Archives have columns called ``filename``."""

_HOST: Final = r"(?:[a-z0-9-]{1,30}\.){0,6}[a-z][a-z0-9-]{0,30}"
_PATH: Final = r"/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[2-9A-Fa-f][0-9A-Fa-f])*"
_URI: Final = rf"https?://{_HOST}(?::[1-9][0-9]{{0,3}})?{_PATH}"
_HASH: Final = r"(?:|sha-256:[0-9a-f]{64}|md5:[0-9a-f]{32}|sha-1:[0-9a-f]{40})"
_TYPE: Final = r"[!-~]{0,200}"
_EARLIEST: Final = -62_135_596_800_000_000
_LATEST: Final = 253_402_300_799_999_999


def normalizing_query(found: Mapping[str, str], given: Mapping[str, str], source: str) -> str:
    """Return the query that reads a table in our form.

    Its columns are ``file``, ``place``, ``uri``, ``lastmod`` (microseconds), ``length``, ``hash``,
    ``type``, ``fault`` (a sentence for what is surely wrong, else empty) and ``sure`` (whether the
    row can be published without a second look).

    Args:
        found: The table's columns and their types.
        given: Which column says what, as the operator told.
        source: What is read, as SQL.

    Raises:
        ConfigurationError: A column is not there, or is of a type that cannot say it.
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
    SELECT *, fault = '' AND length(uri) <= 2000 AND NOT contains(uri, '/.')
        AND NOT contains(lower(uri), '%2e') AND regexp_full_match(uri, {_quoted(_URI)})
        AND regexp_full_match(hash, '{_HASH}') AND regexp_full_match(type, '{_TYPE}') AS sure
    FROM (
        SELECT "{FILE_COLUMN}" AS file, {ROW_COLUMN} AS place, {uri} AS uri, {moment} AS lastmod,
            {length} AS length, {_hash(chosen, found)} AS hash, {media} AS type,
            CASE WHEN {wrong_moment} THEN 'its lastmod is no time'
                WHEN {wrong_length} THEN 'its length is none' ELSE '' END AS fault
        FROM {source}
    )"""  # noqa: S608 - names and texts are quoted


def _select_columns(found: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    chosen = {}
    for key, usual in COLUMN_NAMES.items():
        column = given.get(key) or next((one for one in usual if one in found), None)
        if column is not None and column not in found:
            raise ConfigurationError(
                f"the table has no column {column!r:.100}",
                evidence=(("columns", ", ".join(found)[:500]),),
                hint=f"--with {key}=COLUMN",
            )
        if column is not None:
            chosen[key] = column
    if "uri" not in chosen:
        raise ConfigurationError(
            "it is not said which column has the URIs",
            evidence=(("columns", ", ".join(found)[:500]),),
            hint="--with uri=COLUMN",
        )
    return chosen


def _moment(column: str | None, found: Mapping[str, str]) -> tuple[str, str]:
    """Return what gives a column's microseconds, and when it says something that is no time."""
    if column is None:
        return "CAST(NULL AS BIGINT)", "false"
    kind, it = found[column], sql_identifier(column)
    if kind.startswith("TIMESTAMP WITH") or kind == "DATE":
        read = f"epoch_us({it})"
    elif kind.startswith("TIMESTAMP"):
        read = f"epoch_us(CAST({it} AS TIMESTAMP))"
    elif kind == "VARCHAR":
        it = f"nullif(trim({it}), '')"
        read = f"epoch_us(TRY_CAST({it} AS TIMESTAMPTZ))"
    elif kind.endswith(("INT", "INTEGER")):
        read = f"TRY_CAST({it} AS BIGINT)"
    else:
        raise ConfigurationError(
            f"the column {column!r} is of the type {kind}, which says no time",
            hint="a timestamp, a date, a text such as 2026-01-02T03:04:05Z, or microseconds",
        )
    return (
        read,
        f"{it} IS NOT NULL AND coalesce({read} NOT BETWEEN {_EARLIEST} AND {_LATEST}, true)",
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
            it = sql_identifier(chosen[key])
            read = f"hex({it})" if found[chosen[key]] == "BLOB" else f"CAST({it} AS VARCHAR)"
            return f"coalesce('{algorithm}:' || lower(nullif(trim({read}), '')), '')"
    return "''"


def _quoted(pattern: str) -> str:
    return "'" + pattern.replace("'", "''") + "'"
