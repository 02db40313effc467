"""What no pull may take away: a copy of what its Source has had ever since it was delivered."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.network import BASE


class Kept:
    """The copies that no pull may take away."""

    def __init__(self, home: FolderHome) -> None:
        self._home = home
        self._uris: set[str] = set()

    def listed(self, uris: Collection[str]) -> None:
        self._uris.intersection_update(uris)

    @contextmanager
    def watched(self, has: Collection[str]) -> Iterator[None]:
        before = self._copies()
        try:
            yield
        finally:
            after = self._copies()
            lost = self._uris.intersection(before, has) - after.keys()
            new = {uri for uri, body in after.items() if before.get(uri) != body}
            self._uris.update(new.intersection(has))
            assert not lost, f"lost, though the Source has it: {lost}"

    def _copies(self) -> dict[str, bytes]:
        return {BASE + path: body for path, body in self._home.files_on_disk().items()}
