"""A scanner of XML that is whole in memory, with the place of everything in its bytes."""

import re
from typing import Final

from resourcesync.documents._expat import SEPARATOR, XmlDriver, XmlFault, XmlFaultKind
from resourcesync.errors import PatchError

_ENCODINGS: Final = ("utf-8", "utf8", "us-ascii")
_TAG: Final = re.compile(rb"<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*/?>")
_ENDINGS: Final = ((b"<!--", b"-->"), (b"<?", b"?>"), (b"</", b">"))


class XmlScanner:
    """A scanner of one document.

    Args:
        data: The document.
        what: Its description, for messages.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self._what = what
        self._driver = XmlDriver(self._error_of, encodings=_ENCODINGS)
        self.parser = self._driver.parser

    def run(self) -> None:
        """Read it to its end.

        Raises:
            PatchError: It cannot be used.
        """
        self._driver.read(self.data)

    def position(self) -> int:
        """Return the place of the current event, in bytes."""
        return self.parser.CurrentByteIndex

    def tag_end(self, start: int) -> int:
        """Return where the tag ends that begins at ``start``."""
        found = _TAG.match(self.data, start)
        if found is None:
            raise PatchError(f"{self._what} has an unsupported tag")
        return found.end()

    def markup_end(self, start: int) -> int:
        """Return where the tag, comment or instruction ends that begins at ``start``."""
        for opening, closing in _ENDINGS:
            if self.data.startswith(opening, start):
                return self.data.index(closing, start) + len(closing)
        return self.tag_end(start)

    @staticmethod
    def local(name: str) -> str:
        """Return a name without its namespace."""
        return name.rpartition(SEPARATOR)[2]

    def _error_of(self, fault: XmlFault) -> PatchError:
        match fault.kind:
            case XmlFaultKind.DOCTYPE:
                return PatchError(f"{self._what} has a DOCTYPE")
            case XmlFaultKind.ENCODING:
                return PatchError(f"{self._what} is not in UTF-8")
            case XmlFaultKind.LIMIT:
                return PatchError(f"{self._what} has more than {fault.limit:,} {fault.detail}")
            case _:
                where = f"line {fault.line}, column {fault.column}"
                return PatchError(f"{self._what} is not usable XML: {fault.detail}: {where}")
