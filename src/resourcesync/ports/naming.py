"""Paths of copies beside each other: which of them a new one would meet."""

from collections.abc import Callable, Iterable, Iterator

PathKey = Callable[[str], str]
"""Returns what a file system takes a path for: equal for those that it takes for one."""


def folders_of(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, the outermost first."""
    at = path.find("/")
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)


def conflicting_paths(
    named: Iterable[tuple[str, str]], paths: Iterable[str], key: PathKey | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the URIs and paths of what some new paths would meet, of a look at all of them.

    Args:
        named: URI and path of all that is here.
        paths: The new ones.
        key: What the file system takes a path for; ``None`` where each is its own.

    Returns:
        What has one of the paths, or is one of their folders; and of what is below a path at least
        one.
    """
    wanted = {path if key is None else key(path) for path in paths}
    above = {folder for path in wanted for folder in folders_of(path)}
    found: set[str] = set()
    for uri, path in named:
        known = path if key is None else key(path)
        if known in wanted or known in above:
            yield uri, path
        for folder in folders_of(known):
            if folder in wanted and folder not in found:
                found.add(folder)
                yield uri, path
