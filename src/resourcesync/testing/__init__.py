"""Suites of checks for plug-ins: one for each port; every adapter of this package passes them.

A suite is a class of plain test methods. Derive a class from it whose name begins with ``Test``,
give it the pytest fixture that its docstring names, and run pytest. See
``docs/how-to/write-a-plug-in.md``. The suites import nothing that the package itself does not need,
not even pytest, and nothing of the package imports them.
"""

from resourcesync.testing.accounts import AccountSuite
from resourcesync.testing.catalogues import CatalogueSuite
from resourcesync.testing.copies import CopiesSuite
from resourcesync.testing.documents import DocumentStoreSuite
from resourcesync.testing.originals import OriginalsSuite
from resourcesync.testing.stores import StoreSuite

__all__ = [
    "AccountSuite",
    "CatalogueSuite",
    "CopiesSuite",
    "DocumentStoreSuite",
    "OriginalsSuite",
    "StoreSuite",
]
