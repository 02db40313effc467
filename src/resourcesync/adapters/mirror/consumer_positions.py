"""Positions of programs in a mirror's changes, which they record while a pull goes on for hours."""

import re
from pathlib import Path
from typing import Final

import msgspec

from resourcesync import own_files
from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.errors import ConfigurationError, StateError, quoted
from resourcesync.mirror_state.rows import ChangeLogPosition

_CONSUMER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST_BYTES: Final = 4096


class _Acknowledged(msgspec.Struct):
    acknowledged: int
    time: int


class ConsumerFiles:
    """The files of ``.resourcesync/consumers``."""

    def __init__(self, own: Path) -> None:
        self._folder = own / "consumers"

    def position(self, name: str) -> ChangeLogPosition | None:
        """Return the position that ``name`` acknowledged, or ``None``."""
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            text = own_files.read_file(path, _MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise mirror_error(error, f"reading {path}") from error
        try:
            stored = msgspec.json.decode(text, type=_Acknowledged)
            return ChangeLogPosition(stored.acknowledged, stored.time)
        except (msgspec.MsgspecError, ValueError) as error:
            raise StateError(
                f"{path} is damaged: the position of {name} is unknown",
                hint="start over: "
                f"resourcesync changes MIRROR --consumer {quoted(name, 'NAME')} --restart",
            ) from error

    def acknowledge(self, name: str, position: ChangeLogPosition) -> None:
        """Store durably that ``name`` has processed all changes up to ``position``."""
        stored = msgspec.json.encode(_Acknowledged(position.number, position.time))
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            own_files.replace_file(path, stored, folder_mode=0o700)
        except OSError as error:
            raise mirror_error(error, f"storing the position of {name}") from error


def _checked_name(name: str) -> str:
    if not _CONSUMER.fullmatch(name):
        raise ConfigurationError(
            f"{name[:100]!r} cannot be the name of a consumer",
            hint="use up to 64 letters, digits, - and _",
        )
    return name
