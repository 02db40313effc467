"""libcurl's side: easy handles with their options, the loop, and sockets that policy forbids."""

import os
import socket
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any, Protocol

import pycurl

from resourcesync import __version__
from resourcesync.adapters.http.addresses import is_public
from resourcesync.adapters.http.origins import RequestState
from resourcesync.adapters.http.politeness import AGENT
from resourcesync.adapters.http.settings import (
    FetchSettings,
    connection_options,
    set_proxy,
    system_authorities,
)
from resourcesync.adapters.http.transfer import HttpTransfer
from resourcesync.ports import CancelToken

_HIGHEST_SELECTABLE = 1000
_BLIND_WAIT = 0.005
_IDLE_CONNECTIONS = 64
_SUPPRESS_CONNECT_HEADERS = 265  # CURLOPT_SUPPRESS_CONNECT_HEADERS, which PycURL does not name
_HTTP = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS


class _SocketAddress(Protocol):
    family: int
    socktype: int
    protocol: int
    addr: Any  # a tuple for the Internet families, bytes for any other


class CurlEngine:
    """A multi handle with its connections, driven by one ``fetch`` at a time."""

    def __init__(self, settings: FetchSettings, cancel: CancelToken) -> None:
        self._settings = settings
        self._clock = cancel.clock
        self.cancel = cancel
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        # By a proxy, all hosts are one host to libcurl; the queues limit each host.
        self._has_proxies = bool(settings.proxies.http or settings.proxies.https)
        most = settings.jobs if self._has_proxies else settings.per_host
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, most)
        self._multi.setopt(pycurl.M_MAXCONNECTS, settings.jobs + _IDLE_CONNECTIONS)
        self._idle: list[HttpTransfer] = []
        self._blind = False
        self._opened: list[socket.socket] = []
        self.active: dict[Any, HttpTransfer] = {}

    def start(
        self, errand: RequestState, headers: list[str], now: float, *, private: bool
    ) -> HttpTransfer:
        """Start a transfer. ``private`` allows addresses that are not public."""
        transfer = self._idle.pop() if self._idle else self._new_transfer()
        transfer.begin(errand, now)
        transfer.private = private
        curl = transfer.curl
        if self._has_proxies:
            self._set_proxy(transfer, errand.uri)
        curl.setopt(pycurl.URL, errand.uri)
        # Over TLS, wait until the origin's first connection says whether it takes many requests at
        # a time. Plain http never does: each would wait for the whole of the first answer, and by
        # a proxy, which is one host to libcurl, for that of any origin.
        is_secure = errand.uri[4] != ":"  # "https:" in any case, for no other address is accepted
        if transfer.is_secure is not is_secure:
            curl.setopt(pycurl.PIPEWAIT, int(is_secure))
            transfer.is_secure = is_secure
        message, is_head = errand.request.message, errand.request.is_head
        if message is not None:
            curl.setopt(pycurl.POSTFIELDS, message.body)
        elif is_head:
            curl.setopt(pycurl.NOBODY, 1)
        elif transfer.is_special:
            curl.setopt(pycurl.HTTPGET, 1)
        transfer.is_special = is_head or message is not None
        if transfer.headers is not headers:
            curl.setopt(pycurl.HTTPHEADER, headers)
            transfer.headers = headers
        self.active[curl] = transfer
        self._multi.add_handle(curl)
        return transfer

    def _set_proxy(self, transfer: HttpTransfer, uri: str) -> None:
        rules = self._settings.proxies
        proxy = rules.choose(uri)
        if transfer.proxy != proxy:
            set_proxy(transfer.curl, proxy, rules.secrets.get(proxy))
            transfer.proxy = proxy

    def poll(self) -> Iterator[HttpTransfer]:
        """Advance all transfers; yield those that ended, with their result; reusable after that."""
        self._multi.perform()
        while self._opened:
            self._opened.pop().close()  # PycURL made a descriptor of its own
        while True:
            queued, good, bad = self._multi.info_read(64)
            for curl, number, text in chain(zip(good, repeat(0), repeat("")), bad):
                transfer = self.active.pop(curl)
                self._multi.remove_handle(curl)
                self._idle.append(transfer)
                if transfer.crash is not None:
                    raise transfer.crash
                transfer.finish(number, text, self._clock)
                yield transfer
            if not queued:
                return

    def wait(self, seconds: float) -> None:
        """Wait until there is something to do, at most ``seconds``."""
        if not self.active:
            self.cancel.wait(seconds)
            return
        own = self._multi.timeout()
        if 0 <= own < seconds * 1000:
            seconds = own / 1000
        if self._blind:
            seconds = min(seconds, _BLIND_WAIT)
        started = self._clock.monotonic()
        if self._multi.select(seconds) or not seconds:
            return
        if self._clock.monotonic() - started < seconds / 2:  # libcurl has no socket to wait for
            self._clock.sleep(min(seconds, _BLIND_WAIT))

    def abort(self, transfer: HttpTransfer) -> None:
        """Abort a transfer; its connection is closed."""
        del self.active[transfer.curl]
        self._multi.remove_handle(transfer.curl)
        self._idle.append(transfer)

    def abort_all(self) -> None:
        """Abort all transfers; idle connections stay open."""
        for transfer in list(self.active.values()):
            self.abort(transfer)

    def close(self) -> None:
        """Abort all transfers and close all connections."""
        self.abort_all()
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()
        self._multi.close()

    def _new_transfer(self) -> HttpTransfer:
        curl = pycurl.Curl()
        transfer = HttpTransfer(curl, self._settings)
        for option, value in self._options():
            curl.setopt(option, value)
        if self._settings.ca_file:  # instead of the system's, not in addition to its folder
            curl.unsetopt(pycurl.CAPATH)
            curl.unsetopt(pycurl.PROXY_CAPATH)
        curl.setopt(pycurl.HEADERFUNCTION, transfer.lines.extend)
        curl.setopt(pycurl.WRITEFUNCTION, transfer.on_body)
        curl.setopt(
            pycurl.OPENSOCKETFUNCTION,
            lambda purpose, address: self._open_socket(transfer, purpose, address),
        )
        return transfer

    def _options(self) -> list[tuple[int, object]]:
        settings = self._settings
        contact = f" (+{settings.contact})" if settings.contact else ""
        options: list[tuple[int, object]] = [
            (pycurl.NOSIGNAL, 1),
            (pycurl.PROTOCOLS, _HTTP),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PATH_AS_IS, 1),
            (pycurl.NETRC, pycurl.NETRC_IGNORED),
            (_SUPPRESS_CONNECT_HEADERS, 1),
            (pycurl.USERAGENT, f"{AGENT}/{__version__}{contact}"),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
            (pycurl.BUFFERSIZE, 64 * 1024),
            (pycurl.CONNECTTIMEOUT_MS, int(settings.connect_timeout * 1000)),
            (pycurl.OPT_CERTINFO, 1),
            (pycurl.SSL_VERIFYPEER, 1),
            (pycurl.SSL_VERIFYHOST, 2),
            (pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2),
        ]
        options += connection_options()
        authorities = settings.ca_file or system_authorities()
        if settings.bandwidth:
            options.append((pycurl.MAX_RECV_SPEED_LARGE, settings.bandwidth))
        if authorities:
            file = os.fsencode(authorities)
            options += [(pycurl.CAINFO, file), (pycurl.PROXY_CAINFO, file)]
        return options

    def _open_socket(
        self, transfer: HttpTransfer, _purpose: int, address: _SocketAddress
    ) -> socket.socket | int:
        try:
            host = address.addr[0]
            is_free = transfer.private or transfer.proxy  # a proxy has a policy of its own
            if not is_free and not (isinstance(host, str) and is_public(host)):
                transfer.record_blocked(str(host))
                return int(pycurl.SOCKET_BAD)
            made = socket.socket(address.family, address.socktype, address.protocol)
        except OSError:
            return int(pycurl.SOCKET_BAD)
        if made.fileno() >= _HIGHEST_SELECTABLE:
            self._blind = True
        self._opened.append(made)
        return made
