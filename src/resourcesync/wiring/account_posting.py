"""What became of resources, told to another system line by line: it is filled, not we."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from resourcesync.adapters.catalogue import FileCatalogue, PostedCatalogue
from resourcesync.errors import ConfigurationError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.accounts import AccountOptions, ResourceAccount, WritableAccount
from resourcesync.ports.catalogue import Posted
from resourcesync.wiring import catalogues
from resourcesync.wiring.account_opening import open_account
from resourcesync.wiring.account_values import check_account_address, resolve_values
from resourcesync.wiring.exploring import open_fetcher
from resourcesync.wiring.mirrors import Network


def post_to_account(
    address: str, values: Mapping[str, str], lines: str, *, clock: Clock
) -> Iterator[Posted]:
    """Tell another system the changes that are told line by line; yield what each lot did.

    Args:
        address: The other system.
        values: What its adapter is told: ``KEY=VALUE``, with ``env:NAME`` and ``file:PATH``.
        lines: A file, or ``-`` for standard input.
        clock: Time.

    Raises:
        ConfigurationError: The system takes no changes, or a value cannot work.
        DocumentError: A line says no change. What was yielded is posted, nothing else.
        SourceError: The other system does not answer, or refuses; some of the lot may be posted,
            and to post it again is right.
    """
    with (
        catalogues.read_change_lines(lines) as batches,
        _writable(address, values, clock) as account,
    ):
        for batch in batches:
            yield account.post(batch)


def import_into_account(
    address: str,
    values: Mapping[str, str],
    lines: str,
    *,
    clock: Clock,
    is_all: bool = True,
    allow_empty: bool = False,
) -> Posted:
    """Let another system have the resources that are told line by line, by posting what differs.

    Args:
        address: The other system; it is made ready when it is new.
        values: As for ``post_to_account``.
        lines: A file, or ``-`` for standard input.
        clock: Time.
        is_all: Whether known resources that are not told are gone.
        allow_empty: Whether all are gone when there is no line.

    Raises:
        ConfigurationError: As ``post_to_account`` says; or there are no lines.
        DocumentError: A line says no resource. Nothing was posted.
        SourceError: As ``post_to_account`` says.
        StorageError: The lines cannot be read, or there is no room to compare them.
    """
    is_enough = allow_empty or not is_all
    with (
        catalogues.read_resource_lines(lines, allow_empty=is_enough) as told,
        _writable(address, values, clock) as account,
        tempfile.TemporaryDirectory(prefix="resourcesync-") as folder,
    ):
        account.post(())
        path = Path(folder, "catalogue.db")
        with PostedCatalogue(path) as catalogue:
            catalogue.fill(account.resources(), clock.now())
            catalogue.fill(told, clock.now(), is_all=is_all)
        with closing(FileCatalogue(path, clock)) as known, known.snapshot() as snapshot:
            differing = map(_change, snapshot.edits())
            return _total(map(account.post, _change_batches(differing)))


class _ReadWriteAccount(ResourceAccount, WritableAccount, Protocol):
    """An account that tells and takes."""


@contextmanager
def _writable(address: str, values: Mapping[str, str], clock: Clock) -> Iterator[_ReadWriteAccount]:
    check_account_address(address)
    with tempfile.TemporaryDirectory(prefix="resourcesync-") as memory:
        options = AccountOptions(
            address=address,
            base_uri="",
            values=resolve_values(values),
            memory=memory,
            out=memory,
            clock=clock,
            fetcher=partial(open_fetcher, network=Network(), clock=clock),
        )
        with open_account(options) as account:
            if not isinstance(account, WritableAccount):
                raise ConfigurationError(
                    f"{address} tells of resources, and takes nothing",
                    hint="resourcesync publish follows it",
                )
            yield account


def _change(edit: tuple[str, Resource | None]) -> Change:
    """Return what became of a resource; whoever takes it knows whether it is new."""
    uri, resource = edit
    if resource is None:
        return Change(kind=ChangeKind.DELETED, resource=Resource(uri=uri))
    return Change(kind=ChangeKind.UPDATED, resource=resource)


def _change_batches(changes: Iterable[Change]) -> Iterator[list[Change]]:
    rest = iter(changes)
    while some := list(islice(rest, catalogues.BATCH)):
        yield some


def _total(done: Iterable[Posted]) -> Posted:
    every = list(done)
    return Posted(**{it.name: sum(getattr(one, it.name) for one in every) for it in fields(Posted)})
