"""Parts a long document: what fits a stencil becomes columns, everything else goes to expat.

The first block of a document is always read by expat, and so is whatever the sieve does not know.
In place of what it takes out expat gets as many blanks and line feeds, so every place it tells is
right. When little fits, the sieve steps aside.
"""

import codecs
from collections.abc import Iterator
from typing import Final

from resourcesync.documents._assembling import EntryAssembler
from resourcesync.documents._entries import raw_entry_of
from resourcesync.documents._layouts import EntryColumns
from resourcesync.documents._limits import Limits
from resourcesync.documents._scanning import DocumentScanner
from resourcesync.documents._stencils import OPENING, Stencil, learn_stencil

_TRIES: Final = 4
"""Stencils that are learnt from one document."""
_WORTH: Final = 16
"""Entries that must fit for each place that does not."""
_MAX_BUFFERED: Final = 16_384
"""Characters that wait for the rest of their entry."""
_FILLING: Final = 65_536


class FastPathReader:
    """Feeds a document to a scanner, and to its assembler what the scanner need not see.

    Args:
        scanner: Has read the header, and is not past the end.
        assembler: Takes the entries.
        limits: What the document may cost.
    """

    def __init__(self, scanner: DocumentScanner, assembler: EntryAssembler, limits: Limits) -> None:
        self._scanner = scanner
        self._assembler = assembler
        self._longest = min(limits.uri, limits.text)
        self._stencil: Stencil | None = None
        self._tries = _TRIES
        self._is_off = assembler.attributes is None  # then no entry fits into columns
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._buffered = (
            ""  # what may be the start of an entry, and comes right after what was taken
        )
        # How far the entries that were taken out reach; ``None`` when the scanner is there, too.
        self._reached: tuple[int, int] | None = None

    def feed(self, block: bytes) -> None:
        """Take the next bytes.

        Raises:
            DocumentError: They cannot be used.
        """
        if self._is_off:
            self._feed_scanner(self._rest() + block)
            return
        cut, _ = self._decoder.getstate()
        held, self._buffered = self._buffered, ""
        try:
            text = held + self._decoder.decode(block)
        except UnicodeDecodeError:  # expat says what is wrong
            self._is_off = True
            self._decoder.reset()
            self._feed_scanner(held.encode() + cut + block)
            return
        while text:
            text = self._process(text)

    def finish(self) -> None:
        """Let the scanner read what waits: nothing more comes.

        Raises:
            DocumentError: It cannot be used.
        """
        self._catch_up()
        self._feed_scanner(self._buffered.encode() + self._rest())
        self._buffered = ""

    def _rest(self) -> bytes:
        """Return the start of a character whose end has not come, and forget it."""
        cut, _ = self._decoder.getstate()
        self._decoder.reset()
        return cut

    def _process(self, text: str) -> str:
        """Take a text to its end, or to where another stencil is needed; return what is left."""
        start = OPENING.search(text)
        if start is None:
            return self._buffer(text)
        self._feed_scanner(text[: start.start()].encode())
        text = text[start.start() :]
        if self._stencil is None and not self._tries:
            self._is_off = True
        if self._is_off or (self._reached is None and not self._scanner.is_between_entries):
            self._feed_scanner(
                text.encode()
            )  # when it is inside of something, the next block may do
            return ""
        if self._stencil is None:
            return self._learn(text, start[0])
        return self._extract(text, self._stencil)

    def _learn(self, text: str, start: str) -> str:
        """Let the scanner read one entry, and see how it is written; return what follows it."""
        after = text.find(start, len(start))
        if after < 0:
            return self._buffer(text)
        self._tries -= 1
        before = len(self._assembler.items)
        self._feed_scanner(text[:after].encode())
        found = self._assembler.items[before:]
        if len(found) == 1:
            item = found[0]
            if isinstance(item, EntryColumns):
                first = None if item.priorities is None else item.priorities[0]
                item = raw_entry_of(next(item.rows()), first)
            assert self._assembler.attributes is not None
            self._stencil = learn_stencil(text[:after], item, self._assembler.attributes)
        return text[after:]

    def _extract(self, text: str, stencil: Stencil) -> str:
        """Take out the entries that fit, and pass on what stands between them."""
        pieces = stencil.pattern.split(text)
        width = stencil.groups + 1
        *gaps, rest = pieces[::width]
        values = [pieces[place::width] for place in range(1, width)]
        strays = [index for index, gap in enumerate(gaps) if gap]
        if len(strays) * _WORTH > len(gaps) or (not gaps and len(rest) > _MAX_BUFFERED):
            self._stencil = None  # the next entries are written in another way
            if not gaps:
                return rest
        if any(max(map(len, texts), default=0) > self._longest for texts in values):
            self._feed_scanner(text.encode())
            return ""
        first = at = 0
        for index in (*strays, len(gaps)):
            at += self._append_entries(stencil, [texts[first:index] for texts in values])
            first = index
            if index < len(gaps):
                self._feed_scanner(gaps[index].encode())
                at += len(gaps[index])
                if not self._scanner.is_between_entries:
                    return text[at:]
        return self._buffer(rest)

    def _append_entries(self, stencil: Stencil, values: list[list[str]]) -> int:
        """Take entries out; return how many characters they were."""
        if not values[0]:
            return 0
        line, column = self._reached or self._scanner.place()
        run, *reached = stencil.run(values, line, column)
        self._assembler.items.append(run)
        self._reached = reached[0], reached[1]
        return stencil.size * len(values[0]) + sum(sum(map(len, texts)) for texts in values)

    def _buffer(self, text: str) -> str:
        if len(text) > _MAX_BUFFERED:
            self._feed_scanner(text.encode())
        else:
            self._buffered = text
        return ""

    def _feed_scanner(self, data: bytes) -> None:
        """Let the scanner read."""
        if data:
            self._catch_up()
            self._scanner.feed(data)

    def _catch_up(self) -> None:
        """Bring the scanner to where the entries end that were taken out."""
        if self._reached is not None:
            for filling in _padding(self._scanner.place(), self._reached):
                self._scanner.feed(filling)
            self._reached = None


def _padding(here: tuple[int, int], there: tuple[int, int]) -> Iterator[bytes]:
    """Yield the blanks and line feeds from one place to a later one."""
    lines, columns = there[0] - here[0], there[1] - here[1]
    if lines:
        columns = there[1] - 1
    for mark, count in ((b"\n", lines), (b" ", columns)):
        for done in range(0, count, _FILLING):
            yield mark * min(_FILLING, count - done)
