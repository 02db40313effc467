"""Suites of checks, tried with adapters that break one promise each."""

from unittest import SkipTest

from resourcesync.errors import ResourceSyncError


def checks_of(suite: type) -> set[str]:
    """Return the names of a suite's checks."""
    return {name for name in dir(suite) if name.startswith("test_")}


def finds(suite: object, check: str, port: object) -> bool:
    """Whether a check of a suite finds something wrong with an adapter."""
    try:
        getattr(suite, check)(port)
    except SkipTest:
        return False
    except (AssertionError, ResourceSyncError):
        return True
    return False
