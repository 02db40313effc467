"""Which URIs of a set cannot have their names, since others need them. Pure.

Two things clash: a file where a folder is needed, and two names that the file system takes for one.
The folder keeps its name. Of URIs with one name the first keeps it, in the order of URIs; one that
ends in a slash, whose name is only an assumed ``index.html``, comes last. The others yield. So
who yields depends on the set alone, not on what came when.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class PathClaim(NamedTuple):
    """A URI and the name it would have.

    Attributes:
        key: What the file system takes its path for.
        uri: Normalised.
    """

    key: str
    uri: str


def relocated_uris(named: Iterable[PathClaim]) -> Iterator[str]:
    """Yield the URIs that cannot have their names.

    Args:
        named: In the order of keys; a URI may come several times.
    """
    above: list[PathClaim] = []  # files whose key begins the present one; each begins the next
    for one in named:
        key = one.key
        while above and not key.startswith(above[-1].key):
            above.pop()
        if above:
            last = above[-1]
            if key == last.key:
                above.pop()
                first, other = sorted((one, last), key=_precedence)
                if first.uri != other.uri:
                    yield other.uri
                above.append(first)
                continue
            elif key[len(last.key)] == "/":
                above.pop()
                yield last.uri
        above.append(one)


def _precedence(one: PathClaim) -> tuple[bool, str]:
    return one.uri.endswith("/"), one.uri
