"""Changes that other programs report, made regular, or all resources; no folder is scanned."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from resourcesync.catalogue.recording import CatalogueRecording, count_resources
from resourcesync.catalogue.rows import from_row, to_row
from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import Posted

MIN_ALLOWED_LOSS: Final = 10
"""Number of resources that may always be deleted at once, however few there are."""
_BATCH: Final = 2_000
_ACCOUNT: Final = """
CREATE TEMP TABLE account (
    uri TEXT NOT NULL, lastmod_us INTEGER, length INTEGER, hash TEXT NOT NULL,
    media_type TEXT NOT NULL, more TEXT NOT NULL
)
"""
_DUPLICATE: Final = "SELECT uri FROM account GROUP BY uri HAVING count(*) > 1 ORDER BY uri LIMIT 1"
_ANY: Final = "SELECT 1 FROM account LIMIT 1"
_FILL: Final = """
INSERT INTO resource SELECT uri, lastmod_us, length, hash, media_type, more, '' FROM account
ORDER BY uri
"""
_DIFFERENCES: Final = """
CREATE TEMP TABLE difference AS
SELECT CASE
        WHEN known.uri IS NULL THEN 'created'
        WHEN account.hash <> known.hash OR account.length IS NOT known.length THEN 'updated'
        WHEN account.hash = '' AND account.lastmod_us IS NOT known.lastmod_us THEN 'updated'
        -- A mirror learns of other links or another type by the Change List alone (ADR 0011).
        WHEN account.media_type <> known.media_type OR account.more <> known.more THEN 'updated'
        ELSE 'touched'
    END AS kind, account.*
FROM account LEFT JOIN main.resource AS known USING (uri)
WHERE known.uri IS NULL OR account.lastmod_us IS NOT known.lastmod_us
    OR account.length IS NOT known.length OR account.hash <> known.hash
    OR account.media_type <> known.media_type OR account.more <> known.more
"""
_GONE: Final = """
INSERT INTO difference (kind, uri, hash, media_type, more)
SELECT 'deleted', uri, '', '', '' FROM main.resource
WHERE uri NOT IN (SELECT uri FROM account)
"""


class LossLimit(NamedTuple):
    """A limit on the deletions of several batches of changes: of so many, a number may be gone."""

    resources: int
    gone: int
    limit: int


def post(
    recording: CatalogueRecording,
    changes: Iterable[Change],
    *,
    keeps_times: bool,
    loss: LossLimit | None,
) -> Posted:
    """Record changes of some resources; see ``SourceCatalogue.post``."""
    counts: Counter[str] = Counter()
    recent: dict[str, bool] = {}
    for change in changes:
        uri = change.uri
        is_known = recent[uri] if uri in recent else recording.has_resource(uri)
        if keeps_times and change.time is not None:
            recording.dated(change.time)
        if change.kind is not ChangeKind.DELETED:
            kind = ChangeKind.UPDATED if is_known else ChangeKind.CREATED
            record = recording.updated if is_known else recording.created
            record(change.resource, "")
        elif is_known:
            kind = ChangeKind.DELETED
            recording.deleted(change.resource)
        else:
            continue
        recent[uri] = kind is not ChangeKind.DELETED
        counts[kind.value] += 1
        if len(recent) >= _BATCH:
            recording.flush()
            recent.clear()
    gone = counts["deleted"] - counts["created"]
    if loss is not None and gone > 0 and loss.gone + gone > loss.limit:
        raise _many_gone(loss.gone + gone, loss.resources)
    return Posted(**counts)


def fill(
    recording: CatalogueRecording,
    resources: Iterable[Resource],
    *,
    is_all: bool,
    most_gone: float,
    allow_empty: bool,
) -> Posted:
    """Record the resources as they are; see ``SourceCatalogue.fill``.

    They go through a temporary table, which is on disk when it is large. An error rolls it back.
    """
    execute = recording.connection.execute
    execute(_ACCOUNT)
    recording.connection.executemany(
        "INSERT INTO account VALUES (?,?,?,?,?,?)", map(to_row, resources)
    )
    execute("CREATE INDEX temp.account_uri ON account (uri)")
    if (twice := execute(_DUPLICATE).fetchone()) is not None:
        raise ConfigurationError(
            f"{twice[0]} occurs twice",
            evidence=(("kept", "what was recorded before"),),
            hint="give each resource once",
        )
    if recording.is_first:
        done = Posted(created=execute(_FILL).rowcount)
    else:
        execute(_DIFFERENCES)
        if is_all:
            _check_gone(recording, execute(_GONE).rowcount, most_gone, allow_empty=allow_empty)
        done = _record_differences(recording)
        execute("DROP TABLE temp.difference")
    execute("DROP TABLE temp.account")
    return done


def _check_gone(
    recording: CatalogueRecording, gone: int, most: float, *, allow_empty: bool
) -> None:
    execute, known = recording.connection.execute, count_resources(recording.connection)
    is_emptied = gone > 0 and not (allow_empty or execute(_ANY).fetchone())
    if is_emptied or gone > max(MIN_ALLOWED_LOSS, known * most):
        raise _many_gone(gone, known)


def _record_differences(recording: CatalogueRecording) -> Posted:
    counts: Counter[str] = Counter()
    records = {
        "created": recording.created,
        "updated": recording.updated,
        "touched": recording.touched,
    }
    rows = recording.connection.execute("SELECT * FROM difference ORDER BY uri")
    for kind, *row in rows:
        resource = from_row(tuple(row))
        if kind == "deleted":
            recording.deleted(resource)
        else:
            records[kind](resource, "")
        counts[kind] += 1
    return Posted(**counts)


def _many_gone(gone: int, known: int) -> ConfigurationError:
    return ConfigurationError(
        f"{gone:,} of {known:,} resources would be gone",
        evidence=(("kept", "what was recorded before"),),
        hint="check that the input is complete; if this is intended, allow it: --allow-empty",
        code="many-gone",
    )
