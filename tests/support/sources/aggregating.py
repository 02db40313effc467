"""A folder, tree or mirror, that is published by our command and served on loopback."""

from pathlib import Path

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing import catalogues
from resourcesync.app.serving import applications
from resourcesync.app.serving.published_tree import documents_of
from resourcesync.cli.main import run
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.model.entries import Link, Resource
from resourcesync.source.publication_settings import CATALOGUE


class Site:
    def __init__(self, folder: Path, late: applications.LateApplication, url: str) -> None:
        self.folder, self._late, self.url = folder, late, url

    def publish(self, *words: str) -> int:
        code = run(["publish", str(self.folder), "--url", self.url, *words])
        if not code:
            found = applications.find_tree(self.folder)
            self._late.application = found.application(SystemClock())
        return code

    def pull(self, source: "Site", *words: str) -> int:
        return run(["pull", source.url, str(self.folder), *words])

    def resources(self) -> dict[str, Resource]:
        path = documents_of(self.folder) / CATALOGUE
        return {resource.uri: resource for resource in catalogues.read_resources(path)}

    def links(self, name: str) -> dict[str, str]:
        return {link.rel: link.href for link in self.resources()[self.url + name].links}

    def copies(self) -> dict[str, bytes]:
        with SqliteMirrorState(self.folder / ".resourcesync" / "state.db", read_only=True) as state:
            return {copy.uri: (self.folder / copy.path).read_bytes() for copy in state.copies()}


def via(resource: Resource) -> Link:
    (found,) = resource.via
    return found
