"""The records of the ZIP format (APPNOTE 4.3), for writing and for reading."""

from struct import Struct
from typing import Final

LOCAL: Final = Struct("<4s5H3L2H")
"""Signature, version, flags, method, time, date, CRC, packed, size, bytes of name and extra."""
CENTRAL: Final = Struct("<4s6H3L5H2L")
"""Signature, made by, version, flags, method, time, date, CRC, packed, size, bytes of name, extra
and comment, disk, internal and external attributes, offset."""
END: Final = Struct("<4s4H2LH")
"""Signature, disk, disk of the directory, entries here, entries, bytes, offset, comment."""
END64: Final = Struct("<4sQ2H2L4Q")
"""Signature, bytes that follow, made by, version, disk, disk of the directory, entries here,
entries, bytes, offset."""
LOCATOR: Final = Struct("<4sLQL")
"""Signature, disk of the ZIP64 record, its offset, disks."""

LOCAL_MARK: Final = b"PK\3\4"
CENTRAL_MARK: Final = b"PK\1\2"
END_MARK: Final = b"PK\5\6"
END64_MARK: Final = b"PK\6\6"
LOCATOR_MARK: Final = b"PK\6\7"
DESCRIPTOR_MARK: Final = b"PK\7\x08"

FULL16: Final = 0xFFFF
FULL32: Final = 0xFFFFFFFF
"""A field that is full says: see the ZIP64 record."""
ZIP64: Final = 1
"""The extra field for what needs more than 32 bits."""
UNICODE_PATH: Final = 0x7075
"""The extra field of Info-ZIP that gives a member another name, for readers that know it."""

STORED: Final = 0
DEFLATED: Final = 8
ENCRYPTED: Final = 0x2041  # plain, strong, or with masked headers
DESCRIBED: Final = 0x8  # CRC and sizes follow the data
UTF8: Final = 0x800
