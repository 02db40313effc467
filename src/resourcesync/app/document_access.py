"""Access to the documents of a Source: at an address, or in a folder or file of this machine."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from resourcesync.adapters.offline_documents import LocalDocuments
from resourcesync.adapters.system import SystemClock
from resourcesync.app.fetchers import open_fetcher
from resourcesync.discovery.document_fetcher import DocumentFetcher, DocumentProvider
from resourcesync.discovery.search import Search
from resourcesync.discovery.tree import MAX_DEPTH, PartsTotal, SourceNode, SourceTree
from resourcesync.discovery.uris import with_likely_scheme
from resourcesync.errors import ConfigurationError, Evidence
from resourcesync.ports import CancelToken, Fetcher
from resourcesync.settings.mirror import Network

_ONE_SLASH: Final = re.compile(r"(https?):/(?!/)")
_ENDINGS: Final = (".xml", ".gz", ".zip", ".tar", ".tgz", ".xz", ".txz")


def is_web_address(target: str) -> bool:
    """True if a target is an address of the network, not a path of this machine."""
    return "://" in target


def network_documents(fetcher: Fetcher) -> DocumentFetcher:
    """Return the provider of documents through a fetcher, by way of nameless temporary files."""
    return DocumentFetcher(fetcher, tempfile.TemporaryFile)


def likely_address(text: str) -> str:
    """Return the address that a text without a scheme stands for."""
    scheme = _ONE_SLASH.match(text)
    if scheme is not None:
        return f"{scheme[1]}://{text[scheme.end() :]}"
    return with_likely_scheme(text) or f"https://{text}"


def no_such_file_error(target: str) -> ConfigurationError:
    """Return the error for a target that is neither a file nor a whole address."""
    host, slash, _ = target.partition("/")
    is_file = not slash and host.lower().endswith(_ENDINGS)
    looks_like_host = "." in host.strip(".") and not is_file
    whole = likely_address(target) if looks_like_host else "https://HOST/"
    file = "" if looks_like_host else "check the path; "
    return ConfigurationError(
        f"no such file or folder: {target}",
        hint=f"{file}for a Source, write its whole address: {whole}",
    )


@contextmanager
def open_documents(
    target: str, network: Network, cancel: CancelToken
) -> Iterator[tuple[DocumentProvider, str, Fetcher | None]]:
    """Open the documents of a target; yield them, the address to begin at, and any fetcher."""
    if is_web_address(target):
        with open_fetcher(target, network, cancel) as fetcher:
            yield network_documents(fetcher), target, fetcher
    else:
        path = Path(target)
        if not path.exists():
            raise no_such_file_error(target)
        local = LocalDocuments(path)
        yield local, local.first(), None


def explore(
    target: str, *, network: Network, cancel: CancelToken, depth: int = MAX_DEPTH
) -> Iterator[SourceNode | PartsTotal]:
    """Yield the documents of a Source, each before those that it lists."""
    with open_documents(target, network, cancel) as (documents, first, _):
        yield from SourceTree(documents, depth=depth, allowed=network.allow_origins).walk(first)


def search(address: str, network: Network) -> tuple[tuple[str, str], Evidence]:
    """Return the first document that a search finds, how it was found, and what else was tried."""
    with open_documents(address, network, CancelToken(SystemClock())) as (documents, first, _):
        tries = Search[str](documents, network.allow_origins)
        found = tries.find(first, lambda _, fetched: fetched.final_uri)
        return (found, tries.found_by or "its address"), tries.evidence()
