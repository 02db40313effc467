"""A real server of events: nginx with nchan, on loopback."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support.servers.nginx import is_ready
from tests.support.servers.second_try import started

MODULE: Final = Path("/usr/lib/nginx/modules/ngx_nchan_module.so")
_CONFIG: Final = """\
load_module {module};
{user}
worker_processes 1;
daemon off;
pid {run}/nginx.pid;
error_log {run}/error.log crit;
events {{ worker_connections 128; }}
http {{
  access_log off;
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxy;
  fastcgi_temp_path {run}/fastcgi;
  uwsgi_temp_path {run}/uwsgi;
  scgi_temp_path {run}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location = /publish {{
      nchan_publisher;
      nchan_channel_id changes;
      nchan_message_buffer_length 1000;
      nchan_message_timeout 1h;
    }}
    location = /stream {{
      nchan_subscriber eventsource;
      nchan_channel_id changes;
      nchan_subscriber_first_message oldest;
    }}
  }}
}}
"""


def installed() -> bool:
    """Whether nginx and the module are here."""
    return MODULE.is_file()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """Keep it running; yield its origin."""
    config = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""

    def command(ports: Mapping[str, int]) -> list[str | Path]:
        (port,) = ports.values()
        config.write_text(_CONFIG.format(module=MODULE, run=folder, port=port, user=user))
        return ["/usr/sbin/nginx", "-e", folder / "error.log", "-c", config]

    with started(command, folder / "said", ready=lambda it: is_ready(it, folder)) as found:
        yield f"http://127.0.0.1:{found.port}"
