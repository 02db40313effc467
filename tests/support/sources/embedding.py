"""What the Source of the library's journeys offers, and what a mirror of it holds."""

from pathlib import Path

FILES = {f"/objects/{number:02}.txt": f"object {number}".encode() for number in range(12)}
EARLY, LATE, LATER = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))


def here(folder: Path) -> dict[str, bytes]:
    """Return the files of a mirror, by target."""
    return {
        f"/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".resourcesync" not in path.parts
    }
