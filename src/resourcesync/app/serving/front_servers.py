"""Configuration of nginx or Caddy in front of a published tree, or instead of ``serve``.

The web server sends the files; ``serve`` answers what is computed. Where a publication leaves files
out, or its resources are more than their files, all requests go to ``serve``.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.app.publishing.published_tree import files_by_address, published_settings
from resourcesync.app.serving.applications import MOUNT, PublishedTree, find_tree
from resourcesync.app.serving.push_channels import hubs_of
from resourcesync.documents.iiif.change_discovery import CONTEXT
from resourcesync.errors import ConfigurationError
from resourcesync.server.app import IMMUTABLE
from resourcesync.source import naming
from resourcesync.source.publication_options import version_options_of

_PORTS: Final = {"http": 80, "https": 443}
_PLAIN: Final = re.compile(r"""[^\x00-\x1f\x7f"'\\`${}]+""")
_HOST: Final = re.compile(r"[0-9A-Za-z.-]+|\[[0-9A-Fa-f:]+\]")
_NEVER_CHANGES: Final = IMMUTABLE.pattern.decode()
_HIDDEN: Final = r"(?:/\.|~(?:/|$))"
_DOCUMENTS: Final = r"^/(?:resourcesync/.+|resourcesync-sitemap(?:-[0-9]+)?)\.xml$"
_PACKAGES: Final = r"^/resourcesync/.+\.zip$"
_ACTIVITIES: Final = r"^/resourcesync/activities(?:-[0-9]+)?\.json$"
_ACTIVITY_TYPE: Final = f'application/ld+json;profile="{CONTEXT}"'
_FOREVER: Final = "max-age=31536000, immutable"


class FrontServer(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration of a web server in front of a published tree says.

    Attributes:
        root: The folder of the resources.
        out: The folder of the documents.
        base: The address that the tree was published for.
        backend: Host and port of ``serve``.
        hub: Path of the hub of our own server; empty for none.
        topics: Paths of the documents whose ``Link`` fields name a hub.
        is_static: True if the web server may send the files by itself.
        command: The command that runs ``serve``, for a comment.
    """

    root: Path
    out: Path
    base: str
    backend: str
    hub: str = ""
    topics: tuple[str, ...] = ()
    is_static: bool = True
    command: str = "the server of this package"

    def __post_init__(self) -> None:
        for text in (str(self.root), str(self.out), self.base, self.hub):
            if text and _PLAIN.fullmatch(text) is None:
                raise ConfigurationError(
                    f"{text!r} cannot be written in the configuration of a web server",
                    hint="use a name without quotes, backslashes, braces, dollars and controls",
                )
        if _HOST.fullmatch(self.host) is None:
            raise ConfigurationError(f"{self.base} has no host that a web server can listen for")

    @property
    def scheme(self) -> str:
        """Return ``http`` or ``https``."""
        return urlsplit(self.base).scheme

    @property
    def host(self) -> str:
        """Return the host of the address."""
        host = urlsplit(self.base).hostname or ""
        return f"[{host}]" if ":" in host else host

    @property
    def port(self) -> int:
        """Return the port of the address."""
        return urlsplit(self.base).port or _PORTS[self.scheme]

    @property
    def prefix(self) -> str:
        """Return the path of the address; ``/`` for a whole host."""
        return urlsplit(self.base).path

    @property
    def link(self) -> str:
        """Return the ``Link`` field of each resource (§6.3.3)."""
        return f'<{self.base}resourcesync/capabilitylist.xml>; rel=\\"resourcesync\\"'

    @property
    def computed(self) -> tuple[str, ...]:
        """Return the paths that only ``serve`` can answer."""
        hub = (self.hub,) if self.hub else ()
        return (f"{MOUNT}/", *self.topics, *hub)


def find_front(tree: Path, backend: str, out: Path | None = None) -> FrontServer:
    """Return the data of the configuration for a published tree.

    Args:
        tree: The tree.
        backend: Host and port of ``serve``.
        out: The folder of its documents, if another.

    Raises:
        ConfigurationError: The folder was not published, or a name cannot be written.
        DocumentError: Its Source Description cannot be read.
        StorageError: The same, because of the disk.
    """
    found = find_tree(tree.absolute(), None if out is None else out.absolute())
    prefix = urlsplit(found.base).path
    names = naming.SourceNaming(base_uri=found.base)
    hubs = hubs_of(found.root)
    hub = next((hub for hub in hubs if hub.startswith(found.base)), "")
    topics = (urlsplit(names.uri(name)).path for name in naming.CHANNELS.values()) if hubs else ()
    return FrontServer(
        root=found.root,
        out=found.out,
        base=found.base,
        backend=backend,
        hub=urlsplit(hub).path,
        topics=tuple(topics),
        is_static=prefix == "/" and _consists_of_files(found),
    )


def _consists_of_files(tree: PublishedTree) -> bool:
    """True if each file of the tree is published, and answers no more than its bytes."""
    if tree.out.is_relative_to(tree.root / ".resourcesync"):
        return False  # of a mirror, only the copies are published
    settings = published_settings(tree.root)
    return (
        files_by_address(tree.root) is None
        and not (settings.include or settings.exclude)
        and not version_options_of(settings).is_public
    )


_INTRODUCTION: Final = """\
# {name} sends the files of {front.root}.
# What is computed comes from this program; without it those paths are 502:
#   {front.command}
"""
_NOT_STATIC: Final = """\
# This publication leaves files out, has old versions, is a mirror, or is below a path: {name}
# passes all requests on to this program, which answers them as it was published:
#   {front.command}
"""


def _introduction(name: str, front: FrontServer) -> str:
    text = _INTRODUCTION if front.is_static else _NOT_STATIC
    return text.format(name=name, front=front)


_NGINX_PROXY: Final = """\
        proxy_pass http://resourcesync_serve;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_buffering off;  # events are sent at once
        proxy_read_timeout 1h;
"""
_WORDS: Final = {
    "documents": _DOCUMENTS,
    "forever": _FOREVER,
    "hidden": _HIDDEN,
    "never_changes": _NEVER_CHANGES,
    "packages": _PACKAGES,
    "activities": _ACTIVITIES,
    "activity_type": _ACTIVITY_TYPE,
    "proxy": _NGINX_PROXY,
}
"""What the templates below have in common."""


def nginx(front: FrontServer) -> str:
    """Return the configuration of nginx: a file for ``/etc/nginx/conf.d``."""
    secure = front.scheme == "https"
    listening = "".join(
        f"    listen {address}{front.port}{' ssl' * secure};\n"
        for address in _addresses(front.host)
    )
    return (
        "# /etc/nginx/conf.d/resourcesync.conf, then: nginx -t && nginx -s reload\n"
        f"{_introduction('nginx', front)}"
        f"upstream resourcesync_serve {{\n    server {front.backend};\n    keepalive 32;\n}}\n"
        f"{_NGINX_CACHING if front.is_static else ''}"
        f"server {{\n{listening}    server_name {front.host};\n"
        f"{_nginx_certificate(front.host) if secure else ''}"
        f"{_nginx_files(front) if front.is_static else _nginx_proxied(front.prefix)}"
        "}\n"
    )


def _addresses(host: str) -> tuple[str, ...]:
    """Return what is listened on for a host: a name may have addresses of both kinds."""
    if host.startswith("["):
        return ("[::]:",)
    return ("",) if host.replace(".", "").isdigit() else ("", "[::]:")


_NGINX_CACHING: Final = f"""
map $uri $resourcesync_caching {{
    default "no-cache";  # a list that may change is revalidated each time
    "~/(?:{_NEVER_CHANGES})$" "{_FOREVER}";
}}

"""


def _nginx_certificate(host: str) -> str:
    folder = f"/etc/letsencrypt/live/{host}"
    return (
        f"    ssl_certificate {folder}/fullchain.pem;\n"
        f"    ssl_certificate_key {folder}/privkey.pem;\n"
    )


def _nginx_proxied(prefix: str) -> str:
    target = "http://resourcesync_serve" + ("" if prefix == "/" else "/")
    body = _NGINX_PROXY.replace("http://resourcesync_serve", target)
    return f"    location {prefix} {{\n{body}    }}\n"


_NGINX_DOCUMENT: Final = """\
        root "{front.out}";
        types {{ }}
        default_type application/xml;
        gzip on;
        gzip_types application/xml;
        gzip_vary on;
        add_header Cache-Control $resourcesync_caching;
        add_header X-Content-Type-Options nosniff;
"""
_NGINX_FILES: Final = """\
    root "{front.root}";
    disable_symlinks on from=$document_root;
    sendfile on;
    tcp_nopush on;
    # 404 means deleted. A folder that is not mounted is a fault.
    if (!-f "{front.out}/resourcesync/capabilitylist.xml") {{
        return 503;
    }}
{computed}\
    location @serve {{
{proxy}    }}
    location = /.well-known/resourcesync {{
{document}    }}
    location ~ "{hidden}" {{
        return 404;
    }}
    location ~ "{documents}" {{
{document}    }}
    location ~ "{packages}" {{
        root "{front.out}";
        types {{ }}
        default_type application/zip;
        add_header Cache-Control $resourcesync_caching;
        add_header X-Content-Type-Options nosniff;
    }}
    location ~ "{activities}" {{
        root "{front.out}";
        types {{ }}
        default_type '{activity_type}';
        gzip on;
        gzip_types *;
        gzip_vary on;
        add_header Access-Control-Allow-Origin *;
        add_header Cache-Control $resourcesync_caching;
        add_header X-Content-Type-Options nosniff;
    }}
    location /resourcesync/ {{
        return 404;
    }}
    location = / {{
        try_files /index.html @serve;
    }}
    location = /robots.txt {{
        try_files $uri @serve;
    }}
    # A folder is its index.html; its files are never listed.
    location ~ "^/(?!resourcesync/).*/$" {{
        try_files "${{uri}}index.html" =404;
        add_header Link "{front.link}";
        add_header X-Content-Type-Options nosniff;
    }}
    location / {{
        try_files $uri @folder;
        add_header Link "{front.link}";
        add_header X-Content-Type-Options nosniff;
    }}
    location @folder {{
        absolute_redirect off;
        error_page 404 = @link;
        if (!-f "$request_filename/index.html") {{
            return 404;
        }}
        rewrite ^(.*)$ $1/ permanent;
    }}
    # A symbolic link may lead out of the folder: that program knows whether it is published.
    location @link {{
        disable_symlinks off;
        if (!-f $request_filename) {{
            return 404;
        }}
{proxy}    }}
"""


def _nginx_files(front: FrontServer) -> str:
    computed = "".join(
        f'    location ^~ "{path}" {{\n{_NGINX_PROXY}    }}\n' for path in front.computed
    )
    document = _NGINX_DOCUMENT.format(front=front, **_WORDS)
    return _NGINX_FILES.format(front=front, computed=computed, document=document, **_WORDS)


def caddy(front: FrontServer) -> str:
    """Return the configuration of Caddy: a ``Caddyfile``."""
    site = f"{front.scheme}://{front.host}:{front.port}"
    body = _caddy_files(front) if front.is_static else _caddy_proxied(front)
    head = _introduction("Caddy", front)
    return f"# /etc/caddy/Caddyfile, then: systemctl reload caddy\n{head}{site} {{\n{body}}}\n"


# Without flush_interval: Caddy sends events at once by their type. With -1, a stream whose client
# has gone would stay open to ``serve``.
def _caddy_proxied(front: FrontServer) -> str:
    proxy = f"reverse_proxy {front.backend}"
    if front.prefix == "/":
        return f"\t{proxy}\n"
    return f"\thandle_path {front.prefix}* {{\n\t\t{proxy}\n\t}}\n"


_CADDY_DOCUMENT: Final = """\
			root * "{front.out}"
			encode zstd gzip {{
				match header Content-Type application/xml*
			}}
			header Content-Type application/xml
			header Cache-Control no-cache
			header @never_changes Cache-Control "{forever}"
			file_server
"""
_CADDY_FILES: Final = """\
	# Caddy follows symbolic links, also those that lead out of the folder and are not published.
	root * "{front.root}"
	header X-Content-Type-Options nosniff
	# 404 means deleted. A folder that is not mounted is a fault.
	@absent not file {{
		root "{front.out}"
		try_files /resourcesync/capabilitylist.xml
	}}
	@computed path {computed}
	@description path /.well-known/resourcesync
	@documents path_regexp "{documents}"
	@packages path_regexp "{packages}"
	@activities path_regexp "{activities}"
	@never_changes path_regexp "/(?:{never_changes})$"
	@hidden path_regexp "{hidden}"
	@no_front {{
		path /
		not file {{
			try_files /index.html
		}}
	}}
	@no_robots {{
		path /robots.txt
		not file
	}}
	route {{
		error @absent 503
		reverse_proxy @computed {front.backend}
		reverse_proxy @no_front {front.backend}
		reverse_proxy @no_robots {front.backend}
		handle @description {{
{document}		}}
		error @hidden 404
		handle @documents {{
{document}		}}
		handle @packages {{
			root * "{front.out}"
			header Content-Type application/zip
			header Cache-Control no-cache
			header @never_changes Cache-Control "{forever}"
			file_server
		}}
		handle @activities {{
			root * "{front.out}"
			encode zstd gzip {{
				match header Content-Type application/ld+json*
			}}
			header Content-Type `{activity_type}`
			header Access-Control-Allow-Origin *
			header Cache-Control no-cache
			file_server
		}}
		error /resourcesync/* 404
		header Link "{front.link}"
		file_server
	}}
"""


def _caddy_files(front: FrontServer) -> str:
    computed = " ".join(
        f'"{path}*"' if path.endswith("/") else f'"{path}" "{path}/*"' for path in front.computed
    )
    document = _CADDY_DOCUMENT.format(front=front, **_WORDS)
    return _CADDY_FILES.format(front=front, computed=computed, document=document, **_WORDS)


FRONT_SERVERS: Final[dict[str, Callable[[FrontServer], str]]] = {"nginx": nginx, "caddy": caddy}
"""The configurations by the name of the web server."""
