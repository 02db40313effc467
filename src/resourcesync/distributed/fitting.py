"""As much of a slice as a run may still fetch."""

from resourcesync.destination.budget import Budget
from resourcesync.ports.tables import Tables, WorkRow, WorkSlice


def fit_to_budget(one: WorkSlice, budget: Budget, tables: Tables) -> WorkSlice:
    """Return a slice, or its first rows when a run may not fetch all; at least one row.

    Args:
        one: The slice.
        budget: What the run may take.
        tables: Reads and writes slices.
    """
    if budget.fits(one.size):
        return one
    rows: list[WorkRow] = []
    size = 0
    for row in tables.read_work(one.file):
        length = row.listed.length or 0
        if rows and not budget.fits(size + length):
            break
        rows.append(row)
        size += length
    if len(rows) == one.rows:
        return one
    file = f"{one.file}-begin"
    tables.write_work(file, rows)
    return WorkSlice(file, len(rows), size)
