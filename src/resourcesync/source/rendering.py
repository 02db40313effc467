"""Give the bytes of entries, or name the one that has none."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from resourcesync.errors import StateError
from resourcesync.ports.catalogue import BAD_ROW

T = TypeVar("T")

_BAD = (ValueError, TypeError, AttributeError, ArithmeticError)


def render_checked(render: Callable[[Sequence[Any]], T], entries: Sequence[Any]) -> T:
    """Return what ``render`` makes of some entries.

    Programs may post to a catalogue what no document can say, such as a link without a target.

    Raises:
        StateError: One of them cannot be published.
    """
    try:
        return render(entries)
    except _BAD:
        for entry in entries:
            _check(render, entry)
        raise


def _check(render: Callable[[Sequence[Any]], T], entry: Any) -> None:
    try:
        render([entry])
    except _BAD as error:
        raise StateError(
            f"the catalogue says of {entry.uri!r:.300} what cannot be published: {error!s:.300}",
            evidence=(("kept", "what was published before"),),
            code=BAD_ROW,
        ) from error
