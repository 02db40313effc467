"""The positions of the programs that read the changes of a mirror: a small file of each.

They are not in the mirror's state, which has one writer at a time: a program must be able to record
its position while a pull goes on for hours.
"""

import json
import re
from pathlib import Path
from typing import Final

from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.errors import ConfigurationError, StateError, quoted
from resourcesync.mirror_state.rows import ChangeLogPosition
from resourcesync.own_files import read_file, replace_file

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST: Final = 4096


class ConsumerFiles:
    """The files of ``.resourcesync/consumers``."""

    def __init__(self, own: Path) -> None:
        self._folder = own / "consumers"

    def position(self, name: str) -> ChangeLogPosition | None:
        """Return the position that ``name`` acknowledged, or ``None``."""
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            text = read_file(path, _MOST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise mirror_error(error, f"reading {path}") from error
        try:
            stored = json.loads(text)
            return ChangeLogPosition(int(stored["acknowledged"]), int(stored["time"]))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise StateError(
                f"{path} is damaged: the position of {name} is unknown",
                hint="start over: "
                f"resourcesync changes MIRROR --consumer {quoted(name, 'NAME')} --restart",
            ) from error

    def acknowledge(self, name: str, position: ChangeLogPosition) -> None:
        """Store durably that ``name`` has processed all changes up to ``position``."""
        stored = {"acknowledged": position.number, "time": position.time}
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            replace_file(path, json.dumps(stored).encode(), folder_mode=0o700)
        except OSError as error:
            raise mirror_error(error, f"storing the position of {name}") from error


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name[:100]!r} cannot be the name of a consumer",
            hint="use up to 64 letters, digits, - and _",
        )
    return name
