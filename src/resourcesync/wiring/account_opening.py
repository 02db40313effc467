"""Opens another system as an account, by the plug-in that its address names."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount
from resourcesync.wiring import plugins

if TYPE_CHECKING:
    from resourcesync.ports.accounts import AccountFactory


@contextmanager
def open_account(options: AccountOptions) -> Iterator[ResourceAccount]:
    """Open an account.

    Raises:
        ConfigurationError: No plug-in is for its address, or it cannot be used.
    """
    scheme = options.address.partition(":")[0]
    factory: AccountFactory = plugins.load(plugins.ACCOUNTS, scheme)
    try:
        manager = factory(options)
        account = manager.__enter__()
    except ResourceSyncError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"the plug-in for {scheme}: cannot be used",
            evidence=(("got", f"{type(error).__name__}: {error}"[:500]),),
            hint="resourcesync plugins says which package brings it",
            code="bad-plugin",
        ) from error
    try:
        yield account
    finally:
        manager.__exit__(None, None, None)


@contextmanager
def closing_changes(lots: Iterator[ChangeBatch]) -> Iterator[Iterator[ChangeBatch]]:
    """Close an iterator when the block ends: it may hold a connection."""
    try:
        yield lots
    finally:
        if isinstance(lots, Generator):
            lots.close()
