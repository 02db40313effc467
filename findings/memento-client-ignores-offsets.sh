#!/bin/sh
# memento-client asks a TimeGate for the local time as if it were GMT: the offset of a datetime is dropped.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet memento-client==0.6.1
env/bin/python - <<'PROGRAM'
import threading
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer

from memento_client import MementoClient

asked = set()


class Archive(BaseHTTPRequestHandler):
    def do_HEAD(self):
        gate = self.path.startswith("/gate/")
        if gate:
            asked.add(self.headers["Accept-Datetime"])
        self.send_response(302 if gate else 200)
        if gate:
            self.send_header("Vary", "accept-datetime")
            self.send_header("Location", f"{base}/memento")
            self.send_header("Link", f'<{base}/page>; rel="original"')
        elif self.path == "/memento":
            self.send_header("Memento-Datetime", "Mon, 01 Jan 2024 00:00:00 GMT")
            self.send_header("Link", f'<{base}/page>; rel="original"')
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Archive)
base = f"http://127.0.0.1:{server.server_port}"
threading.Thread(target=server.serve_forever, daemon=True).start()
client = MementoClient(timegate_uri=f"{base}/gate/", check_native_timegate=False)
moment = datetime(2024, 1, 3, 0, 30, tzinfo=timezone(timedelta(hours=9)))
client.get_memento_info(f"{base}/page", moment)
print(f"memento-client 0.6.1: {moment.isoformat()} is requested as", *asked)
raise SystemExit(0 if asked == {"Wed, 03 Jan 2024 00:30:00 GMT"} else 1)
PROGRAM
