"""What one document may cost at most, and the error that says which limit was met."""

from dataclasses import dataclass

from resourcesync.errors import DocumentLimitError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one document; they keep memory and time bounded for any input.

    What is too long costs itself, not the document: a value that is over its limit counts as not
    written. Only what no list in good faith has refuses the document.

    Attributes:
        bytes: Size of the document, after gunzip.
        entries: ``url`` or ``sitemap`` elements, those refused included.
        depth: Elements inside each other, the root included.
        attributes: Attributes of one element.
        text: Characters of one attribute, or of the text of one element; one that is longer counts
            as not said, and an entry whose ``loc`` it is is refused.
        uri: Characters of a ``loc`` or ``href``; an entry over it is refused, the list is not.
        foreign: Characters of the elements of other communities that one entry, or the root,
            keeps; those over it are left out.
    """

    bytes: int = 64 * 2**20
    entries: int = 100_000
    depth: int = 16
    attributes: int = 64
    text: int = 8192
    uri: int = 2048
    foreign: int = 65_536


def limit_error(
    limit: int, what: str, *, uri: str, line: int = 0, column: int = 0
) -> DocumentLimitError:
    """Return the error for a document that has more than ``limit`` of ``what``."""
    return DocumentLimitError(
        f"The document has more than {limit:,} {what}",
        uri=uri,
        line=line,
        column=column,
        evidence=(("limit", f"{limit:,} {what}"),),
    )
