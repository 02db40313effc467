"""Access to what is validated: files and folders of this machine, and Sources in the network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import BinaryIO

from resourcesync.adapters.local_documents import LocalDocuments, find_documents
from resourcesync.app.document_access import is_web_address, network_documents, no_such_file_error
from resourcesync.app.requests import open_fetcher
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from resourcesync.validator.crawl import OpenedTarget
from resourcesync.validator.events import ValidationOptions
from resourcesync.validator.validation import Validator


def new_validator(
    options: ValidationOptions, *, network: Network, cancel: CancelToken
) -> Validator:
    """Return a validator."""
    random = Random()  # noqa: S311 - samples, no secret
    access = TargetFiles(network, cancel)
    return Validator(options, access=access, random=random)


class TargetFiles:
    """Access to targets (``TargetAccess``)."""

    def __init__(self, network: Network, cancel: CancelToken) -> None:
        self._network = network
        self._cancel = cancel

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """Further origins that a Source may have its documents at."""
        return self._network.allow_origins

    @contextmanager
    def open(self, target: str) -> Iterator[OpenedTarget]:
        """Open a target."""
        if is_web_address(target):
            with open_fetcher(target, self._network, self._cancel) as fetcher:
                documents = network_documents(fetcher)
                yield OpenedTarget(documents, target, lambda _uri, _place: False, fetcher)
            return
        path = Path(target)
        if not path.exists():
            raise no_such_file_error(target)
        local = LocalDocuments(path)
        yield OpenedTarget(local, local.first(), local.is_same)

    def is_folder(self, target: str) -> bool:
        """True if a target is a folder of this machine."""
        return not is_web_address(target) and Path(target).is_dir()

    def documents_in(self, target: str, most: int) -> list[str]:
        """Return the documents and packages in a folder; none for other targets."""
        return find_documents(Path(target), most) if self.is_folder(target) else []

    def identity(self, place: str) -> str:
        """Return a text that is the same for two names of one file."""
        return str(Path(place).resolve())

    def temporary_file(self) -> BinaryIO:
        """Return a nameless temporary file."""
        return TemporaryFile()
