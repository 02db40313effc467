"""What is compressed and what goes in as it is: a matter of size, never of bytes."""

import base64
import io
import random
import struct
import zipfile

import pytest

from resourcesync.documents.packages.zip_writer import is_noise, write_package
from tests.support.documents.packages import RESOURCES, resource, unpack

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


def packed(data: bytes, media_type: str = "") -> zipfile.ZipInfo:
    """Pack one member and unpack it again; return how the package has it."""
    entry = resource("http://h/1", data, "/1", media_type)
    package = b"".join(write_package(RESOURCES, [entry], lambda _: (data,)))
    assert unpack(package).given == [("http://h/1", data)]
    with zipfile.ZipFile(io.BytesIO(package)) as peer:
        assert peer.testzip() is None
        return peer.getinfo("1")


@pytest.mark.parametrize("name", TELLING)
def test_what_can_be_compressed_is(name: str) -> None:
    data = TELLING[name]
    info = packed(data)

    assert not is_noise(data)
    assert info.compress_type == zipfile.ZIP_DEFLATED
    assert info.compress_size < len(data)


def test_nearly_all_noise_is_seen_and_stored() -> None:
    samples = [LUCK.randbytes(LUCK.randrange(128, 9_000)) for _ in range(500)]
    noise = list(filter(is_noise, samples))

    assert len(noise) > 480
    assert {packed(sample).compress_type for sample in noise} == {zipfile.ZIP_STORED}


@pytest.mark.parametrize("media_type", ["", "image/png"])
def test_a_long_member_that_begins_as_noise_goes_in_as_it_is(media_type: str) -> None:
    data = (TEXT if media_type else NOISE) + TEXT
    info = packed(data, media_type)

    assert info.compress_type == zipfile.ZIP_DEFLATED  # Java reads no stored data before its CRC
    assert len(data) < info.compress_size < len(data) * 1.001
