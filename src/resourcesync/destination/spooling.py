"""Resources and changes as bytes, for temporary files of our own: whole, compact and quick.

The bytes are for the process that wrote them. They are no format to keep.
"""

from typing import Final

import msgspec

from resourcesync.model.resources import Change, Resource

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_resource: Final = msgspec.msgpack.Decoder(Resource).decode
_decode_change: Final = msgspec.msgpack.Decoder(Change).decode


def dump_resource(resource: Resource) -> bytes:
    """Return a resource as bytes, its links and foreign attributes included."""
    return _encode(resource)


def load_resource(data: bytes) -> Resource:
    """Return the resource that ``dump_resource`` was given."""
    return _decode_resource(data)


def dump_change(change: Change) -> bytes:
    """Return a change as bytes, its resource included."""
    return _encode(change)


def load_change(data: bytes) -> Change:
    """Return the change that ``dump_change`` was given."""
    return _decode_change(data)
