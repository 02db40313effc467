"""The report: a table for people, and JSON for programs."""

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.results import JobResult, Row, Target

_HEADINGS = ("", "median", "rate", "CPU", "peak", "ours is", "by CPU")


def text(machine: Mapping[str, object], results: Iterable[JobResult]) -> str:
    """Return the report as text."""
    lines = ["machine   " + "  ".join(f"{k} {v}" for k, v in machine.items())]
    for result in results:
        lines += ["", *job(result)]
    return "\n".join(lines)


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
    lines += [f"  target  {_target(target)}" for target in result.targets]
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


def _target(target: Target) -> str:
    word = {True: "met", False: "NOT MET", None: "not measured"}[target.met]
    figure = "-" if target.measured is None else f"{target.measured:.3g} {target.unit}"
    return f"{word:12}  {figure:>9}  {target.sentence}"


def as_json(machine: Mapping[str, object], results: Iterable[JobResult]) -> dict[str, object]:
    """Return the report as plain values."""
    return {"machine": dict(machine), "jobs": [_job_json(result) for result in results]}


def _job_json(result: JobResult) -> dict[str, object]:
    return {
        "name": result.name,
        "title": result.title,
        "rows": [_row_json(row) for row in result.rows],
        "targets": [_target_json(target) for target in result.targets],
        "notes": list(result.notes),
    }


def _row_json(row: Row) -> dict[str, object]:
    return {
        "name": row.name,
        "role": row.role,
        "items": row.items,
        "seconds": _rounded([sample.seconds for sample in row.good]),
        "median_seconds": row.seconds,
        "items_per_second": row.rate,
        "cpu_seconds": row.cpu,
        "peak_mib": row.peak_mib,
        "note": row.note,
        "problem": row.problem,
    }


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]


def _target_json(target: Target) -> dict[str, object]:
    return {
        "sentence": target.sentence,
        "measured": target.measured,
        "limit": target.limit,
        "at_least": target.at_least,
        "unit": target.unit,
        "met": target.met,
    }
