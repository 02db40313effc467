"""The library's face, and the one place that names adapters: settings go in, objects come out.

``resourcesync`` exports its public names; import them there. Commands take the modules from here,
such as ``app.mirror``: each is imported at its first use, so that help stays quick.
"""

from typing import TYPE_CHECKING

from resourcesync import export_lazily

if TYPE_CHECKING:
    from resourcesync.adapters import store_documents, system
    from resourcesync.app import (
        diagnosis,
        document_access,
        fetchers,
        mirror,
        mirror_changes,
        mirror_home,
        mirror_sets,
        mirror_stores,
        mirror_trash,
        mirror_workers,
        plugins,
        publisher,
        stored_names,
        validation,
    )
    from resourcesync.app.publishing import accounts, catalogues, inputs, trees
    from resourcesync.app.serving import applications, hubs, site

__all__ = [
    "accounts",
    "applications",
    "catalogues",
    "diagnosis",
    "document_access",
    "fetchers",
    "hubs",
    "inputs",
    "mirror",
    "mirror_changes",
    "mirror_home",
    "mirror_sets",
    "mirror_stores",
    "mirror_trash",
    "mirror_workers",
    "plugins",
    "publisher",
    "site",
    "store_documents",
    "stored_names",
    "system",
    "trees",
    "validation",
]
_FOLDERS = {
    **dict.fromkeys(("accounts", "catalogues", "inputs", "trees"), "app.publishing"),
    **dict.fromkeys(("applications", "hubs", "site"), "app.serving"),
    **dict.fromkeys(("store_documents", "system"), "adapters"),
}

__getattr__, __dir__ = export_lazily(
    __name__, {name: f"{_FOLDERS.get(name, 'app')}.{name}:" for name in __all__}
)
