"""How the checks read: a stream to its end, and again and again while others write."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import BinaryIO, Final

from resourcesync.model.digests import Digest

_TIMEOUT: Final = 60.0
_POLL_INTERVAL: Final = 0.0005


@contextmanager
def run_repeatedly(check: Callable[[], object]) -> Iterator[None]:
    """Call ``check`` repeatedly in another thread while the block runs; raise what it raises."""
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


def read_rest(stream: BinaryIO | None) -> bytes | None:
    """Read a stream to its end, and close it; ``None`` if that is not possible any more."""
    try:
        return read_and_close(stream)
    except Exception:  # noqa: BLE001 - a store may raise anything
        return None


def digests_of(body: bytes) -> tuple[Digest, Digest]:
    return (
        Digest("sha-256", hashlib.sha256(body).hexdigest()),
        Digest("md5", hashlib.md5(body, usedforsecurity=False).hexdigest()),
    )
