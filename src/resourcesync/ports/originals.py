"""Originals that are not files of a folder: what a plug-in for them is given, and gives."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from resourcesync.ports.catalogue import Original, Originals
from resourcesync.ports.contents import OriginalReader


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalsOptions:
    """What originals are opened with.

    Attributes:
        address: Where they are, as the operator wrote it: ``SCHEME:`` and more, no secret in it.
        base_uri: The address of the Source, ``publish --url``, with a slash at its end. What is
            at the address has this URI; the rest follows below it.
        algorithms: Digests to compute of each, the strongest first, such as ``sha-256``.
        values: What was given by ``--with KEY=VALUE``.
    """

    address: str
    base_uri: str
    algorithms: tuple[str, ...] = ("sha-256",)
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


class OpenOriginals(Originals, OriginalReader, Protocol):
    """Originals that can be listed and read.

    ``scan`` yields them in rising order of their URIs, which is rarely the order of a listing; and
    it yields none before all are listed, or raises when the listing breaks off.
    """


@runtime_checkable
class PrefetchingOriginals(Originals, Protocol):
    """Originals that are read sooner when it is known which are next; a plug-in need not."""

    def prefetch(self, originals: Sequence[Original]) -> None:
        """Begin to read these, at most 64: each is measured next, in this order."""
        ...


OriginalsFactory = Callable[[OriginalsOptions], AbstractContextManager[OpenOriginals]]
"""Opens originals; what it holds is given back when the ``with`` block ends."""
