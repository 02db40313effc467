"""The schema of a catalogue's file.

Tables, for those who read it with other tools (open it read-only):

- ``resource``: what is published, one row for each URI.
- ``change``: the changes, in order; ``datetime_us`` strictly rises with ``seq``.
- ``moment``: one row once something was recorded: the latest time that was assigned.
- ``note``: the publisher's bookkeeping.
- ``edit``: the URIs of resources that were written or removed since the last Resource List.
- ``post``: a view for other programs to report changes, one row for each change.
- ``version``: the versions of each resource whose bytes are stored; ``former_us`` is when another
  version, or a deletion, followed.
- ``content``: the contents of the version store, and how many rows of ``version`` need each.

Times are microseconds since 1970-01-01T00:00:00Z; ``hash`` is as in ``rs:md/@hash``.
"""

from typing import Final

from resourcesync.sqlite_file import Durability, SqliteFormat, read_schema

BAD_ROW: Final = "catalogue-row"
"""The code of errors that one row of a catalogue is the reason of."""
_APPLICATION_ID: Final = 0x52534331  # "RSC1"
ALL_TIMES: Final = "BETWEEN -62135596800000000 AND 253402300799999999"
"""The condition of SQL for a number that is a time."""
SCHEMA: Final = read_schema(__file__, "schema.sql", all_times=ALL_TIMES)
"""All tables, views and triggers."""

CATALOGUE_FORMAT: Final = SqliteFormat(
    noun="a catalogue of this package",
    application_id=_APPLICATION_ID,
    schema=SCHEMA,
    durability=Durability.SHARED,
    any_thread=True,
    retained="what was recorded and published before",
    repair="move {path} away, then begin anew with the address (step initialise)",
    bad_row=BAD_ROW,
)
