"""A single direct request to a server: reachability, certificate, and clock.

Only ``robots.txt`` is requested, which is open to everyone. No secret is sent, no redirect is
followed.
"""

import socket
import ssl
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.ports.validators_and_dates import parse_http_date

_SECONDS: Final = 10.0
_HEADERS: Final = {"User-Agent": "resourcesync-doctor", "Connection": "close"}


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a probe; ``failure`` is why there was no response."""

    failure: str = ""
    is_tls_failure: bool = False  # the certificate, or TLS itself
    date: datetime | None = None  # that of the response, UTC
    tls: str = ""  # its version; empty for none
    expires: datetime | None = None  # the end of the server's certificate, UTC


def probe(origin: str, *, ca_file: str = "") -> Probe:
    """Request an origin's ``robots.txt``, within ten seconds for each step."""
    try:
        with closing(_connection(origin, ca_file)) as connection:
            connection.connect()
            tls, expires = _certificate(connection.sock)
            connection.request("GET", "/robots.txt", headers=_HEADERS)
            answer = connection.getresponse()
            return Probe(
                date=parse_http_date(answer.getheader("Date", "")), tls=tls, expires=expires
            )
    except ssl.SSLCertVerificationError as error:
        return Probe(failure=error.verify_message.rstrip("."), is_tls_failure=True)
    except ssl.SSLError as error:
        return Probe(failure=f"TLS fails: {error.reason or error}", is_tls_failure=True)
    except TimeoutError:
        return Probe(failure=f"no answer within {_SECONDS:g} s")
    except socket.gaierror as error:
        return Probe(failure=f"cannot resolve its name: {error.strerror}")
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        return Probe(failure=str(reason)[:300])


def _connection(origin: str, ca_file: str) -> HTTPConnection:
    parts = urlsplit(origin)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port, timeout=_SECONDS)
    context = ssl.create_default_context(cafile=ca_file or None)
    return HTTPSConnection(host, parts.port, timeout=_SECONDS, context=context)


def _certificate(connection: Any) -> tuple[str, datetime | None]:
    if not isinstance(connection, ssl.SSLSocket):
        return "", None
    found: Mapping[str, Any] = connection.getpeercert() or {}
    ends = found.get("notAfter")
    seconds = None if ends is None else ssl.cert_time_to_seconds(str(ends))
    expires = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return connection.version() or "TLS", expires
