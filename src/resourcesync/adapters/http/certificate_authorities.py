"""The file of trusted certificate authorities."""

import os
import stat
from pathlib import Path
from typing import Final

from resourcesync.errors import ConfigurationError

MOST_BYTES: Final = 16 * 1024 * 1024

_SYSTEM: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/usr/local/etc/ssl/cert.pem",
)


def system_authorities() -> str:
    """Return the file of the system's authorities, empty for libcurl's default."""
    return next((path for path in _SYSTEM if Path(path).is_file()), "")


def check_authorities(ca_file: str) -> None:
    """Refuse an invalid file of authorities; an empty name means no file."""
    reason = _fault(ca_file)
    if reason:
        raise ConfigurationError(
            f"cannot use the CA file {ca_file}: {reason}",
            evidence=(("file", ca_file),),
            hint="name a file of certificates (PEM) by SSL_CERT_FILE, or by -o ca_file=FILE",
        )


def _fault(ca_file: str) -> str:
    """Return why a file of authorities is invalid; empty if it is valid, or for no file."""
    if not ca_file:
        return ""
    import ssl  # noqa: PLC0415 - most runs use the system's authorities, which need no look

    try:
        info = os.stat(ca_file)  # noqa: PTH116 - a name with a zero byte is told below
        if not stat.S_ISREG(info.st_mode):
            return "it is not a regular file"
        if info.st_size > MOST_BYTES:
            return f"it has more than {MOST_BYTES} bytes"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(ca_file)
    except ssl.SSLError:
        return "it is not a PEM file of certificates"
    except OSError as error:
        return error.strerror or str(error)
    except ValueError:
        return "it is no name of a file"
    return "" if context.cert_store_stats()["x509"] else "it has no certificate"
