"""The report: a table."""

from benchmarks.results import JobResult, Row

_HEADINGS = ("", "median", "rate", "CPU", "peak", "ours is", "by CPU")


def job(result: JobResult) -> list[str]:
    """Return the lines of one job."""
    ours = next((row for row in result.rows if row.role == "ours" and row.rate), None)
    cells = [_HEADINGS, *(_cells(row, ours) for row in result.rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(_HEADINGS))]
    lines = [f"{result.name}: {result.title}"]
    for line, row in zip(cells, [None, *result.rows], strict=True):
        padded = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        remark = " ".join(filter(None, (row.note, row.problem))) if row else ""
        lines.append(("  " + "  ".join(padded) + (f"  {remark}" if remark else "")).rstrip())
    lines += [f"  note    {note}" for note in result.notes]
    return lines


def _cells(row: Row, ours: Row | None) -> tuple[str, ...]:
    mark = {"ours": "*", "peer": " ", "floor": "."}[row.role]
    if row.seconds is None or row.rate is None:
        return (f"{mark} {row.name}", *["-"] * 6)
    against = by_cpu = ""
    if ours and ours.rate and row.role != "ours":
        against = _times(ours.rate / row.rate)
        if ours.cpu and row.cpu:
            by_cpu = _times(ours.items / ours.cpu / (row.items / row.cpu))
    return (
        f"{mark} {row.name}",
        f"{row.seconds:.3f} s",
        f"{row.rate:,.0f}/s",
        f"{row.cpu or 0:.2f} s",
        f"{row.peak_mib or 0:.0f} MiB",
        against,
        by_cpu,
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f} x" if ratio < 10 else f"{ratio:.1f} x"
