"""Clients that others wrote, as far as they are installed."""

import importlib.util
import sys

import pytest

needs_resync = pytest.mark.skipif(
    sys.version_info >= (3, 12) or importlib.util.find_spec("resync") is None,
    reason="resync 2.0.1 is not installed, or not for this Python: 3.11 at most",
)
