"""A place to work in, as the tests of the command line have it."""

from tests.cli.conftest import here, said, source, tree

__all__ = ["here", "said", "source", "tree"]
