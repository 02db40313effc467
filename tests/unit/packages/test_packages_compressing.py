"""What is compressed and what goes in as it is: a matter of size, never of bytes."""

import base64
import random
import struct
import zlib

import pytest

from resourcesync.documents.packages.zip_directory import DEFLATED, STORED
from resourcesync.documents.packages.zip_writer import Deflater, compress_short, is_noise

LUCK = random.Random(7)
NOISE = LUCK.randbytes(300_000)
TEXT = "Ein Bild von großer Größe, 1913. ".encode() * 9_000
TELLING = {
    "ascii": b"the catalogue says so. " * 40,
    "base64": base64.b64encode(NOISE[:3_000]),
    "latin": TEXT[:4_000],
    "cyrillic": "Каталог говорит, что это картина. ".encode() * 30,
    "chinese": "目录上写着这是一幅一九一三年的画。".encode() * 30,
    "utf-16": ("a museum of the world " * 60).encode("utf-16"),
    "ramp": bytes(range(256)) * 16,
    "zeros": bytes(5_000),
    "integers": struct.pack("<1000I", *(LUCK.randrange(70_000) for _ in range(1_000))),
    "mostly noise": NOISE[:8_192] + bytes(4_096) + NOISE[:8_192],
}


def inflated(data: bytes) -> bytes:
    inflater = zlib.decompressobj(-15)
    return inflater.decompress(data) + inflater.flush()


@pytest.mark.parametrize("name", TELLING)
def test_what_can_be_compressed_is(name: str) -> None:
    data = TELLING[name]
    method, body = compress_short(data, compact=False)

    assert not is_noise(data)
    assert method == DEFLATED
    assert inflated(body) == data
    assert len(body) < len(data)


def test_nearly_all_noise_is_seen_and_stored() -> None:
    samples = [LUCK.randbytes(LUCK.randrange(128, 9_000)) for _ in range(500)]

    assert sum(map(is_noise, samples)) > 480
    assert all(compress_short(sample, compact=False) == (STORED, sample) for sample in samples)


@pytest.mark.parametrize("size", range(0, 128, 9))
def test_what_is_short_is_tried(size: int) -> None:
    assert not is_noise(NOISE[:size])


@pytest.mark.parametrize("compact", [True, False])
def test_long_data_may_change_from_text_to_noise_and_back(compact: bool) -> None:
    pieces = [TEXT[:65_536], NOISE[:65_536], NOISE[65_536:131_072], TEXT[:65_536], TEXT[:10]]
    deflater = Deflater(compact=compact)
    data = b"".join([*map(deflater.compress, pieces), deflater.flush()])

    assert inflated(data) == b"".join(pieces)
    assert len(data) > 262_154 if compact else len(data) < 135_000
