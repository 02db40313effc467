"""The file in which resync's client stores the times of its runs, read and written as it does."""

import io
import re
from configparser import ConfigParser, Error
from pathlib import Path
from typing import Final

from resourcesync.compat.resync.errors import ClientFatalError
from resourcesync.own_files import replace_file

_SECTION: Final = "incremental"


class ClientState:
    """``resync.client_state.ClientState``: the time of the last run for each list.

    Args:
        status_file: The file.
    """

    def __init__(self, status_file: str = ".resync-client-status.cfg") -> None:
        self.status_file = status_file

    def get_state(self, site: str) -> float | None:
        """Return the time of the last run; ``None`` if there was none.

        Raises:
            ClientFatalError: The file cannot be read.
        """
        try:
            return self._parsed().getfloat(_SECTION, self.config_site_to_name(site), fallback=None)
        except ValueError as error:
            raise ClientFatalError(f"{self.status_file} is damaged: {error}") from error

    def set_state(self, site: str, timestamp: float | None = None) -> None:
        """Store the time of a run, seconds since 1970; ``None`` removes it.

        Raises:
            ClientFatalError: The file cannot be read or written; it is as before.
        """
        parser = self._parsed()
        if not parser.has_section(_SECTION):
            parser.add_section(_SECTION)
        name = self.config_site_to_name(site)
        if timestamp is None:
            parser.remove_option(_SECTION, name)
        else:
            parser.set(_SECTION, name, repr(timestamp))
        text = io.StringIO()
        parser.write(text)
        try:
            replace_file(Path(self.status_file), text.getvalue().encode(), mode=0o666)
        except OSError as error:
            raise ClientFatalError(f"{self.status_file} cannot be written: {error}") from error

    def config_site_to_name(self, name: str) -> str:
        """Return the name under which the time of a list is stored."""
        return re.sub(r"\W", "_", name)

    def _parsed(self) -> ConfigParser:
        parser = ConfigParser()
        try:
            parser.read(self.status_file, encoding="utf-8")
        except (Error, OSError, UnicodeDecodeError) as error:
            raise ClientFatalError(f"{self.status_file} cannot be read: {error}") from error
        return parser
