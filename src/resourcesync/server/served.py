"""What one application serves: a tree, its documents, and what is said of them."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resourcesync.errors import ConfigurationError
from resourcesync.server.pages import Overview
from resourcesync.server.paths import Names, is_hidden

_LINKABLE: Final = re.compile(r"https?://[!#-;=?-Z_a-z~%\[\]@]+")


def _is_anything(path: str) -> bool:
    del path
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSource:
    """What one application serves.

    Attributes:
        root: The tree of the resources.
        documents: The folder of the ResourceSync documents, its own; ``None`` means
            ``resourcesync`` in ``root``. Outside ``root`` it is served under its own name.
        well_known: The Source Description; ``None`` means ``.well-known/resourcesync`` in ``root``.
        is_published: Tells of a path in the tree, as ``media_type`` gets it, whether the file there
            is published; what is not is absent.
        capability_list_uri: Absolute URI for the ``Link`` field and the page (§6.3.3): what the
            operator says, never what a request says.
        file_at: Gives the path in the tree of what is asked for, where resources are not under the
            paths of their files: of a request's path and query, as they came, without the first
            slash. ``None`` when nothing is there.
        media_type: Gives the media type for a path in the tree (with ``/``, undecodable bytes as
            surrogates); empty when it has none.
        overview: Gives what the page at the top tells; called in a thread. ``None``: nothing.

    Raises:
        ConfigurationError: The URI cannot stand in a header, or ``documents`` is ``root`` itself.
    """

    root: Path
    capability_list_uri: str
    media_type: Callable[[str], str]
    documents: Path | None = None
    well_known: Path | None = None
    is_published: Callable[[str], bool] = _is_anything
    file_at: Callable[[str], str | None] | None = None
    overview: Callable[[], Overview] | None = None

    def __post_init__(self) -> None:
        if _LINKABLE.fullmatch(self.capability_list_uri) is None:
            raise ConfigurationError(
                "the address of the Capability List is no absolute HTTP URI",
                evidence=(("got", repr(self.capability_list_uri)),),
            )
        if not self.documents_names:
            raise ConfigurationError("the ResourceSync documents need a folder of their own")

    @property
    def documents_folder(self) -> Path:
        """The folder of the documents."""
        return self.documents or self.root / "resourcesync"

    @property
    def documents_names(self) -> Names:
        """The path of the documents' folder in the application, as names."""
        folder, root = self.documents_folder.absolute(), self.root.absolute()
        inside = folder.relative_to(root) if folder.is_relative_to(root) else Path(folder.name)
        names = tuple(os.fsencode(part) for part in inside.parts)
        return names[-1:] if is_hidden(names) else names

    @property
    def has_documents_inside(self) -> bool:
        """Whether the folder of documents would be served as a part of the tree, too."""
        inside = Path(os.fsdecode(b"/".join(self.documents_names)))
        return self.root.absolute() / inside == self.documents_folder.absolute()

    @property
    def description(self) -> Path:
        """The file of the Source Description."""
        return self.well_known or self.root / ".well-known" / "resourcesync"
