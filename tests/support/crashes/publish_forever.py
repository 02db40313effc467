"""A program that edits a tree and publishes it, again and again, until it is killed.

Usage: ``python publish_forever.py TREE SEED POLICY``
"""

import random
import sys
from pathlib import Path

from msgspec.structs import asdict

from resourcesync.adapters.files import FileSelection, FileTreeOriginals
from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.adapters.system import SystemClock
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.source import naming
from resourcesync.source.publication_settings import ChangeLists, Policy, PublicationSettings
from resourcesync.source.publisher import ListPublisher, OpenSource, Publication
from resourcesync.source.scan_for_changes import scan

BASE = "https://h.example/data/"
SELECTION = FileSelection(skip=frozenset({"resourcesync"}), is_own=naming.is_sitemap)


POLICIES = {
    "default": Policy(),
    "ages": Policy(rotate=0.05, keep=0.1, rebase_every=0.15, archive=0.5, sitemap=True),
    "per-run": Policy(change_lists=ChangeLists.PER_RUN, rebase_every=0.2),
    "archive": Policy(change_lists=ChangeLists.ARCHIVE, keep=0.1, archive=0.5),
}
"""Ages of a fraction of a second, so that all that is done once a day is done in every run."""


def publish(tree: Path, policy: str = "default") -> Publication:
    clock = SystemClock()
    with SourceCatalogue(tree / ".resourcesync/catalogue.db", clock) as catalogue:
        originals = FileTreeOriginals(tree, BASE, clock=clock, selection=SELECTION)
        scan(originals, catalogue, clock.now())
        documents, values = FolderDocuments(tree), {**asdict(POLICIES[policy]), "max_entries": 4}
        settings = PublicationSettings(url=BASE, **values)
        source = OpenSource(
            catalogue=catalogue, documents=documents, settings=settings, clock=clock
        )
        return ListPublisher(source).publish()


def main() -> None:
    tree, chance = Path(sys.argv[1]), random.Random(sys.argv[2])
    while True:
        for _ in range(chance.randrange(6)):
            path = tree / f"{chance.randrange(20)}"
            if chance.random() < 0.3:
                path.unlink(missing_ok=True)
            else:
                path.write_text(f"{chance.random()}")
        publish(tree, sys.argv[3])
        print(".", end="", flush=True)


if __name__ == "__main__":
    main()
