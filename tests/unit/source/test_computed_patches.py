"""Patches that a Source computes: believed only when they lead to the very bytes (§14.4)."""

import io
from collections.abc import Callable
from typing import BinaryIO

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.ports.patches import PatchComputer, PatchFormat, PatchMaker
from resourcesync.source.versions.versions_and_patches import PatchGenerator

KIND = "application/x-acme-delta"
OLD, NEW = b"one old version" * 9, b"one new version" * 9


def swap(previous: BinaryIO, current: BinaryIO, patch: BinaryIO, limit: int) -> None:
    patch.write(b"old>new")


def apply_swap(previous: BinaryIO, patch: BinaryIO, result: BinaryIO, limit: int) -> None:
    old, new = patch.read().split(b">")
    result.write(previous.read().replace(old, new))


def write(data: bytes) -> PatchComputer:
    def compute(previous: BinaryIO, current: BinaryIO, patch: BinaryIO, limit: int) -> None:
        patch.write(data)

    return compute


def fail(*_: object) -> None:
    raise RuntimeError("no luck today")


def patches(
    compute: Callable[..., None], apply: Callable[..., None] = apply_swap, most: int | None = None
) -> PatchGenerator:
    maker = PatchMaker(
        media_type=KIND,
        load=lambda: compute,
        supports=lambda kind: kind == "text/plain",
        largest=most,
    )
    return PatchGenerator(lambda: [maker], lambda: {KIND: PatchFormat(load=lambda: apply)})


def between(computing: PatchGenerator, media_type: str = "text/plain") -> tuple[str, bytes] | None:
    found = computing.compute(
        io.BytesIO(OLD), io.BytesIO(NEW), media_type=media_type, largest=len(OLD), length=len(NEW)
    )
    if found is None:
        return None
    with found[1] as patch:
        return found[0], patch.read()


def refuse() -> Callable[..., None]:
    raise ConfigurationError("it cannot be imported")


@pytest.mark.parametrize(
    "computing",
    [
        patches(fail),
        patches(swap, fail),
        patches(write(b"old>bad")),
        patches(write(b"old>other")),
        patches(write(b"old>new and far more")),
        patches(write(b"old>new" + b" " * len(NEW))),
        patches(write(b"")),
        patches(swap, most=len(OLD) - 1),
        PatchGenerator(list, dict),
        PatchGenerator(lambda: [PatchMaker(media_type=KIND, load=refuse, supports=bool)], dict),
        PatchGenerator(
            lambda: [PatchMaker(media_type=KIND, load=refuse, supports=bool)],
            lambda: {KIND: PatchFormat(load=lambda: apply_swap)},
        ),
    ],
)
def test_what_fails_or_is_wrong_or_large_is_no_patch(computing: PatchGenerator) -> None:
    assert between(computing) is None


def test_the_next_format_is_asked_when_the_first_has_no_patch() -> None:
    def maker(compute: PatchComputer) -> PatchMaker:
        return PatchMaker(media_type=KIND, load=lambda: compute, supports=bool)

    makers = [maker(fail), maker(swap)]
    computing = PatchGenerator(lambda: makers, lambda: {KIND: PatchFormat(load=lambda: apply_swap)})

    assert between(computing) == (KIND, b"old>new")
