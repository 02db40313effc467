"""Units that tell what became of them in a folder, and the work of workers, well and ill."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from resourcesync_cluster.ports import HostShare, UnitOutcome


class Piece(NamedTuple):
    name: str
    folder: str  # where it leaves an object, and a line for each time that it was begun
    does: str = "well"  # `well`, `raises`, `exits`, `dies`, `dies first`, `lasts`
    host: str = ""


def do_piece(piece: Piece, share: HostShare) -> UnitOutcome:
    folder = Path(piece.folder)
    with (folder / f"{piece.name}.begun").open("a") as stream:
        stream.write(f"{os.getpid()}\n")
    match piece.does:
        case "raises":
            raise ValueError("no such thing\nas this")
        case "exits":
            raise SystemExit(3)
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "dies first" if len(begun(piece)) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case "lasts":
            try:
                time.sleep(60)
            finally:
                (folder / f"{piece.name}.tidy").touch()
        case _:
            time.sleep(0.02)
    (folder / f"{piece.name}.done").write_text(f"{share.rate} {share.jobs}")
    return UnitOutcome(name=piece.name, rows=len(piece.name), details={"pid": os.getpid()})


def begun(piece: Piece) -> list[int]:
    path = Path(piece.folder) / f"{piece.name}.begun"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def pieces(folder: Path, count: int, **special: str) -> list[Piece]:
    names = [f"n{number}" for number in range(count)]
    return [Piece(name, str(folder), special.get(name, "well")) for name in names]
