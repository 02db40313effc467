"""Assertions of the checks of all suites, each with the promise it proves."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import TracebackType
from typing import BinaryIO, Final, Self

_MAX_SHOWN: Final = 500
_TIMEOUT: Final = 60.0
_POLL_INTERVAL: Final = 0.0005


def expect(fact: object, promise: str) -> None:
    """Fail with the promise that was broken, unless ``fact`` is true."""
    if not fact:
        raise AssertionError(f"not kept: {promise}")


def expect_equal(found: object, expected: object, promise: str) -> None:
    """Fail with the promise and both values, unless they are equal."""
    if found != expected:
        raise AssertionError(
            f"not kept: {promise}\n  expected: {_short(expected)}\n  found:    {_short(found)}"
        )


class ExpectedError:
    """A block that must raise one of ``kinds``; see ``expect_error``.

    Attributes:
        message: The message of the error, its evidence included; empty until then.
    """

    def __init__(self, kinds: type[Exception] | tuple[type[Exception], ...], promise: str) -> None:
        self._kinds = kinds
        self._promise = promise
        self.message = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            raise AssertionError(f"not kept: {self._promise}\n  nothing was raised")
        self.message = f"{error} {getattr(error, 'evidence', '')}"
        return isinstance(error, self._kinds)


def expect_error(
    kinds: type[Exception] | tuple[type[Exception], ...], promise: str
) -> ExpectedError:
    """Fail unless the block raises one of ``kinds``; other errors propagate."""
    return ExpectedError(kinds, promise)


@contextmanager
def run_repeatedly(check: Callable[[], object]) -> Iterator[None]:
    """Call ``check`` again and again in another thread while the block runs; raise what it raises.

    It is called once before the block begins.
    """
    done, checked = Event(), Event()
    failures: list[BaseException] = []

    def repeat() -> None:
        try:
            check()
            checked.set()
            while not done.wait(
                _POLL_INTERVAL
            ):  # else it would keep the other thread from going on
                check()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for it
            failures.append(error)
        finally:
            checked.set()

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        checked.wait(_TIMEOUT)
        yield
    finally:
        done.set()
        thread.join(_TIMEOUT)
    if failures:
        raise failures[0]


def read_and_close(stream: BinaryIO | None) -> bytes | None:
    """Read a stream to its end, and close it; ``None`` without one."""
    if stream is None:
        return None
    with stream:
        return stream.read()


def _short(value: object) -> str:
    shown = repr(value)
    return (
        shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}… ({len(shown):,} characters)"
    )
