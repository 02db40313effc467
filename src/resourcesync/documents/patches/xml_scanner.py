"""A scanner of XML that is whole in memory, with the place of everything in its bytes."""

import pyexpat
import re
from typing import Final

from resourcesync.documents._expat import SEPARATOR, exceeded_bound, new_parser
from resourcesync.errors import PatchError

_BLOCK: Final = 65_536
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
        self.parser = new_parser(on_declaration=self._declaration, on_doctype=self._doctype)

    def run(self) -> None:
        """Read it to its end.

        Raises:
            PatchError: It cannot be used.
        """
        try:
            for start in range(0, len(self.data), _BLOCK):
                self.parser.Parse(self.data[start : start + _BLOCK], False)  # noqa: FBT003 - expat's signature
                if exceeded_bound(self.parser, min(start + _BLOCK, len(self.data))) is not None:
                    raise PatchError(f"{self._what} has a tag or comment that is too long")
            self.parser.Parse(b"", True)  # noqa: FBT003 - expat's signature
        except pyexpat.ExpatError as error:
            raise PatchError(f"{self._what} is not usable XML: {error}") from error

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

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
            raise PatchError(f"{self._what} is not in UTF-8")

    def _doctype(self, *_details: object) -> None:
        raise PatchError(f"{self._what} has a DOCTYPE")
